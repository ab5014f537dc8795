"""The checker and the evaluator, which share words and no rules: what one makes the other passes; each can break."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from expertcache_spec.model import Key
from expertcache_spec.schedule import (
    COMPUTE,
    Load,
    Plan,
    Scenario,
    Schedule,
    Span,
    TaskId,
    divided,
    evaluate,
    load_of,
    make_plan,
    schedule,
    violations,
)  # fmt: skip
from expertcache_spec.schedule.disciplines import NAMES
from expertcache_spec.schedule.eager import idleness

from .schedules import random_scenario, scenario, under

VOLUME = 150


def check(seeds: range) -> None:
    """Every schedule of those seeds is legal and eager."""
    tasks, reads, disciplines = 0, 0, set()
    for seed in seeds:
        case = random_scenario(seed)
        plan = make_plan(case)
        found = evaluate(plan, case.storage)
        assert violations(case, found) == [], seed
        assert idleness(plan, case.storage, found) == [], seed
        tasks += len(plan.tasks)
        reads += sum(task.is_read for task in plan.tasks)
        disciplines |= {case.discipline.taken(load) for load in case.loads}
    assert tasks > 30 * len(seeds)
    assert reads > 5 * len(seeds)
    assert disciplines == set(NAMES)


@pytest.mark.rule(
    "XC-SCHED-001", "XC-SCHED-002", "XC-SCHED-003", "XC-SCHED-004", "XC-SCHED-005", "XC-SCHED-006", "XC-SCHED-007",
    "XC-SCHED-009", "XC-SCHED-010", "XC-SCHED-011", "XC-SCHED-012", "XC-SCHED-013", "XC-SCHED-014", "XC-SCHED-015",
)  # fmt: skip
def test_every_evaluated_schedule_is_legal_and_eager() -> None:
    check(range(VOLUME))


@pytest.mark.nightly
@pytest.mark.rule("XC-SCHED-001", "XC-SCHED-007")
def test_every_evaluated_schedule_is_legal_and_eager_in_volume() -> None:
    check(range(VOLUME, 10 * VOLUME))


# ------------------------------------------------------------------------------------- schedules that are wrong

ONE = scenario([load_of(3, [0, 2])], divided([4], [2]), route=1, gate_up=2, down=1, combine=1, dispatch=1, handoff=1)
TWO = scenario(
    [load_of(2, [0]), attrs.evolve(load_of(2, [1], layer=1), victims=(Key(0, 1),))], divided([2], [1]), route=1,
    gate_up=1, down=1, combine=1, workers=2,
)  # fmt: skip
STREAMS = attrs.evolve(TWO, loads=(TWO.loads[0], attrs.evolve(TWO.loads[1], stream=1)))
JOINED = scenario([load_of(1, [0]), load_of(1, [], stream=1)], divided([3], [3]), gate_up=1, down=1)
GUESS = scenario(
    [attrs.evolve(load_of(1, [0]), prefetches=(Key(1, 0), Key(1, 7))), load_of(2, [0, 1], layer=1)], divided([2], [2]),
    route=1, gate_up=1,
)  # fmt: skip

TRUE = scenario(
    [attrs.evolve(load_of(1, []), prefetches=(Key(1, 9), Key(1, 0))), load_of(1, [0], layer=1)], divided([10], [10]),
    route=1, gate_up=2, down=1, combine=1,
)  # fmt: skip
HIT = scenario([attrs.evolve(load_of(1, []), prefetches=(Key(1, 0),)), load_of(1, [], layer=1)], route=1, gate_up=1)
LEFT = scenario(
    [attrs.evolve(load_of(1, []), prefetches=(Key(1, 0),)),
     attrs.evolve(load_of(1, [], stream=1, first=1), victims=(Key(1, 0),)), load_of(1, [0], layer=1, stream=2)],
    divided([9], [9]), route=1, workers=3,
)  # fmt: skip
HALF = scenario([load_of(2, [1])], divided([5], [10]), "staged", gate_up=1, down=3)


def launched_early(case: Scenario) -> Schedule:
    """The down pass is launched before the last read: the resident's runs early, the other's when its bytes are in."""
    found = schedule(case)
    early = {of(0, "dispatch", 2): Span(6, 6, COMPUTE), of(0, "down", 0): Span(6, 9, COMPUTE),
             of(0, "down", 1): Span(15, 18, COMPUTE), of(0, "combine"): Span(18, 18, COMPUTE)}  # fmt: skip
    assert found.spans.keys() > early.keys()
    return Schedule({**found.spans, **early}, found.sums)


def moved(case: Scenario, task: TaskId, by: int, length: int | None = None) -> Schedule:
    """The evaluated schedule with one task elsewhere."""
    found = schedule(case)
    start, end, lane = found.spans[task]
    span = Span(start + by, start + by + (end - start if length is None else length), lane)
    return Schedule({**found.spans, task: span}, found.sums)


def without(case: Scenario, task: TaskId) -> Schedule:
    """The evaluated schedule without one task."""
    found = schedule(case)
    return Schedule({name: span for name, span in found.spans.items() if name != task}, found.sums)


def as_if(case: Scenario, change: Callable[[Plan], Plan]) -> Schedule:
    """What the evaluator makes of a plan that is not the scenario's."""
    return evaluate(change(make_plan(case)), case.storage)


