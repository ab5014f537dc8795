"""Hardware files, forecasts, Chrome traces and Gantt charts, without the command line."""

from __future__ import annotations

import json
import sys
import warnings
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import attrs
import jsonschema
import pytest

from expertcache_reference.timeline import hardware
from expertcache_reference.timeline.chrome import chrome_trace, microseconds
from expertcache_reference.timeline.forecast import forecasts, tallied
from expertcache_reference.timeline.gantt import COLOURS, MissingExtra, gantt, meaning, waits
from expertcache_reference.timeline.hardware import Hardware, InvalidHardware, load_hardware, parse_hardware
from expertcache_reference.traces import open_trace
from expertcache_spec.errors import InvalidTrace, UnknownName
from expertcache_spec.model import Budget, Key
from expertcache_spec.replay import Replay
from expertcache_spec.schedule import (
    Costs,
    Discipline,
    Scenario,
    Storage,
    breakdown,
    load_of,
    loads,
    parse_discipline,
    schedule,
)  # fmt: skip
from expertcache_spec.trace import Phase, Trace, decode_trace

from .files import GEMMA

BUDGET = Budget(bytes=4000 * 2**20)
NAMES = ("sync", "split:3", "split:1", "staged", "pipelined", "free")
MINIMAL = 'name = "a"\n[storage]\nbandwidth = 1000\n'


# ------------------------------------------------------------------------------------------------ hardware files


def test_every_shipped_machine_loads_and_says_where_its_numbers_come_from() -> None:
    assert hardware.names() == ["ds4-m5-pro", "mac-32gb-qd1"]
    for name in hardware.names():
        found = load_hardware(f"builtin:{name}")
        assert len(found.about) > 200
        assert sum(request.bytes for request in found.record(9_953_280)) == 9_953_280


def test_ds4_reads_an_expert_by_three_requests_of_its_own_sizes() -> None:
    record = load_hardware("builtin:ds4-m5-pro").record(9_953_280)
    assert [tuple(request) for request in record] == [
        ("gate_up", 3_041_280), ("gate_up", 3_041_280), ("down", 3_870_720),
    ]  # fmt: skip


def test_the_published_walls_of_a_record_in_nine_reads_and_in_one_come_out() -> None:
    mac = load_hardware("builtin:mac-32gb-qd1")
    for requests, published in ((9, 1396), (1, 463)):
        time = requests * mac.storage.wait + mac.storage.transfer(2_076_000)
        assert abs(time - published * 1000) < 5_000
    per_second = 10**9 / (40 * mac.costs.route + 320 * (1 - 0.83) * 1_396_000)
    assert abs(per_second - 10.8) < 0.1  # published at a hit rate of .829 to .836


