"""The canonical JSON Lines reader and every kind of broken record."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expertcache_reference.traces import open_trace, strictjson
from expertcache_spec.errors import InvalidTrace

from .files import dumped, jsonl_records, put

Records = list[dict[str, Any]]


def test_the_small_file_is_a_trace(tmp_path: Path) -> None:
    trace = open_trace(put(tmp_path / "t.jsonl", dumped(jsonl_records())))
    assert (trace.name, len(trace.events), trace.events[2].rows) == ("tiny", 4, ((1, 3),))


def test_the_last_line_needs_no_line_end(tmp_path: Path) -> None:
    assert len(open_trace(put(tmp_path / "t.jsonl", dumped(jsonl_records()).rstrip("\n"))).events) == 4


def field(index: int, name: str, value: Any) -> Callable[[Records], object]:
    return lambda records: records[index].__setitem__(name, value)


BAD: dict[str, tuple[Callable[[Records], object], str]] = {
    "another version": (field(0, "version", 2), r":1: trace format version 2"),
    "another format": (field(0, "format", "other"), r":1: not an expertcache trace"),
    "unknown field in the header": (field(0, "extra", 1), r":1: unknown field extra"),
    "unknown field in an event": (field(2, "token", 1), r":3: unknown field token"),
    "unknown field in the geometry": (lambda r: r[0]["geometry"].update(heads=1), r":1: unknown field heads"),
    "geometry missing": (lambda r: r[0].pop("geometry"), r":1: geometry is not an object"),
    "field missing": (lambda r: r[2].pop("layer"), r":3: no field layer"),
    "negative id": (field(2, "experts", [[-1, 3]]), r":3: .*expert id -1"),
    "id out of range": (field(2, "experts", [[4, 3]]), r":3: .*expert id 4"),
    "id beyond 64 bits": (field(2, "experts", [[10**30, 3]]), r":3: .*31 digits"),
    "id of thousands of digits": (field(2, "stream", 10**4000), r":3: .*4001 digits"),
    "boolean for a whole number": (field(2, "experts", [[True, 3]]), r":3: experts holds"),
    "boolean for a layer": (field(3, "layer", False), r":4: .*whole numbers"),
    "text for a number": (field(2, "stream", "0"), r":3: .*whole numbers"),
    "text for a weight": (field(2, "weights", [["0.5", 0.5]]), r":3: weights holds"),
    "float for an id": (field(2, "experts", [[1.0, 3]]), r":3: experts holds"),
    "NaN weight": (field(2, "weights", [[float("nan"), 0.5]]), r":3: .*NaN is no number"),
    "infinite weight": (field(2, "weights", [[float("-inf"), 0.5]]), r":3: .*-Infinity is no number"),
    "weights of another shape": (field(2, "weights", [[0.5]]), r":3: .*not shaped like the rows"),
    "one expert twice in a row": (field(2, "experts", [[3, 3]]), r":3: .*twice for one expert"),
    "more than top-k": (field(2, "experts", [[0, 1, 2]]) , r":3: .*(top_k is 2|not shaped)"),
    "doubled event": (lambda r: r.insert(2, copy.deepcopy(r[2])), r":4: .*expected pass 1 layer 0"),
    "missing event": (lambda r: r.pop(2), r":3: .*expected pass 0 layer 1"),
    "layers out of order": (lambda r: r.insert(1, r.pop(2)), r":2: .*expected pass 0 layer 0"),
    "missing pass": (lambda r: [r.pop(3), r.pop(3), field(3, "events", 2)(r)] and r.insert(1, {**r[1], "pass": 1}),
                     r":2: .*expected pass 0 layer 0"),
    "no end mark": (lambda r: r.pop(), r":5: no end mark"),
    "end mark of another count": (field(5, "events", 3), r":6: the end mark says"),
    "data after the end mark": (lambda r: r.append(r[4]), r":7: a record after the end mark"),
    "two captures in one file": (lambda r: r.extend(r[:]), r":7: a record after the end mark"),
    "ends inside a pass": (lambda r: [r.pop(4), field(4, "events", 3)(r)], r"ends inside this pass"),
    "no events": (lambda r: r.__setitem__(slice(1, None), [{"end": True, "events": 0}]), r"no events"),
    "recorded of another length": (field(2, "recorded", {"hit": [True], "bytes": [0]}), r":3: .*do not match"),
    "recorded with numbers for truth": (field(2, "recorded", {"hit": [1, 0], "bytes": [0, 0]}), r":3: recorded.hit"),
    "null rows": (field(2, "experts", None), r":3: experts is not a list"),
    "empty rows": (field(2, "experts", []), r":3: .*without experts"),
    "scores of another length": (field(2, "scores", [[0.5]]), r":3: .*one per expert"),
    "too many layers": (lambda r: r[0]["geometry"].update(layers=1 << 40), r":1: layers"),
}  # fmt: skip


@pytest.mark.rule("XC-TRACE-002", "XC-TRACE-003", "XC-TRACE-004", "XC-TRACE-005", "XC-TRACE-008")
@pytest.mark.parametrize("name", BAD)
def test_dirt_is_refused_with_file_line_and_cure(name: str, tmp_path: Path) -> None:
    change, expected = BAD[name]
    records = jsonl_records()
    change(records)
    path = put(tmp_path / "t.jsonl", dumped(records))
    with pytest.raises(InvalidTrace, match=expected) as caught:
        open_trace(path, format="jsonl")
    assert caught.value.where.startswith(str(path))
    assert caught.value.cure


TEXT: dict[str, tuple[str, str]] = {
    "not JSON": ("{]", r":3: not strict JSON"),
    "cut off line": ('{"stream":0,"pass":0,"ph', r":3: not strict JSON"),
    "duplicate key": ('{"stream":0,"stream":1}', r":3: .*'stream' stands twice"),
    "duplicate key below": ('{"recorded":{"hit":[],"hit":[]}}', r":3: .*'hit' stands twice"),
    "deep nesting": ("[" * 100_000, r":3: nested too deeply"),
    "two records in a line": ('{"stream":0}{"stream":1}', r":3: not strict JSON"),
    "no object": ("[1,2]", r":3: not an object"),
    "an empty line": ("   ", r":3: an empty line"),
    "a byte order mark": ("\ufeff{}", r":3: not strict JSON"),
}


@pytest.mark.rule("XC-TRACE-008")
@pytest.mark.parametrize("name", TEXT)
def test_broken_json_is_refused(name: str, tmp_path: Path) -> None:
    text, expected = TEXT[name]
    lines = [json.dumps(record) for record in jsonl_records()]
    lines[2] = text
    with pytest.raises(InvalidTrace, match=expected):
        open_trace(put(tmp_path / "t.jsonl", "\n".join(lines) + "\n"))


def test_a_line_of_countless_values_is_refused_before_it_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strictjson, "MAX_VALUES", 50)
    records = jsonl_records()
    records[2]["experts"] = [[]] * 60
    with pytest.raises(InvalidTrace, match=r":3: more than 50 values"):
        open_trace(put(tmp_path / "t.jsonl", dumped(records)))