def lacking(task: TaskId, *before: TaskId, first: bool = False) -> Callable[[Plan], Plan]:
    """The plan in which the task does not wait for those tasks, and perhaps stands first in the queue."""

    def change(plan: Plan) -> Plan:
        tasks = [attrs.evolve(t, after=t.after - set(before)) if t.id == task else t for t in plan.tasks]
        assert list(plan.tasks) != tasks
        return attrs.evolve(plan, tasks=tuple(sorted(tasks, key=lambda t: first and t.id != task)))

    return change


def overwriting(plan: Plan) -> Plan:
    """The plan in which the second event's reads do not wait for the first one's combine."""
    for part in (0, 1):
        plan = lacking(of(1, "read", 1, part), of(0, "combine"))(plan)
    return plan


def eager_speculation(plan: Plan) -> Plan:
    """The plan in which nothing is known to be speculative."""
    return attrs.evolve(plan, tasks=tuple(attrs.evolve(t, speculative=False, wanted=None) for t in plan.tasks))


def of(event: int, kind: str, place: int = 0, part: int = 0) -> TaskId:
    return TaskId(event, kind, place, part)  # type: ignore[arg-type]


WRONG: dict[str, tuple[str, Scenario, Callable[[Scenario], Schedule]]] = {
    "a down is left out": ("XC-SCHED-001", ONE, lambda c: without(c, of(0, "down", 1))),
    "a tail request is dropped": ("XC-SCHED-001", ONE, lambda c: without(c, of(0, "read", 2, 1))),
    "a launch is free": ("XC-SCHED-001", ONE, lambda c: moved(c, of(0, "dispatch"), 0, 0)),
    "the handoff is not paid": ("XC-SCHED-001", under(ONE, "split"), lambda c: moved(c, of(0, "dispatch", 1), 0, 1)),
    "two kernels at a time": ("XC-SCHED-002", ONE, lambda c: moved(c, of(0, "gate_up", 1), -1)),
    "one worker too many": ("XC-SCHED-002", ONE, lambda c: evaluate(make_plan(c), attrs.evolve(c.storage, workers=2))),
    "a reader leaves bandwidth to nobody": (
        "XC-SCHED-003", ONE, lambda c: evaluate(make_plan(c), attrs.evolve(c.storage, lanes=2))
    ),
    "a read ends early": ("XC-SCHED-003", ONE, lambda c: moved(c, of(0, "read", 2, 1), 0, 1)),
    "a read dawdles": ("XC-SCHED-003", ONE, lambda c: moved(c, of(0, "read", 2, 1), 0, 20)),
    "the down comes before its gate and up": (
        "XC-SCHED-004", under(ONE, "pipelined"),
        lambda c: as_if(c, lacking(of(0, "down", 0), of(0, "gate_up", 0), first=True)),
    ),
    "the combine does not wait": (
        "XC-SCHED-004", under(ONE, "pipelined"), lambda c: as_if(c, lacking(of(0, "combine"), of(0, "down", 2)))
    ),
    "a layer begins before the layer before it": (
        "XC-SCHED-004", TWO, lambda c: as_if(c, lacking(of(1, "route"), of(0, "combine")))
    ),
    "a read before the router has answered": ("XC-SCHED-004", ONE, lambda c: moved(c, of(0, "read", 0), -1)),
    "a read after its compute": (
        "XC-SCHED-005", under(ONE, "free"), lambda c: as_if(c, lacking(of(0, "gate_up", 0), of(0, "read", 0)))
    ),
    "a hit on a record that is still being read": (
        "XC-SCHED-005", JOINED,
        lambda c: as_if(c, lacking(of(1, "gate_up"), of(0, "read", 0, 0), of(0, "read", 0, 1))),
    ),
    "a lease that ends at encode": ("XC-SCHED-006", STREAMS, lambda c: as_if(c, overwriting)),
    "a combine by arrival": (
        "XC-SCHED-009", ONE, lambda c: attrs.evolve(schedule(c), sums=((1, 0, 2),))
    ),
    "sync computes residents early": (
        "XC-SCHED-010", ONE, lambda c: as_if(c, lacking(of(0, "dispatch"), of(0, "read", 2, 1)))
    ),
    "split does not wait for the last read": (
        "XC-SCHED-011", under(ONE, "split"),
        lambda c: as_if(c, lacking(of(0, "dispatch", 1), of(0, "read", 2, 1))),
    ),
    "split begins its down pass early": (
        "XC-SCHED-011", under(ONE, "split"),
        lambda c: as_if(c, lacking(of(0, "down", 1), of(0, "gate_up", 0), of(0, "gate_up", 2), first=True)),
    ),
    "staged launches before all gates and ups are read": (
        "XC-SCHED-012", under(ONE, "staged"),
        lambda c: as_if(c, lacking(of(0, "dispatch", 1), of(0, "read", 2, 0))),
    ),
    "pipelined launches half a record": (
        "XC-SCHED-013", under(ONE, "pipelined"),
        lambda c: as_if(c, lacking(of(0, "dispatch", 1), of(0, "read", 0, 1))),
    ),
    "speculation before demand": ("XC-SCHED-014", GUESS, lambda c: as_if(c, eager_speculation)),
    "speculation before a guess that came true": ("XC-SCHED-014", TRUE, lambda c: as_if(c, eager_speculation)),
    "a hit on a guess that is still being read": (
        "XC-SCHED-005", HIT, lambda c: as_if(c, lacking(of(1, "gate_up"), of(0, "read", 1, 0), of(0, "read", 1, 1)))
    ),
    "a record beside a guess of it that has left": (
        "XC-SCHED-015", LEFT, lambda c: as_if(c, lacking(of(2, "read"), of(0, "read", 1, 0), of(0, "read", 1, 1)))
    ),
    "staged launches its down pass before the last read": ("XC-SCHED-012", HALF, launched_early),
}  # fmt: skip


