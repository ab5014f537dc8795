"""The executed schedule: what the runtime does with a scenario is legal, and alone in its stream it idles nowhere."""

from __future__ import annotations

import random
from pathlib import Path

import attrs
import pytest

from expertcache_conformance.questions.drawing import scenario
from expertcache_reference.runtime.executed import plan_schedule
from expertcache_reference.system.simulated import Device, Simulation, simulated
from expertcache_spec.errors import UnknownName
from expertcache_spec.model import Key
from expertcache_spec.schedule import (
    Costs,
    Discipline,
    Scenario,
    Schedule,
    Span,
    Storage,
    TaskId,
    divided,
    load_of,
    schedule,
    violations,
)
from expertcache_spec.schedule.work import Load

NAMES = ("sync", "split", "staged", "pipelined")


def executed(found: Scenario) -> Schedule:
    answer = plan_schedule(found)
    spans = {TaskId(*row[:4]): Span(*row[4:]) for row in answer["tasks"]}
    return Schedule(spans, tuple(answer["sums"]))


def drawn(name: str, number: int) -> Scenario:
    return scenario(name, random.Random(f"executed {name} {number}").randrange)


@pytest.mark.rule("XC-SCHED-001", "XC-SCHED-003", "XC-SCHED-005", "XC-SCHED-006", "XC-SCHED-014", "XC-SCHED-015")
@pytest.mark.parametrize("name", NAMES)
def test_what_the_runtime_does_is_legal(name: str) -> None:
    for number in range(25):
        assert violations(drawn(name, number), executed(drawn(name, number))) == []


@pytest.mark.rule("XC-SCHED-005", "XC-SCHED-015")
def test_a_hit_on_a_guess_waits_for_it_also_where_the_record_was_there_before() -> None:
    beside = load_of(1, [], layer=1)
    guess, leave = attrs.evolve(beside, prefetches=(Key(0, 0),)), attrs.evolve(beside, victims=(Key(0, 0),))
    for before in ((), (load_of(1, [0]), leave), (load_of(1, []), leave)):
        costs = Costs(route=1, gate_up=1, down=1, combine=1)
        found = Scenario((*before, guess, load_of(1, [])), (divided([9], [9]),), costs, Storage(3, 2))
        answer = executed(found)
        assert violations(found, answer) == []
        assert (
            answer.spans[TaskId(len(before) + 1, "gate_up")].start
            >= answer.spans[TaskId(len(before), "read", 1, 1)].end
        )


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_what_the_runtime_does_is_legal_in_two_thousand_scenarios(name: str) -> None:
    for number in range(500):
        assert violations(drawn(name, number), executed(drawn(name, number))) == [], number


@pytest.mark.parametrize("name", NAMES)
def test_in_one_stream_without_speculation_it_ends_when_the_evaluator_does(name: str) -> None:
    for number in range(40):
        found = drawn(name, number)
        loads = tuple(attrs.evolve(load, stream=0, prefetches=()) for load in found.loads)
        alone = attrs.evolve(found, loads=loads)
        ends, least = executed(alone).makespan, schedule(alone).makespan
        if name == "staged" and alone.discipline.reads == "record":
            assert ends >= least, number  # records that are not read in stages are there as a whole or not at all
        else:
            assert ends == least, number


def test_a_run_is_repeatable() -> None:
    assert plan_schedule(drawn("pipelined", 3)) == plan_schedule(drawn("pipelined", 3))


def test_reads_overlap_the_work_of_the_residents() -> None:
    costs = Costs(route=5, gate_up=20, down=10, combine=3, dispatch=2, handoff=1)
    base = Scenario((load_of(4, [2, 3]),), (divided([40], [20]),), costs, Storage(2, 1), Discipline("split"))
    split, sync = (executed(attrs.evolve(base, discipline=Discipline(name))) for name in ("split", "sync"))
    assert split.spans[TaskId(0, "gate_up", 0)].start < split.spans[TaskId(0, "read", 3)].end
    assert sync.makespan - split.makespan == 39  # two gate_up hidden behind the reads, less a handoff


def test_a_victim_in_use_holds_up_the_read_that_takes_its_room() -> None:
    first, second = Key(0, 0), Key(0, 1)
    loads = (
        Load((first,), frozenset({first})),
        Load((second,), frozenset({second}), victims=(first,), stream=1),
    )
    found = executed(Scenario(loads, (divided([4], [4]),), Costs(gate_up=50, combine=1)))
    assert found.spans[TaskId(1, "read")].start == found.spans[TaskId(0, "combine")].end


def test_free_is_a_bound_and_runs_on_no_machine() -> None:
    with pytest.raises(UnknownName, match="free"):
        plan_schedule(Scenario((load_of(1, []),), (divided([1], [1]),), discipline=Discipline("free")))


@pytest.mark.rule("XC-SCHED-003")
def test_a_shared_device_slows_all_down_when_one_more_joins() -> None:
    storage, ends = Storage(workers=3, bandwidth=10**9, latency=10), list[tuple[str, int]]()
    with simulated(Simulation({"/f": bytes(1000)}, device=Device(shared=storage))) as machine:
        file = machine.open(Path("/f"))

        def read(name: str, wait: int, size: int) -> None:
            machine.spend(wait)
            file.read_into(memoryview(bytearray(size)), 0)
            ends.append((name, machine.now()))

        threads = [
            machine.spawn(name, lambda name=name, wait=wait, size=size: read(name, wait, size))  # type: ignore[misc]
            for name, wait, size in (("a", 0, 100), ("b", 40, 60))
        ]
        for thread in threads:
            thread.join()
        file.close()
    # a has 40 bytes alone; then two share: b needs 120 ns for its 60, a 120 ns for its other 60.
    assert ends == [("a", 170), ("b", 170)] or ends == [("b", 170), ("a", 170)]