def test_a_file_reads_back_what_it_says(tmp_path: Path) -> None:
    text = MINIMAL + "workers = 2\n[compute]\nroute = 3\n[record]\ngate_up = [2]\nfan_out = 4\n"
    (tmp_path / "a.toml").write_text(text)
    expected = Hardware("a", "", Costs(route=3), Storage(2, bandwidth=1000), gate_up=(2,), fan_out=4)
    assert load_hardware(str(tmp_path / "a.toml")) == expected
    assert [request.bytes for request in expected.record(3 * 4 * 16384)] == [32768] * 4 + [16384] * 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no name"),
        ('name = "a"', "no storage"),
        ("name = 3\n[storage]\nworkers = 1", "name is 3"),
        (MINIMAL + "speed = 3", "unknown key 'speed'"),
        (MINIMAL + "[gpu]", "unknown key 'gpu'"),
        (MINIMAL + "latency = 1.5", "latency is 1.5"),
        (MINIMAL + "latency = true", "latency is True"),
        (MINIMAL + "workers = 0", "workers is 0"),
        (MINIMAL + "warm_percent = 50", "warm_bandwidth is None"),
        (MINIMAL + "[compute]\nroute = -1", "route is -1"),
        (MINIMAL + "[record]\ngate_up = []", "without requests"),
        (MINIMAL + "[record]\ndown = [0]", "without requests"),
        (MINIMAL + "[record]\ndown = ['x']", "without requests"),
        (MINIMAL + "[record]\npage = 0", "page is 0"),
        (MINIMAL + "[record]\npage = 3", "page is 3"),
        (MINIMAL + "[record]\nfan_out = 0", "fan_out is 0"),
        (MINIMAL + "[record]\nfan_out = -5", "fan_out is -5"),
        (MINIMAL + "[record]\nfan_out = 1000000", "fan_out is 1000000"),
        (MINIMAL + f"[record]\ngate_up = {[1] * 20_000}", "too many"),
        (MINIMAL + "warm_bandwidth = -1", "warm_bandwidth is -1"),
        (MINIMAL + "warm_latency = -1", "warm_latency is -1"),
        (MINIMAL + "latency = " + "9" * 400, "latency is beyond"),
        (MINIMAL + "latency = " + "9" * 5000, "no TOML"),
        (MINIMAL + f"[record]\ndown = [{'9' * 400}]", "down is beyond"),
        (MINIMAL + "latency = " + "[" * 100_000 + "]" * 100_000, "nested too deep"),
        ("name = ", "no TOML"),
    ],
)
def test_a_file_that_says_what_no_machine_has_is_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidHardware, match=said) as refusal:
        parse_hardware(text, "a.toml")
    assert "a.toml" in str(refusal.value)
    assert refusal.value.cure


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b"name = '\xff'")
    (tmp_path / "large.toml").write_bytes(b"#" * ((1 << 20) + 1))
    for name in ("latin.toml", "large.toml", "absent.toml", "."):
        with pytest.raises(InvalidHardware, match="Cure"):
            load_hardware(str(tmp_path / name))
    with pytest.raises(UnknownName, match="builtin:ds4-m5-pro"):
        load_hardware("builtin:m5")


# ------------------------------------------------------------------------------------------------------ forecasts


@pytest.fixture(scope="module")
def gemma() -> Trace:
    trace = open_trace(GEMMA)
    return Trace(trace.geometry, tuple(e for e in trace.events if e.pass_index < 6), trace.name)


@pytest.mark.rule("XC-SCHED-023", "XC-SCHED-008")
@pytest.mark.parametrize("name", NAMES)
def test_a_forecast_by_kinds_of_event_is_the_schedule_of_the_whole_decode(gemma: Trace, name: str) -> None:
    machine, discipline = load_hardware("builtin:ds4-m5-pro"), parse_discipline(name)
    pairs = list(loads(Replay(gemma, "lru", BUDGET)))
    (found,) = forecasts(tallied(pairs, gemma.geometry, [discipline]), machine)
    decode = tuple(load for event, load in pairs if event.phase == "decode")
    records = tuple(machine.record(size) for size in gemma.geometry.record_bytes or ())
    whole = schedule(Scenario(decode, records, machine.costs, machine.storage, discipline))
    assert found.total == breakdown(whole)
    assert (found.tokens, found.events) == (5, 150)
    assert found.speed == pytest.approx(5e9 / whole.makespan)


def test_guards_keep_the_first_tokens_under_sync(gemma: Trace) -> None:
    chosen = [parse_discipline("split:1", tokens=tokens) for tokens in (0, 4, 100)]
    tally = tallied(loads(Replay(gemma, "lru", BUDGET)), gemma.geometry, chosen)
    free, guarded, never = forecasts(tally, load_hardware("builtin:ds4-m5-pro"))
    assert free.overlapped > guarded.overlapped > never.overlapped == 0
    assert free.total.makespan < guarded.total.makespan < never.total.makespan


@pytest.mark.rule("XC-SCHED-023")
def test_an_event_whose_guards_fail_runs_under_sync_with_its_requests_in_the_order_of_the_discipline() -> None:
    machine = Hardware("two readers", storage=Storage(2, 2), gate_up=(1,), down=(2,))
    run = Replay(decode_trace([[0, 1, 2, 3], [2, 3, 4, 5]], record_bytes=300), "lru", Budget(slots=6))
    pairs = list(loads(run))
    never = [Discipline("staged", tokens=100), Discipline("sync")]
    found = forecasts(tallied(pairs, run.trace.geometry, never), machine)
    case = Scenario(tuple(load for _, load in pairs), (machine.record(300),), machine.costs, machine.storage)
    wholes = [breakdown(schedule(attrs.evolve(case, discipline=each))) for each in never]
    assert [each.total for each in found] == wholes
    assert wholes[0] != wholes[1]  # stage by stage, and record by record


