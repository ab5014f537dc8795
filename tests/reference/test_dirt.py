"""Well-formed dirt is warned about, and clean traces are not."""

from __future__ import annotations

import copy
from pathlib import Path
from random import Random

import pytest

from expertcache_reference.traces import TraceWarning, load_trace, open_trace, write_trace
from expertcache_reference.traces.dirt import DUMMIES, Watch
from expertcache_spec.model import Geometry
from expertcache_spec.trace import Event, Trace, decode_trace

from .files import dumped, put, request


def findings(trace: Trace) -> list[str]:
    notes: list[str] = []
    assert tuple(Watch().through(trace.events, notes)) == trace.events
    return notes


def row(random: Random) -> tuple[int, ...]:
    return tuple(random.sample(range(64), 8))


def decoded(passes: list[list[tuple[int, ...]]]) -> Trace:
    """A trace of decode passes, each with one row for each layer."""
    model = Geometry(len(passes[0]), 64, 8, routed=tuple(range(len(passes[0]))))
    return Trace(
        model, tuple(Event(layer, (ids,), 0, n) for n, walk in enumerate(passes) for layer, ids in enumerate(walk))
    )


def clean(count: int, layers: int = 4, seed: int = 1) -> list[list[tuple[int, ...]]]:
    random = Random(seed)
    return [[row(random) for _ in range(layers)] for _ in range(count)]


def test_a_clean_trace_has_no_findings() -> None:
    assert findings(decoded(clean(100))) == []


def test_start_up_dummies_are_named_with_their_rows() -> None:
    passes = clean(40)
    dummy = passes[0]
    (found,) = [note for note in findings(decoded([dummy] * DUMMIES + passes[1:])) if "dummies" in note]
    assert f"rows 1 to {DUMMIES} are identical in layer 0 and 3 others" in found
    assert not any("dummies" in note for note in findings(decoded([dummy] * (DUMMIES - 1) + passes[1:])))


def test_dummies_inside_one_prefill_are_named_with_their_rows() -> None:
    random = Random(2)
    first, model = row(random), Geometry(1, 64, 8)
    trace = Trace(model, (Event(0, (first,) * 8192, 0, 0, "prefill"), Event(0, (row(random),), 0, 1)))
    assert any("rows 1 to 8192 are identical in layer 0" in note for note in findings(trace))


def test_rows_that_repeat_later_are_no_start_up_dummies() -> None:
    passes = clean(3)
    assert not any("dummies" in note for note in findings(decoded([passes[0]] + [passes[1]] * 100)))


def test_a_doubled_token_is_counted_and_placed() -> None:
    passes = clean(20)
    (found,) = findings(decoded([*passes[:5], passes[4], *passes[5:]]))
    assert "1 tokens are exactly the token before, in every layer, first in stream 0 pass 5" in found


def test_a_doubled_token_inside_a_prompt_is_found() -> None:
    random = Random(3)
    rows = [[row(random) for _ in range(3)] for _ in range(4)]
    doubled = [(*layer[:2], layer[1], layer[2]) for layer in rows]
    trace = Trace(Geometry(4, 64, 8), tuple(Event(n, ids, 0, 0, "prefill") for n, ids in enumerate(doubled)))
    assert any("1 tokens are exactly" in note for note in findings(trace))


def test_the_same_experts_with_other_weights_are_no_doubled_token() -> None:
    passes = clean(2)
    events = [
        Event(layer, (ids,), 0, number, weights=((1.0 / (number + 1),) * 8,))
        for number in range(3)
        for layer, ids in enumerate(passes[0])
    ]
    assert findings(Trace(Geometry(4, 64, 8), tuple(events))) == []


def test_copied_layers_are_named() -> None:
    passes = [[*walk, walk[1], walk[2], walk[1]] for walk in clean(10)]
    found = findings(decoded(passes))
    assert found[0].startswith("layers 1, 4, 6 are identical, row for row")
    assert found[1].startswith("layers 2, 5 are identical")


def test_small_examples_are_not_suspected() -> None:
    assert findings(decode_trace([[0, 1], [0, 1], [0, 1]], layers=1)) == []
    assert findings(decode_trace([[0], [0]], layers=2)) == []


def test_every_reader_watches(tmp_path: Path) -> None:
    requests = [request("a", tokens=40)]
    for walk in requests[0]["ids"]:
        walk[7] = copy.copy(walk[3])
        walk[0] = [0, 1, 2, 3]
    path = put(tmp_path / "t.jsonl", dumped(requests))
    trace, notes = load_trace(path)
    assert any("rows 1 to 40" in note for note in notes)
    assert any("layers 3, 7 are identical" in note for note in notes)
    for form in ("again.jsonl.gz", "again.npz"):
        write_trace(trace, tmp_path / form)
        assert load_trace(tmp_path / form)[1] == notes
    with pytest.warns(TraceWarning) as caught:
        open_trace(path)
    assert [str(warning.message) for warning in caught] == [f"{path}: {note}" for note in notes]
