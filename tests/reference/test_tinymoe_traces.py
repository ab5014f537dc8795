"""The tiny model's own routing, recorded on held-out text of three domains, with every score that its routers gave."""

from __future__ import annotations

import gzip
import lzma
import re
import runpy
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from expertcache_reference.tinymoe import TINY, Session, loaded
from expertcache_reference.traces import builtin, open_trace
from expertcache_spec.model import Budget
from expertcache_spec.prefetch import Prefetch
from expertcache_spec.prefetch.gates import ranked
from expertcache_spec.replay import replay
from expertcache_spec.trace import Event, Trace

from .running import run_json

DOMAINS = ("italian", "python", "english")
TRAINING = Path(__file__).parents[2] / "training"
CORPORA = TRAINING / "corpora"
PROMPT, CHUNK, DECODE = 256, 64, 768


@pytest.fixture(scope="module", params=DOMAINS)
def trace(request: pytest.FixtureRequest) -> Trace:
    return open_trace(f"builtin:tinymoe-{request.param}")


def test_the_traces_are_listed_and_small() -> None:
    assert {f"tinymoe-{domain}" for domain in DOMAINS} == set(builtin.names()) - set(builtin.of_engines())
    for domain in DOMAINS:
        packed = (files("expertcache_reference.tinymoe") / "traces" / f"tinymoe-{domain}.jsonl.gz").read_bytes()
        assert len(packed) <= 2**20
        assert packed[4:8] == b"\0\0\0\0"  # no time in the header
        assert gzip.decompress(packed).count(b"\n") == 2 + (PROMPT // CHUNK + DECODE) * TINY.layers


def test_a_trace_is_one_prompt_in_chunks_and_its_continuation_byte_by_byte(trace: Trace) -> None:
    assert trace.geometry == TINY.geometry
    assert {"source", "licence", "capture", "changes"} <= set(trace.about)
    phases = [event.phase for event in trace.events[:: TINY.layers]]
    assert phases == ["prefill"] * (PROMPT // CHUNK) + ["decode"] * DECODE
    positions = [place for event in trace.events[:: TINY.layers] for place in event.positions or ()]
    assert positions == list(range(PROMPT + DECODE))


def test_every_row_asks_for_the_best_of_its_scores_weighed_among_themselves(trace: Trace) -> None:
    for event in trace.events:
        assert event.scores is not None
        assert event.weights is not None
        for row, scores, weights in zip(event.rows, event.scores, event.weights, strict=True):
            assert list(row) == ranked(scores)[: TINY.top_k]
            assert abs(sum(scores) - 1) < 0.01
            among = np.array([scores[expert] for expert in row])
            assert np.allclose(among / among.sum(), weights, atol=2e-3)


def test_every_event_but_those_of_the_last_layer_looks_one_layer_ahead(trace: Trace) -> None:
    for event in trace.events:
        assert event.lookahead is not None
        assert len(event.lookahead) == (event.layer < TINY.layers - 1)


def test_looking_ahead_guesses_better_than_chance_and_prefetches(trace: Trace) -> None:
    right = asked = 0
    for event, next_ in zip(trace.events, trace.events[1:], strict=False):
        if event.phase == "decode" and event.lookahead:
            right += len({*ranked(event.lookahead[0][0])[: TINY.top_k]} & {*next_.rows[0]})
            asked += TINY.top_k
    assert right / asked > 2 * TINY.top_k / TINY.experts
    decode = Trace(trace.geometry, trace.events[: 60 * TINY.layers])
    for name in ("gate-top-k", "gate-percentile"):
        found = replay(decode, "lru", Budget(slots=80), prefetch=Prefetch(name, cap=Budget(slots=12), latency=0))
        assert found.prefetch is not None
        assert found.prefetch.useful > 0


def test_the_commands_find_them_by_name() -> None:
    found = run_json("replay", "builtin:tinymoe-python", "--policy", "score", "--slots", 60)
    assert found["lookups"] == found["hits"] + found["misses"]
    assert 0.2 < found["hits"] / found["lookups"] < 0.99


def test_the_model_routes_its_text_again_as_recorded() -> None:
    text = lzma.decompress((CORPORA / "promessi_sposi.txt.xz").read_bytes())[12 * 32768 :][: CHUNK + 12]
    events: list[Event] = []
    with loaded() as model:
        resident = model.resident()

        def serve(event: Event) -> object:
            events.append(event)
            return resident.serve(event)

        session = Session(model.network, serve)  # type: ignore[arg-type]
        session.feed(text[:CHUNK], "prefill")
    recorded = open_trace("builtin:tinymoe-italian").events[: TINY.layers]
    rows = [
        (one, other) for a, b in zip(events, recorded, strict=True) for one, other in zip(a.rows, b.rows, strict=True)
    ]
    assert len(rows) == TINY.layers * CHUNK
    assert sum(one == other for one, other in rows) / len(rows) > 0.98  # another machine's products round otherwise


@pytest.mark.nightly
def test_the_page_has_what_the_study_prints(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(TRAINING / "study.py"), run_name="__main__")
    said = capsys.readouterr().out
    page = (TRAINING.parent / "docs" / "tinymoe.md").read_text(encoding="utf-8")
    rates, shares = re.findall(r"(?:^\|.*\|\n)+", said, re.M)
    assert (rates.count("\n"), shares.count("\n")) == (11, 5)
    assert rates in page
    assert shares in page
    for row in rates.splitlines()[2:]:
        lru, lfu, lfru, arc, _ = map(float, re.findall(r"([\d.]+) %", row))
        assert lru <= min(lfu, lfru, arc)
        assert lfu == max(lru, lfu, lfru, arc)
    own, others = list[float](), list[float]()
    for at, row in enumerate(shares.splitlines()[2:]):
        for other, share in enumerate(re.findall(r"([\d.]+) %", row)):
            (own if at == other else others).append(float(share))
    assert [round(5 * sum(found) / len(found) / 100) for found in (own, others)] == [4, 3], "fifths"
    guesses = re.findall(r"(\w+): the layer before guesses ([\d.]+) %, the byte before ([\d.]+) %", said)
    assert [name for name, *_ in guesses] == list(DOMAINS)
    text = " ".join(page.split())
    assert "guessed to 69 % from the hidden state of the layer before, in all three domains" in text
    for name, layer, byte in guesses:
        assert round(float(layer)) == 69
        assert f"{float(byte):.0f} % ({name.capitalize()})" in text