@pytest.mark.rule(
    "XC-SCHED-001", "XC-SCHED-002", "XC-SCHED-003", "XC-SCHED-004", "XC-SCHED-005", "XC-SCHED-006", "XC-SCHED-009",
    "XC-SCHED-010", "XC-SCHED-011", "XC-SCHED-012", "XC-SCHED-013", "XC-SCHED-014", "XC-SCHED-015",
)  # fmt: skip
@pytest.mark.parametrize("name", WRONG)
def test_a_schedule_that_breaks_a_rule_is_told_which(name: str) -> None:
    rule, case, wrong = WRONG[name]
    assert violations(case, schedule(case)) == []
    assert rule in {violation.rule for violation in violations(case, wrong(case))}


def test_the_wrong_schedules_break_every_rule_that_the_checker_states() -> None:
    from expertcache_spec.schedule.legal import LAWS

    assert {rule for rule, _, _ in WRONG.values()} == {rule for rule, _ in LAWS}


@pytest.mark.rule("XC-SCHED-007")
def test_a_schedule_that_waits_for_nothing_is_legal_and_not_eager() -> None:
    case = scenario([load_of(1, [])], gate_up=1, down=1)
    late = moved(case, of(0, "combine"), 5)
    assert violations(case, late) == []
    assert idleness(make_plan(case), case.storage, late) == [
        "TaskId(event=0, kind='combine', place=0, part=0) could start at 2 on lane -1 and starts at 7"
    ]


