"""The BigMoeOnEdge reader: what it makes of rows, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from expertcache_reference.traces import bigmoe, load_trace, open_trace
from expertcache_spec.errors import InvalidTrace
from expertcache_spec.trace import Event, Recorded

from .files import CSV, GEMMA, QWEN, csv_lines, put

Change = Callable[[list[str]], object]


def test_rows_of_one_layer_and_pass_are_one_event(tmp_path: Path) -> None:
    trace = open_trace(put(tmp_path / "tiny.route.csv", CSV))
    assert trace.name == "tiny"
    assert (trace.geometry.record_bytes, trace.geometry.experts, trace.geometry.top_k) == ((100, 300), 4, 2)
    assert trace.events[:3] == (
        Event(0, ((0, 1), (1, 2)), 0, 0, "prefill", weights=((0.6, 0.4), (0.7, 0.3)), positions=(0, 1),
              recorded=Recorded((False, False, False), (100, 100, 100))),
        Event(1, ((3, 0),), 0, 0, "prefill", weights=((0.5, 0.5),), positions=(1,),
              recorded=Recorded((False, False), (300, 300))),
        Event(0, ((0, 3),), 0, 1, "decode", weights=((0.8, 0.2),), positions=(2,),
              recorded=Recorded((True, False), (0, 100))),
    )  # fmt: skip
    assert trace.events[3].recorded == Recorded((True, False), (0, 300))
    assert [event.pass_index for event in trace.events] == [0, 0, 1, 1, 2, 2]


def test_columns_are_read_by_name(tmp_path: Path) -> None:
    lines = csv_lines()
    turned = lines[:4] + [",".join(reversed(line.split(","))) for line in lines[4:]]
    assert open_trace(put(tmp_path / "t.csv", "\n".join(turned) + "\n")) == open_trace(put(tmp_path / "u.csv", CSV))


def test_a_dropped_selection_is_left_out_and_said(tmp_path: Path) -> None:
    lines = csv_lines()
    lines = [*lines[:4], lines[4] + ",dropped", *(line + ",0" for line in lines[5:])]
    lines[12] = "0,1,2,0,1,3,0.2,0,0,1"
    trace, notes = load_trace(put(tmp_path / "t.csv", "\n".join(lines) + "\n"))
    assert trace.events[2].rows == ((0,),)
    assert trace.events[2].weights == ((0.8,),)
    assert trace.events[2].recorded == Recorded((True,), (0,))
    assert any("dropped" in note for note in notes)


def test_a_turn_is_a_stream_and_positions_may_go_on(tmp_path: Path) -> None:
    second = [re.sub("^0,", "1,", line) for line in csv_lines()[5:]]
    trace = open_trace(put(tmp_path / "t.csv", "\n".join([*csv_lines(), *second]) + "\n"))
    assert [(event.stream, event.pass_index) for event in trace.events[::2]] == [
        (s, p) for s in (0, 1) for p in range(3)
    ]


def test_a_prompt_in_two_batches_is_two_passes(tmp_path: Path) -> None:
    lines = csv_lines()
    batches = [line.replace("0,1,", "0,0,", 1) if line.startswith("0,1,2,") else line for line in lines]
    trace = open_trace(put(tmp_path / "t.csv", "\n".join(batches) + "\n"))
    assert [event.phase for event in trace.events] == ["prefill"] * 4 + ["decode"] * 2
    assert [event.pass_index for event in trace.events] == [0, 0, 1, 1, 2, 2]


def test_a_layer_without_experts_is_not_routed(tmp_path: Path) -> None:
    text = CSV.replace("n_layer=2", "n_layer=3").replace(
        "# layer=1 ", "# layer=1 expert_bytes=0 dense_bytes=9\n# layer=2 "
    )
    moved = re.sub(r"(?m)^(0,\d,\d),1,", r"\1,2,", text)
    trace = open_trace(put(tmp_path / "t.csv", moved))
    assert trace.geometry.routed == (0, 2)
    assert [event.layer for event in trace.events] == [0, 2] * 3


@pytest.mark.rule("XC-TRACE-001")
@pytest.mark.parametrize(("source", "lookups", "selections"), [(QWEN, 39526, 44766), (GEMMA, 24578, 28260)])
def test_the_recorded_files_have_their_published_counts(source: Path, lookups: int, selections: int) -> None:
    trace, notes = load_trace(source)
    assert sum(len(event.keys) for event in trace.events) == lookups
    assert sum(len(row) for event in trace.events for row in event.rows) == selections
    assert notes == []


def edit(line: int, old: str, new: str) -> Change:
    """A change of one field of one line, which must be there to be changed."""

    def change(lines: list[str]) -> None:
        assert old in lines[line - 1]
        lines[line - 1] = lines[line - 1].replace(old, new)

    return change


def swap(first: int, second: int) -> Change:
    def change(lines: list[str]) -> None:
        lines[first - 1], lines[second - 1] = lines[second - 1], lines[first - 1]

    return change


def drop(*numbers: int) -> Change:
    def change(lines: list[str]) -> None:
        for number in sorted(numbers, reverse=True):
            del lines[number - 1]

    return change


def repeat(first: int, last: int) -> Change:
    def change(lines: list[str]) -> None:
        lines[last:last] = lines[first - 1 : last]

    return change


def move(lines_from: slice, to: int) -> Change:
    """Cut the lines out and put them before the line that had the index `to`."""

    def change(lines: list[str]) -> None:
        cut = lines[lines_from]
        lines[to:to] = cut
        del lines[lines_from]

    return change


def both(first: Change, second: Change) -> Change:
    def change(lines: list[str]) -> None:
        first(lines)
        second(lines)

    return change


BAD: dict[str, tuple[Change, str]] = {
    "negative id": (edit(7, ",1,0.4", ",-1,0.4"), r":7: expert is '-1'.*padding"),
    "id out of range": (edit(7, ",1,0.4", ",4,0.4"), r":7: expert 4 of 0 to 3"),
    "one expert twice in a row": (edit(7, ",1,0.4", ",0,0.4"), r":7: expert 0 of 0 to 3, after \[0\]"),
    "NaN weight": (edit(7, "0.4", "nan"), r":7: weight is nan.*--drop-weights"),
    "infinite weight": (edit(7, "0.4", "-inf"), r":7: weight is -inf.*--drop-weights"),
    "weight that overflows": (edit(7, "0.4", "1e999"), r":7: weight is 1e999"),
    "weight with an underscore": (edit(7, "0.4", "0_4"), r":7: weight is 0_4"),
    "weight that is a word": (edit(7, "0.4", "x"), r":7: weight is 'x'"),
    "number with a sign": (edit(7, "0,0,0,0,1,", "0,0,0,0,+1,"), r":7: slot is '\+1'"),
    "number of another script": (edit(7, ",1,0.4", ",١,0.4"), r":7: expert is"),
    "huge number": (edit(7, ",1,0.4", "," + "9" * 30 + ",0.4"), r":7: expert is"),
    "float for a whole number": (edit(7, ",1,0.4", ",1.0,0.4"), r":7: expert is '1.0'"),
    "doubled row": (repeat(13, 13), r":14: slot 1 where slot 0 should follow"),
    "doubled token": (repeat(12, 15), r":16-17: decode step 2 after decode step 2"),
    "missing row": (drop(13), r":13: .*1 of 2 slots"),
    "missing first row of a cell": (drop(12), r":12: slot 1 where slot 0"),
    "slots out of order": (swap(12, 13), r":12: slot 1 where slot 0"),
    "missing layer": (drop(14, 15), r":14-15: .*expected pass 1 layer 1"),
    "layers out of order": (move(slice(11, 13), 15), r":12-13: layer 1 has steps 2 to 2, this pass 0 to 1"),
    "missing step": (drop(12, 13, 14, 15), r":12-13: decode step 3 after prefill step 1"),
    "step missing inside a prompt": (both(edit(8, "0,0,1,0", "0,0,2,0"), edit(9, "0,0,1,0", "0,0,2,0")),
                                     r":8: step 2 after 0"),
    "prompt row missing in one layer": (both(edit(10, "0,0,1,1", "0,0,0,1"), edit(11, "0,0,1,1", "0,0,0,1")),
                                        r":10-11: layer 1 has steps 0 to 0, this pass 0 to 1"),
    "a prompt after decode": (both(edit(16, "0,1,3", "0,0,3"), edit(17, "0,1,3", "0,0,3")),
                              r":16-17: prefill step 3 after decode step 2"),
    "unknown phase": (edit(12, "0,1,2", "0,2,2"), r":12: phase 2"),
    "unknown residency": (edit(12, ",1,0", ",3,0"), r":12: .*residency 3"),
    "bytes on a hit": (edit(12, ",1,0", ",1,100"), r":12: 100 bytes read"),
    "bytes that disagree with the preamble": (edit(13, ",100", ",99"), r":12-13: .*line 13.*99 bytes"),
    "a miss that reads nothing": (edit(13, ",100", ",0"), r":12-13: .*line 13"),
    "a repeat with bytes": (edit(8, "0.7,0,0", "0.7,0,100"), r":6-9: .*line 8"),
    "a repeat with another residency": (edit(8, "0.7,0,0", "0.7,1,0"), r":6-9: .*line 8"),
    "field too many": (edit(7, ",100", ",100,0"), r":7: 10 fields for 9 columns"),
    "field missing": (edit(7, ",100", ""), r":7: 8 fields for 9 columns"),
    "cut off inside a cell": (drop(19), r":18: the file ends after 1 of 2"),
    "cut off inside a pass": (drop(18, 19), r"ends inside this pass"),
    "no rows": (drop(*range(6, 20)), r"no events"),
    "no columns": (drop(*range(5, 20)), r"ends where the column names"),
    "column missing": (edit(5, ",residency", ""), r":5: columns"),
    "column twice": (edit(5, "residency", "layer"), r":5: columns"),
    "column unknown": (edit(5, "expert_bytes", "expert_bytes,extra"), r":5: columns"),
    "another version": (edit(1, "v1", "v2"), r":1: .*route_trace v2"),
    "no version": (drop(1, 2, 3, 4), r":1: the file begins with 'turn,"),
    "no model line": (drop(2), r":2: no model line"),
    "layer preamble missing": (drop(4), r":4: no preamble of layer 1"),
    "layer preamble twice": (repeat(4, 4), r":5: columns"),
    "layer preamble out of order": (swap(3, 4), r":3: no preamble of layer 0"),
    "more layers than announced": (edit(2, "n_layer=2", "n_layer=1"), r":4: columns"),
    "no routed layer": (both(edit(3, "=100", "=0"), edit(4, "=300", "=0")), r":4: routed layers"),
    "top-k above the experts": (edit(2, "used=2", "used=9"), r"top_k 9 exceeds 4"),
    "two captures in one file": (lambda lines: lines.extend(lines[:]), r":20: a preamble after rows"),
    "empty line": (lambda lines: lines.insert(8, ""), r":9: an empty line"),
}  # fmt: skip


@pytest.mark.rule("XC-TRACE-002", "XC-TRACE-003", "XC-TRACE-004", "XC-TRACE-005", "XC-TRACE-008")
@pytest.mark.parametrize("name", BAD)
def test_dirt_is_refused_with_file_line_and_cure(name: str, tmp_path: Path) -> None:
    change, expected = BAD[name]
    lines = csv_lines()
    change(lines)
    path = put(tmp_path / "t.csv", "".join(line + "\n" for line in lines))
    with pytest.raises(InvalidTrace, match=expected) as caught:
        open_trace(path)
    assert caught.value.where.startswith(str(path))
    assert caught.value.cure


def test_a_nan_weight_is_cured_by_leaving_the_weights(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", CSV.replace("0.6", "nan"))
    assert all(event.weights is None for event in open_trace(path, drop_weights=True).events)


def test_a_turn_that_goes_back_is_refused(tmp_path: Path) -> None:
    lines = csv_lines()
    later = [*lines[:5], *(re.sub("^0,", "1,", line) for line in lines[5:]), *lines[5:]]
    with pytest.raises(InvalidTrace, match=r":20-23: turn 0 after turn 1"):
        open_trace(put(tmp_path / "t.csv", "\n".join(later)))


def test_a_call_without_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bigmoe, "MAX_SELECTIONS", 100)
    endless = [f"0,0,{step},0,{slot},{slot},0.5,0,{0 if step else 100}" for step in range(60) for slot in (0, 1)]
    with pytest.raises(InvalidTrace, match=r":106: more than 100 selections"):
        open_trace(put(tmp_path / "t.csv", "\n".join([*csv_lines()[:5], *endless])))