def test_decode_alone_is_timed() -> None:
    plain = decode_trace([[0, 1], [1, 2], [2, 3]], record_bytes=300)
    phases: list[Phase] = ["prefill", "decode", "verify"]
    events = tuple(attrs.evolve(event, phase=phase) for event, phase in zip(plain.events, phases, strict=True))
    pairs = list(loads(Replay(Trace(plain.geometry, events), "lru", Budget(slots=4))))
    (found,) = forecasts(tallied(pairs, plain.geometry, [Discipline()]), load_hardware("builtin:ds4-m5-pro"))
    assert (found.tokens, found.events) == (1, 1)


def test_a_trace_without_decode_has_no_tokens_a_second(gemma: Trace) -> None:
    prefill = Trace(gemma.geometry, tuple(event for event in gemma.events if event.phase == "prefill"))
    with pytest.raises(InvalidTrace, match="no decode pass"):
        tallied(loads(Replay(prefill, "lru", BUDGET)), prefill.geometry, [Discipline()])


# ------------------------------------------------------------------------------------------------------- pictures


def drawn(*names: str) -> dict[str, Any]:
    """Two layers under each discipline; the first guesses two records, one of them wrongly."""
    machine = load_hardware("builtin:ds4-m5-pro")
    first = attrs.evolve(load_of(3, [1]), prefetches=(Key(1, 9), Key(1, 0)))
    loaded, costs = (first, load_of(3, [0, 2], layer=1)), attrs.evolve(machine.costs, dispatch=9, combine=7)
    records = (machine.record(9_999_999),)
    cases = [Scenario(loaded, records, costs, machine.storage, parse_discipline(name)) for name in names]
    return {str(case.discipline): (case, schedule(case)) for case in cases}


EVENT = {
    "type": "object",
    "required": ["name", "ph", "pid", "tid"],
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "pid": {"type": "integer", "minimum": 1},
        "tid": {"type": "integer", "minimum": 0},
        "ts": {"type": "number", "minimum": 0},
        "dur": {"type": "number", "minimum": 0},
        "cat": {"type": "string"},
    },
    "oneOf": [
        {"properties": {"ph": {"const": "X"}}, "required": ["ts", "dur", "cat"]},
        {"properties": {"ph": {"enum": ["b", "e"]}, "id": {"type": "string"}}, "required": ["ts", "cat", "id"]},
        {
            "properties": {"ph": {"const": "M"}, "name": {"enum": ["process_name", "thread_name"]},
                           "args": {"type": "object", "required": ["name"]}},
            "required": ["args"],
        },
    ],
}  # fmt: skip
SCHEMA = {
    "type": "object",
    "required": ["traceEvents"],
    "properties": {"traceEvents": {"type": "array", "items": EVENT}, "displayTimeUnit": {"enum": ["ms", "ns"]}},
}
"""What the Trace Event Format asks of the kinds of event that are written."""


def test_a_chrome_trace_has_the_structure_that_perfetto_reads() -> None:
    pictures = drawn("sync", "split:1")
    value = json.loads(chrome_trace(pictures))
    jsonschema.validate(value, SCHEMA)
    events = value["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert len(slices) == sum(len(found.spans) for _, found in pictures.values())
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in slices} <= named
    assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == ["sync", "split:1"]
    for thread in named:
        mine = [e for e in slices if (e["pid"], e["tid"]) == thread]
        spans = sorted((int(e["ts"] * 1000), int(e["ts"] * 1000) + int(e["dur"] * 1000)) for e in mine)
        assert all(end <= start for (_, end), (start, _) in pairwise(spans)), "slices of one thread must not overlap"


def test_perfetto_reads_back_every_nanosecond() -> None:
    seeded = Random("nanoseconds")
    large = (seeded.randrange(10 ** seeded.randrange(1, 16)) for _ in range(100_000))
    for nanoseconds in (*range(100_000), 8_352_810, 2**50, *large):
        value = json.loads(json.dumps(microseconds(nanoseconds)))
        assert int(value * 1000.0) == nanoseconds  # as Perfetto's importer does
        assert isinstance(value, float)