@pytest.mark.rule("XC-SCHED-007")
def test_a_queue_that_is_served_out_of_order_is_not_eager() -> None:
    case = scenario([load_of(1, [0])], divided([2, 2, 2], [2]))
    found = schedule(case)
    second, third = (of(0, "read", 0, part) for part in (1, 2))
    spans = {**found.spans, second: found.spans[third], third: found.spans[second]}
    swapped = Schedule(spans, found.sums)
    assert violations(case, swapped) == []
    assert len(idleness(make_plan(case), case.storage, swapped)) == 1


@pytest.mark.rule("XC-SCHED-009")
def test_sums_in_slot_order_are_the_same_bits_and_sums_by_arrival_are_not() -> None:
    terms = (0.1, 0.2, 0.3)
    by_slot, by_arrival = set(), set()
    for name in NAMES:
        found = schedule(under(attrs.evolve(ONE, loads=(load_of(3, [0]),)), name))
        arrival = sorted(range(3), key=lambda slot: found.spans[of(0, "down", slot)].end)
        by_slot.add(added(terms, found.sums[0]))
        by_arrival.add(added(terms, arrival))
    assert len(by_slot) == 1
    assert len(by_arrival) == 2


def added(terms: tuple[float, ...], order: tuple[int, ...] | list[int]) -> float:
    """The terms added one after the other in that order."""
    total = 0.0
    for slot in order:
        total += terms[slot]
    return total


@pytest.mark.rule("XC-SCHED-006", "XC-SCHED-005")
def test_several_layers_in_flight_wait_for_each_others_leases_and_reads() -> None:
    found = schedule(STREAMS)
    overwritten = min(span.start for _, span in found.of(1, "read"))
    assert overwritten == found.spans[of(0, "combine")].end
    kept = attrs.evolve(STREAMS.loads[1], victims=())
    apart = schedule(attrs.evolve(STREAMS, loads=(STREAMS.loads[0], kept)))
    assert min(span.start for _, span in apart.of(1, "read")) < overwritten
    joined = schedule(JOINED)
    assert joined.spans[of(1, "gate_up")].start >= joined.spans[of(0, "read", 0, 1)].end
    assert {task.kind for task in found.spans if found.spans[task].lane == COMPUTE}.isdisjoint({"read"})


def test_a_load_knows_its_slots() -> None:
    load = Load((Key(3, 5), Key(3, 2)), frozenset({Key(3, 2)}))
    assert (load.layer, load.absent, load.present) == (3, (1,), (0,))


@pytest.mark.rule("XC-SCHED-009")
@pytest.mark.parametrize("sums", [(), ((0, 1),), ((0, 1), (0, 1), (0, 1)), ((0, 1), (1, 0))])
def test_a_schedule_tells_one_sum_for_each_event(sums: tuple[tuple[int, ...], ...]) -> None:
    found = violations(TWO, attrs.evolve(schedule(TWO), sums=sums))
    assert {violation.rule for violation in found} == {"XC-SCHED-009"}
