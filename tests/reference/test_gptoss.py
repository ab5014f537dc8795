"""The gpt-oss reader: one line is one stream of decode passes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expertcache_reference.traces import load_trace, open_trace
from expertcache_spec.errors import InvalidTrace
from expertcache_spec.trace import Event

from .files import INSTRUCT_FACTS, dumped, put, request

Change = Callable[[list[dict[str, Any]]], object]


def test_a_line_is_a_stream_and_a_token_a_decode_pass(tmp_path: Path) -> None:
    trace = open_trace(put(tmp_path / "facts.jsonl.gz", dumped([request("a"), request("b", first_pos=0)])))
    model = trace.geometry
    assert (trace.name, model.layers, model.experts, model.top_k, model.record_bytes) == ("facts", 24, 32, 4, None)
    assert len(trace.events) == 2 * 2 * 24
    weights = ((0.5, 0.25, 0.125, 0.125),)
    assert trace.events[25] == Event(1, ((1, 6, 30, 31),), 0, 1, "decode", weights=weights, positions=(8,))
    assert trace.events[-1].stream == 1
    assert trace.events[-1].positions == (1,)


def test_the_recorded_file_has_its_published_counts() -> None:
    trace, notes = load_trace(INSTRUCT_FACTS)
    assert sum(len(event.keys) for event in trace.events) == 127_776
    assert len({key for event in trace.events for key in event.keys}) == 728
    assert notes == []


def change(name: str, value: Any) -> Change:
    return lambda requests: requests[1].__setitem__(name, value)


def layer(name: str, value: Any) -> Change:
    """Replace layer 3 of token 1."""
    return lambda requests: requests[1][name][1].__setitem__(3, value)


BAD: dict[str, tuple[Change, str]] = {
    "negative id": (layer("ids", [-1, 1, 2, 3]), r":2: .*expert id -1"),
    "id out of range": (layer("ids", [32, 1, 2, 3]), r":2: .*expert id 32"),
    "one expert twice": (layer("ids", [1, 1, 2, 3]), r":2: .*twice for one expert"),
    "boolean for an id": (layer("ids", [True, 0, 2, 3]), r":2: token 1 layer 3"),
    "text for an id": (layer("ids", ["1", 0, 2, 3]), r":2: token 1 layer 3"),
    "three ids": (layer("ids", [1, 2, 3]), r":2: token 1 layer 3: ids has the wrong shape"),
    "ids that are no list": (layer("ids", 5), r":2: token 1 layer 3: ids has the wrong shape"),
    "a layer missing": (lambda r: r[1]["ids"][1].pop(), r":2: token 1 layer 0: ids has the wrong shape"),
    "a layer too many": (lambda r: r[1]["ids"][1].append([0, 1, 2, 3]), r":2: token 1 layer 0: ids"),
    "a token that is no list": (lambda r: r[1]["ids"].__setitem__(1, None), r":2: token 1 layer 0: ids has"),
    "a token without weights": (lambda r: r[1]["ids"].append(r[1]["ids"][0]), r":2: token 0 .*--drop-weights"),
    "weights without a token": (lambda r: r[1]["ids"].pop(), r":2: token 0 .*--drop-weights"),
    "no tokens": (change("ids", []), r":2: ids is no list of tokens"),
    "no weights": (lambda r: r[1].pop("probs"), r":2: token 0 layer 0: probs has the wrong shape"),
    "negative weight": (layer("probs", [-0.1, 0.5, 0.3, 0.3]), r":2: token 1 layer 3: probs"),
    "weight above 1": (layer("probs", [1.5, 0.5, 0.3, 0.3]), r":2: token 1 layer 3: probs"),
    "boolean for a weight": (layer("probs", [True, 0.5, 0.3, 0.3]), r":2: token 1 layer 3: probs"),
    "NaN weight": (layer("probs", [float("nan"), 0.5, 0.3, 0.3]), r":2: .*NaN is no number"),
    "not contiguous": (change("contiguous", False), r":2: .*not contiguous"),
    "a number for contiguous": (change("contiguous", 1), r":2: .*not contiguous"),
    "negative position": (change("first_pos", -1), r":2: first_pos"),
    "boolean for a position": (change("first_pos", True), r":2: first_pos"),
    "unknown field": (change("text", "x"), r":2: unknown field text"),
    "missing field": (lambda r: r[1].pop("blob"), r":2: no field blob"),
    "the same request twice": (change("blob", "a"), r":2: the same request as .*:1"),
    "no object": (lambda r: r.__setitem__(1, [1]), r":2: not an object"),  # type: ignore[call-overload]
}


@pytest.mark.rule("XC-TRACE-003", "XC-TRACE-004", "XC-TRACE-008")
@pytest.mark.parametrize("name", BAD)
def test_dirt_is_refused_with_file_line_and_cure(name: str, tmp_path: Path) -> None:
    apply, expected = BAD[name]
    requests = json.loads(json.dumps([request("a"), request("b")]))
    apply(requests)
    path = put(tmp_path / "t.jsonl", dumped(requests))
    with pytest.raises(InvalidTrace, match=expected) as caught:
        open_trace(path)
    assert caught.value.where.startswith(str(path))
    assert caught.value.cure


def test_weights_that_are_missing_or_short_can_be_left_unread(tmp_path: Path) -> None:
    requests = [request("a"), request("b")]
    del requests[1]["probs"]
    assert open_trace(put(tmp_path / "t.jsonl", dumped(requests)), drop_weights=True).events[0].weights is None