def test_no_thread_has_the_number_of_a_process_or_of_another_thread() -> None:
    machine = Storage(workers=64, lanes=64)
    case = Scenario((load_of(70, range(70)),), (load_hardware("builtin:ds4-m5-pro").record(999),), storage=machine)
    events = json.loads(chrome_trace(dict.fromkeys("abcdefghi", (case, schedule(case)))))["traceEvents"]
    threads = [(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"]
    assert len({tid for _, tid in threads}) == len(threads) == 9 * 65
    assert {pid for pid, _ in threads}.isdisjoint(tid for _, tid in threads)


def test_leases_open_and_close_and_times_are_microseconds() -> None:
    pictures = drawn("pipelined")
    ((case, found),) = pictures.values()
    events = json.loads(chrome_trace(pictures))["traceEvents"]
    leases = [(event["ph"], event["id"]) for event in events if event.get("cat") == "lease"]
    assert leases == [("b", "1.0"), ("e", "1.0"), ("b", "1.1"), ("e", "1.1")]
    assert max(event["ts"] for event in events if event.get("cat") == "lease") == found.makespan / 1000
    assert {event["name"] for event in events} >= {"read layer 1 expert 9", "gate_up layer 0 expert 1"}
    assert chrome_trace(pictures) == chrome_trace(drawn("pipelined"))
    assert len(case.loads) == 2


def test_a_chrome_trace_that_is_broken_fails_the_schema() -> None:
    value = json.loads(chrome_trace(drawn("sync")))
    del value["traceEvents"][-1]["ts"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, SCHEMA)


def test_every_task_has_a_colour_and_waits_add_up_to_the_exposed_time() -> None:
    seen = set()
    for case, found in drawn("sync", "split:1", "pipelined").values():
        seen |= {meaning(case, task) for task in found.spans}
        assert sum(end - start for start, end in waits(found)) == breakdown(found).exposed > 0
    assert seen == COLOURS.keys() - {"exposed wait"}


def test_a_wait_before_work_that_costs_nothing_is_seen() -> None:
    case = Scenario((load_of(2, [1]),), (load_hardware("builtin:ds4-m5-pro").record(999_999),), Costs(route=5))
    found = schedule(case)
    assert list(waits(found)) == [(5, found.makespan)]
    assert breakdown(found).exposed == found.makespan - 5 > 0


HOSTILE = ("cost $5 and $\\frac{$", "\x1b[31mred\x00--\ud800", "模型の名前", "a\nb" * 500, "")


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("form", ["png", "svg"])
def test_any_name_is_drawn_as_it_is_written(name: str, form: str) -> None:
    pytest.importorskip("matplotlib", reason="charts are in the extra `plot`")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = gantt({name: next(iter(drawn("sync").values()))}, name, form)
    if form == "svg":
        ElementTree.fromstring(made)  # well-formed


def test_a_schedule_that_takes_no_time_is_drawn() -> None:
    pytest.importorskip("matplotlib", reason="charts are in the extra `plot`")
    case = Scenario((load_of(2, []),), (load_hardware("builtin:ds4-m5-pro").record(999),))
    assert schedule(case).makespan == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gantt({"sync": (case, schedule(case))}, "nothing", "png").startswith(b"\x89PNG")


def test_without_matplotlib_drawing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"expertcache\[plot\]"):
        gantt(drawn("sync"), "title", "png")


@pytest.mark.parametrize(("form", "head"), [("png", b"\x89PNG\r\n\x1a\n"), ("svg", b"<?xml")])
def test_a_chart_is_a_picture_and_the_same_bytes_every_time(form: str, head: bytes) -> None:
    pytest.importorskip("matplotlib", reason="charts are in the extra `plot`")
    first, second = (gantt(drawn("sync", "split:1"), "a title", form) for _ in range(2))
    assert first.startswith(head)
    assert first == second
    assert first != gantt(drawn("sync"), "a title", form)
    assert len(first) > 10_000
