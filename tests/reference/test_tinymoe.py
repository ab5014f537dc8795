"""The tiny model: its weights are what the recipe says, it has learned, and streaming changes no bit of its logits."""

from __future__ import annotations

import hashlib
import runpy
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import attrs
import numpy as np
import pytest

from expertcache_reference import tinymoe
from expertcache_reference.runtime import Runtime
from expertcache_reference.stores import verify
from expertcache_reference.tinymoe import (
    TINY,
    Decoder,
    Loaded,
    Sampler,
    Session,
    compare,
    recipe,
    records,
    weights_path,
)
from expertcache_reference.tinymoe.attention import Window
from expertcache_reference.tinymoe.weights import Layer, checked
from expertcache_spec import history
from expertcache_spec.errors import InvalidModel
from expertcache_spec.layout.files import WrongFile
from expertcache_spec.model import Budget
from expertcache_spec.residency import Settings

PROMPT = b"Addio, monti sorgenti"
DOMAINS = ("italian", "python", "english")
TRAINING = Path(__file__).parents[2] / "training"
PAGE = TRAINING.parent / "docs" / "tinymoe.md"


@pytest.fixture(scope="module")
def model() -> Iterator[Loaded]:
    with tinymoe.loaded() as found:
        yield found


@pytest.fixture(scope="module")
def plain(model: Loaded) -> list[Any]:
    return decoded(model, model.resident().serve)


def decoded(model: Loaded, serve: Any, tokens: int = 8, stream: int = 0, prompt: bytes = PROMPT) -> list[Any]:
    return list(Decoder(model.network, serve, prompt, tokens, Sampler(0.8, 1), chunk=12, stream=stream))


def same(one: list[Any], other: list[Any]) -> bool:
    return compare([(step.logits, step.chosen) for step in one], other).first is None


# ---------------------------------------------------------------------------------------------- the weights


def test_the_weights_are_those_of_the_recipe_and_fit_into_eight_mebibytes(model: Loaded) -> None:
    told = recipe()
    with weights_path() as path:
        data = path.read_bytes()
    assert len(data) == told["bytes"] <= 8 * 2**20
    assert hashlib.sha256(data).hexdigest() == told["sha256"] == model.sha256
    assert verify(model.store) == told["records"]


def test_every_part_of_an_expert_is_a_page_of_sixteen_kibibytes_on_a_page(model: Loaded) -> None:
    assert model.store.geometry == TINY.geometry
    for extents in model.store.layout.extents.values():
        assert [(extent.length, extent.offset % 16384) for extent in extents] == [(16384, 0)] * len(tinymoe.PARTS)


def test_the_records_in_memory_are_those_that_are_streamed(model: Loaded) -> None:
    resident = model.resident().records
    assert len(resident) == TINY.layers * TINY.experts
    with weights_path() as path:
        data = path.read_bytes()
    for key, extents in model.store.layout.extents.items():
        assert b"".join(data[extent.offset : extent.end] for extent in extents) == resident[key]


def test_damaged_missing_and_foreign_weights_are_refused(tmp_path: Path) -> None:
    with weights_path() as path:
        data = bytearray(path.read_bytes())
    data[Random(1).randrange(len(data))] ^= 1
    (tmp_path / "weights").write_bytes(data)
    with pytest.raises(WrongFile, match="fingerprint"):
        checked(tmp_path / "weights", recipe()["sha256"])
    with pytest.raises(WrongFile, match="cannot be read"):
        checked(tmp_path / "other", recipe()["sha256"])
    with pytest.raises(WrongFile, match="is no safetensors file"):
        records(b"not weights", TINY, "here")
    with pytest.raises(WrongFile, match="not there in the shape"):
        records(path_bytes(), attrs.evolve(TINY, experts=25), "here")


def path_bytes() -> bytes:
    with weights_path() as path:
        return path.read_bytes()


def text_of(domain: str) -> bytes:
    """The validation text of the domain; skips where this interpreter has another library."""
    corpus = next(found for found in runpy.run_path(str(TRAINING / "corpora.py"))["corpora"]() if found.name == domain)
    told = recipe()["corpora"][domain]
    if domain == "python" and corpus.about["sha256"] != told["sha256"]:
        pytest.skip("the text is the standard library of Python 3.11.7")
    assert corpus.about["sha256"] == told["sha256"]
    return bytes(corpus.validation)


