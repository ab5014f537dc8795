"""Schedules by hand: what each discipline does, what guards it, what is refused, and that no counter ever changes."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from expertcache_spec.errors import UnknownName
from expertcache_spec.model import Budget, Key
from expertcache_spec.prefetch import Prefetch
from expertcache_spec.replay import Replay, replay
from expertcache_spec.schedule import (
    COMPUTE,
    Costs,
    Discipline,
    InvalidSchedule,
    Load,
    Plan,
    Scenario,
    Span,
    Storage,
    Task,
    TaskId,
    divided,
    ds4_split,
    evaluate,
    load_of,
    loads,
    make_plan,
    parse_discipline,
    schedule,
    violations,
)  # fmt: skip
from expertcache_spec.schedule.disciplines import NAMES
from expertcache_spec.trace import decode_trace

from .recordings import beginning, bigmoe
from .schedules import BYTE, scenario, under

THREE = scenario(
    [load_of(3, [1])], divided([4], [2]), route=1, gate_up=2, down=1, combine=1
)  # one of three is missing; its read takes six


@pytest.mark.rule("XC-SCHED-001", "XC-SCHED-010", "XC-SCHED-011", "XC-SCHED-012", "XC-SCHED-013")
@pytest.mark.parametrize(
    ("name", "gate_up", "down", "makespan"),
    [
        ("sync", [(7, 9), (9, 11), (11, 13)], [(13, 14), (14, 15), (15, 16)], 17),
        ("split", [(1, 3), (7, 9), (3, 5)], [(9, 10), (10, 11), (11, 12)], 13),
        ("staged", [(1, 3), (5, 7), (3, 5)], [(7, 8), (8, 9), (9, 10)], 11),
        ("pipelined", [(1, 3), (7, 9), (3, 5)], [(5, 6), (9, 10), (6, 7)], 11),
        ("free", [(1, 3), (5, 7), (3, 5)], [(7, 8), (8, 9), (9, 10)], 11),
    ],
)
def test_each_discipline_by_hand(name: str, gate_up: Any, down: Any, makespan: int) -> None:
    found = schedule(under(THREE, name))
    for kind, spans in (("gate_up", gate_up), ("down", down)):
        assert [found.spans[TaskId(0, kind, slot)][:2] for slot in range(3)] == spans  # type: ignore[arg-type]
    assert [found.spans[TaskId(0, "read", 1, part)] for part in (0, 1)] == [Span(1, 5, 0), Span(5, 7, 0)]
    assert found.makespan == makespan
    assert found.sums == ((0, 1, 2),)


@pytest.mark.rule("XC-SCHED-001")
def test_every_batch_pays_its_launch_and_all_but_the_first_the_handoff() -> None:
    costs = Costs(gate_up=1, dispatch=10, handoff=100)
    case = attrs.evolve(THREE, costs=costs)
    launches = {
        name: [span.end - span.start for _, span in schedule(under(case, name)).of(0, "dispatch")] for name in NAMES
    }
    assert launches == {
        "sync": [10], "split": [10, 110], "staged": [10, 110, 110], "pipelined": [10, 110], "free": [10],
    }  # fmt: skip


@pytest.mark.rule("XC-SCHED-003")
@pytest.mark.parametrize(
    ("workers", "lanes", "ends"),
    [
        (1, 1, [4, 8, 12, 14]),  # one after the other, each with all the bandwidth
        (2, 1, [8, 8, 14, 12]),  # two share: each twice as long, until one has the bandwidth to itself
        (4, 1, [14, 14, 14, 8]),  # four share until the short one is through, then three
        (4, 4, [16, 16, 16, 8]),  # a lane each: nobody takes what nobody else uses
        (4, 2, [14, 14, 14, 8]),
    ],
)
def test_bandwidth_is_shared_by_those_who_transfer(workers: int, lanes: int, ends: list[int]) -> None:
    case = scenario([load_of(1, [0])], divided([4, 4], [4, 2]), workers=workers, lanes=lanes)
    found = schedule(case)
    assert [span.end for _, span in sorted(found.of(0, "read"))] == ends
    assert violations(case, found) == []


@pytest.mark.rule("XC-SCHED-003")
def test_a_nanosecond_that_divides_into_thirds_is_not_rounded() -> None:
    case = scenario([load_of(3, [0, 1, 2])], divided([1], [0]), workers=6)
    assert [span.end for _, span in schedule(case).of(0, "read")].count(3) == 3
    case = attrs.evolve(case, storage=attrs.evolve(case.storage, latency=5))
    assert schedule(case).makespan == 8


@pytest.mark.rule("XC-SCHED-003")
def test_warm_bytes_take_their_share_of_the_warm_bandwidth() -> None:
    cold = Storage(bandwidth=BYTE, latency=100)
    half = attrs.evolve(cold, warm_percent=50, warm_bandwidth=4 * BYTE, warm_latency=10)
    assert (cold.wait, cold.transfer(1000)) == (100, 1000)
    assert (half.wait, half.transfer(1000)) == (55, 625)
    assert attrs.evolve(half, latency=101).wait == 56  # 55.5: a request never waits less than its mean
    assert (half.transfer(1), half.transfer(0)) == (1, 0)
    assert attrs.evolve(half, warm_percent=100).transfer(1000) == 250


@pytest.mark.rule("XC-SCHED-011")
def test_split_is_taken_at_the_threshold_and_above_while_something_is_resident() -> None:
    taken = {
        threshold: [Discipline("split", threshold).taken(load_of(4, range(missing))) for missing in range(5)]
        for threshold in (1, 2, 3)
    }
    assert taken == {
        1: ["sync", "split", "split", "split", "sync"],
        2: ["sync", "sync", "split", "split", "sync"],
        3: ["sync", "sync", "sync", "split", "sync"],
    }


@pytest.mark.rule("XC-SCHED-011")
def test_the_split_of_ds4_waits_for_its_fourth_token_and_a_filled_cache() -> None:
    load = attrs.evolve(load_of(6, [0, 1, 2]), tokens=4, entries=1024)
    split = ds4_split(2048)
    assert split.taken(load) == "split"
    assert split.taken(attrs.evolve(load, tokens=3)) == "sync"
    assert split.taken(attrs.evolve(load, entries=1023)) == "sync"
    assert split.taken(attrs.evolve(load, missing=frozenset(load.keys[:2]))) == "sync"
    assert [ds4_split(slots).entries for slots in (1889, 2047, 3000, 4096)] == [944, 1023, 1024, 1024]


@pytest.mark.rule("XC-SCHED-008")
def test_a_replay_gives_loads_with_the_facts_that_the_guards_need() -> None:
    trace = decode_trace([[0, 1], [2, 3], [0, 4], [2, 3]], layers=2, experts=8)
    found = [load for _, load in loads(Replay(trace, "lru", Budget(slots=3)))]
    assert [(load.absent, load.tokens, load.entries) for load in found] == [
        ((0, 1), 1, 0), ((0, 1), 1, 2), ((0, 1), 2, 3), ((0,), 2, 3),
    ]  # fmt: skip
    assert found[1].victims == (Key(0, 0),)
    prefill = [attrs.evolve(event, phase="prefill", pass_index=event.pass_index + 2) for event in trace.events[:2]]
    mixed = attrs.evolve(trace, events=(*trace.events, *prefill))
    assert [load.tokens for _, load in loads(Replay(mixed, "lru", Budget(slots=3)))] == [1, 1, 2, 2, 0, 0]


@pytest.mark.rule("XC-SCHED-008")
@pytest.mark.parametrize("how", [{"home": "slot"}, {"cap": Budget(slots=2)}])
def test_a_replay_that_prefetches_is_refused_before_it_runs_and_one_that_guesses_nothing_is_not(how: Any) -> None:
    trace = decode_trace([[0, 1], [2, 3]] * 2)
    run = Replay(trace, "lru", Budget(slots=3), prefetch=Prefetch("oracle", **how))
    with pytest.raises(InvalidSchedule, match="predictor oracle"):
        loads(run)
    none = Replay(trace, "lru", Budget(slots=3), prefetch=Prefetch())
    plain = Replay(trace, "lru", Budget(slots=3))
    assert list(loads(none)) == list(loads(plain))


@pytest.mark.rule("XC-SCHED-008")
def test_no_discipline_threshold_or_cost_changes_a_counter() -> None:
    trace = beginning(bigmoe("qwen"), 12)
    budget = Budget(bytes=2_000 * 2**20)
    before = replay(trace, "lru", budget).counters
    run = Replay(trace, "lru", budget)
    found = [load for _, load in loads(run)]
    assert run.result().counters == before
    tail = tuple(found[-48:])
    counted = set()
    for discipline in (*map(Discipline, NAMES), *(Discipline("split", t) for t in (2, 3, 4))):
        for costs in (Costs(route=5, gate_up=2), Costs(dispatch=9)):
            case = Scenario(tail, (divided([4, 4], [4]),), costs, Storage(3, 2, BYTE), discipline)
            reads = [task for task in schedule(case).spans if task.kind == "read"]
            counted.add((len(reads), len({task[:3] for task in reads})))
    assert counted == {(3 * misses, misses) for misses in {sum(len(load.missing) for load in tail)}}


@pytest.mark.rule("XC-SCHED-007")
def test_tasks_that_wait_for_each_other_are_refused() -> None:
    first, second = TaskId(0, "gate_up"), TaskId(0, "down")
    circle = Plan((Task(first, 1, frozenset({second})), Task(second, 1, frozenset({first}))), ((0,),))
    with pytest.raises(InvalidSchedule, match="waits for ever"):
        evaluate(circle, Storage())


@pytest.mark.rule("XC-SCHED-007")
def test_a_schedule_is_the_same_every_time_and_names_its_lanes() -> None:
    case = under(attrs.evolve(THREE, storage=Storage(2, 1, BYTE)), "pipelined")
    first, second = schedule(case), schedule(case)
    assert first == second
    assert {span.lane for task, span in first.spans.items() if task.kind != "read"} == {COMPUTE}
    assert [span.lane for _, span in first.of(0, "read")] == [1, 0]  # in the order of their ends


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: Costs(route=-1), id="a negative cost"),
        pytest.param(lambda: Costs(gate_up=0.5), id="half a nanosecond"),  # type: ignore[arg-type]
        pytest.param(lambda: Storage(workers=0), id="no worker"),
        pytest.param(lambda: Storage(workers=65), id="too many workers"),
        pytest.param(lambda: Storage(warm_percent=101), id="more than warm"),
        pytest.param(lambda: Storage(warm_percent=1), id="warm without bandwidth"),
        pytest.param(lambda: divided([], [1]), id="a stage without bytes"),
        pytest.param(lambda: divided([-1], [1]), id="negative bytes"),
        pytest.param(lambda: Discipline("split", 0), id="threshold 0"),
        pytest.param(lambda: Load(()), id="no key"),
        pytest.param(lambda: Load((Key(0, 0), Key(0, 0))), id="a key twice"),
        pytest.param(lambda: Load((Key(0, 0),), frozenset({Key(0, 1)})), id="a strange miss"),
        pytest.param(lambda: Load((Key(0, 0),), victims=(Key(0, 0),)), id="its own victim"),
        pytest.param(lambda: scenario([]), id="no event"),
        pytest.param(lambda: Scenario((load_of(1, [], layer=2),), (divided([1], [1]),) * 2), id="no record"),
    ],
)
def test_what_makes_no_schedule_is_refused(make: Any) -> None:
    with pytest.raises(InvalidSchedule, match="Cure"):
        make()


@pytest.mark.rule("XC-EVICT-001")
@pytest.mark.parametrize("text", ["spilt", "split:", "split:x", "split:3:4", "split:-1", ""])
def test_an_unknown_discipline_is_refused_with_the_known_ones(text: str) -> None:
    with pytest.raises(UnknownName, match=r"one of sync, split|as in split:3"):
        parse_discipline(text)


@pytest.mark.parametrize("text", ["free:3", "sync:2", "sync:1", "sync:", "split:0", "split:1" + "0" * 5000])
def test_a_threshold_that_is_none_or_not_looked_at_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UnknownName, match=r"is always taken|from 1 to 1000000000") as refusal:
        parse_discipline(text)
    assert len(str(refusal.value)) < 200


def test_a_discipline_prints_as_it_is_read() -> None:
    for text in ("sync", "split:1", "split:3", "staged", "pipelined:2", "free"):
        assert str(parse_discipline(text)) == text
    assert parse_discipline("split") == Discipline("split", 1)
    assert make_plan(under(THREE, "free")).rank[TaskId(0, "route")] == 0