@pytest.mark.parametrize(("domain", "first"), list(zip(DOMAINS, (2.214, 0.966, 1.594), strict=True)))
def test_it_has_learned_its_domain_to_the_digit(domain: str, first: float, model: Loaded) -> None:
    """The first window of the validation text; all 32, which the page is about, are the nightly test's."""
    text, serve = text_of(domain), model.resident().serve
    assert abs(bits_of(Session(model.network, serve), text[: TINY.window + 1]) - first) < 1e-3


def test_the_page_has_the_bits_of_the_recipe() -> None:
    row = " | ".join(f"{recipe()['validation_bits_per_byte'][domain]:.2f}" for domain in DOMAINS)
    assert f"| {' | '.join(DOMAINS)} |\n|---:|---:|---:|\n| {row} |\n" in PAGE.read_text(encoding="utf-8")


@pytest.mark.nightly
@pytest.mark.parametrize("domain", DOMAINS)
def test_the_recipe_has_the_bits_of_the_weights(domain: str, model: Loaded) -> None:
    text, serve = text_of(domain), model.resident().serve
    starts = np.linspace(0, len(text) - TINY.window - 2, 32).astype(int)
    bits = [bits_of(Session(model.network, serve), text[start : start + TINY.window + 1]) for start in starts]
    assert abs(float(np.mean(bits)) - recipe()["validation_bits_per_byte"][domain]) < 2e-4


def bits_of(session: Session, text: bytes) -> float:
    logits = session.feed(text[:-1], "prefill").astype(np.float64)
    logits -= logits.max(1, keepdims=True)
    likely = logits[np.arange(len(logits)), list(text[1:])] - np.log(np.exp(logits).sum(1))
    return float(-likely.mean() / np.log(2))


# ---------------------------------------------------------------------------------------------- decoding


def test_a_prompt_gives_the_same_logits_in_one_pass_in_chunks_or_byte_by_byte(model: Loaded) -> None:
    serve = model.resident().serve
    whole = Session(model.network, serve).feed(PROMPT, "prefill")
    for size in (1, 8):
        session = Session(model.network, serve)
        parts = [session.feed(PROMPT[start : start + size], "prefill") for start in range(0, len(PROMPT), size)]
        assert np.abs(np.concatenate(parts) - whole).max() < 1e-3
        assert session.position == len(PROMPT)
        assert session.passes == len(parts)


def test_a_row_attends_to_the_window_and_to_nothing_before_it() -> None:
    shape, random = tinymoe.Shape(width=16, heads=2, window=8), np.random.default_rng(3)
    layer = Layer(*(random.normal(size=size).astype(np.float32) for size in ((48, 16), (16, 16), 16, 16, (24, 16))))
    x = random.normal(size=(30, 16)).astype(np.float32)
    long, short = Window(shape), Window(shape)
    long.attend(x[:20], layer, 0)
    short.attend(x[13:20], layer, 13)
    assert np.allclose(long.attend(x[20:21], layer, 20), short.attend(x[20:21], layer, 20), atol=1e-6)
    changed = Window(shape)
    changed.attend(np.concatenate((x[13:14] + 1, x[14:20])), layer, 13)
    assert not np.allclose(changed.attend(x[20:21], layer, 20), short.attend(x[20:21], layer, 20), atol=1e-3)


def test_equal_seeds_draw_equal_bytes_and_zero_takes_the_likeliest() -> None:
    logits = np.random.default_rng(0).normal(size=(50, 256)).astype(np.float32)
    draws = [[sampler.choose(row) for row in logits] for sampler in (Sampler(1.0, 5), Sampler(1.0, 5), Sampler(1.0, 6))]
    assert draws[0] == draws[1] != draws[2]
    logits[:, [7, 9]] = 10
    assert {Sampler().choose(row) for row in logits} == {7}


def test_draws_follow_the_softmax() -> None:
    logits, sampler = np.full(256, -np.inf, np.float32), Sampler(2.0, 1)
    logits[[3, 200]] = 0, 2 * np.log(3)
    counts = [sampler.choose(logits) for _ in range(4000)].count(200)
    assert abs(counts / 4000 - 0.75) < 0.03


def test_nonsense_is_refused(model: Loaded) -> None:
    for temperature in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidModel, match="temperature"):
            Sampler(temperature)
    for prompt, tokens, chunk in ((b"", 1, 1), (b"a", -1, 1), (b"a", 1, 0)):
        with pytest.raises(InvalidModel, match="give a prompt"):
            Decoder(model.network, model.resident().serve, prompt, tokens, Sampler(), chunk=chunk)


def test_mlx_gives_numpys_logits_to_a_tolerance(model: Loaded) -> None:
    mlx = pytest.importorskip("mlx.core", reason="mlx is not installed: pip install 'expertcache[mlx]'")
    with tinymoe.loaded("mlx") as other:
        logits = [Session(one.network, model.resident().serve).feed(PROMPT, "prefill") for one in (model, other)]
        with Runtime(other.store, Budget(slots=60), workers=2) as runtime:
            streamed_ = decoded(other, runtime.serve, 3)
        assert same(decoded(other, other.resident().serve, 3), streamed_)
    on_cpu = mlx.default_device() == mlx.Device(mlx.cpu)
    assert np.abs(logits[0] - logits[1]).max() < (2e-5 if on_cpu else 1e-4)


# ---------------------------------------------------------------------------------------------- streaming

WAYS: list[dict[str, Any]] = [
    {"slots": 4, "discipline": "sync", "workers": 1, "chunks": 1, "settings": Settings(overflow="bypass")},
    {"slots": 24, "discipline": "sync", "workers": 2, "settings": Settings(scope="layer", overflow="waves")},
    {"slots": 80, "discipline": "split:1", "way": "mmap"},
    {"slots": 80, "discipline": "split:3", "policy": "lfu", "chunks": 3},
    {"slots": 50, "discipline": "staged", "policy": "arc", "workers": 3},
    {"slots": 100, "discipline": "pipelined", "policy": "fifo", "chunks": 2},
    {"slots": 144, "discipline": "pipelined", "policy": "lfru", "way": "mmap", "workers": 1},
]


def streamed(model: Loaded, how: dict[str, Any], log: Any = None, **more: Any) -> list[Any]:
    rest = {name: value for name, value in how.items() if name != "slots"}
    with Runtime(model.store, Budget(slots=how["slots"]), log=log, **{"workers": 4, **rest}) as runtime:
        return decoded(model, runtime.serve, **more)


@pytest.mark.rule("XC-SCHED-009")
@pytest.mark.parametrize("how", WAYS, ids=lambda how: f"{how['discipline']}-{how['slots']}")
def test_streaming_changes_no_bit_and_its_log_is_legal(
    how: dict[str, Any], model: Loaded, plain: list[Any], tmp_path: Path
) -> None:
    path = tmp_path / "log.jsonl"
    assert same(plain, streamed(model, how, path))
    with path.open("rb") as file:
        assert history.check(*history.read_log(file)).answer == "legal"


@pytest.mark.nightly
@pytest.mark.rule("XC-SCHED-009")
def test_streaming_changes_no_bit_whatever_the_cache_is(model: Loaded) -> None:
    chance, plain = Random(9), decoded(model, model.resident().serve, 40)
    for _ in range(60):
        how = {
            "slots": chance.randrange(24, 145),
            "policy": chance.choice(["lru", "lfu", "fifo", "arc", "lfru", "sieve"]),
            "discipline": chance.choice(["sync", "split:1", "split:2", "split:3", "staged", "pipelined"]),
            "workers": chance.randrange(1, 9),
            "chunks": chance.randrange(1, 6),
            "way": chance.choice(["pread", "mmap"]),
        }
        assert same(plain, streamed(model, how, tokens=40)), how


@pytest.mark.rule("XC-SCHED-009")
def test_streams_that_share_a_cache_say_what_each_says_alone(model: Loaded) -> None:
    prompts = [PROMPT, b"And it came to pass, that ", b"    def __init__(self, "]
    alone = [decoded(model, model.resident().serve, prompt=prompt) for prompt in prompts]
    with (
        Runtime(model.store, Budget(slots=120), settings=Settings(no_victim="wait"), workers=3) as runtime,
        ThreadPoolExecutor(3) as pool,
    ):
        calls = [
            pool.submit(decoded, model, runtime.serve, stream=stream, prompt=prompt)
            for stream, prompt in enumerate(prompts)
        ]
        together = [call.result() for call in calls]
    assert all(map(same, alone, together))


def test_a_difference_is_found_and_placed(plain: list[Any]) -> None:
    kept = [(step.logits.copy(), step.chosen) for step in plain]
    kept[3][0][0, 200] = np.nextafter(kept[3][0][0, 200], np.float32(np.inf))
    assert compare(kept, plain)[1:] == (1, 3)
    kept[1] = kept[1][0], 7
    assert compare(kept, plain)[1:] == (1, 1), "equal logits, and another byte was taken"
    with pytest.raises(ValueError, match="argument 2 is longer"):
        compare(kept[:-1], plain)
