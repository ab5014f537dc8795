"""Legal: what makes a schedule a schedule, each rule as a sentence about times. The declarative side of the chapter.

Nothing here looks at a plan's dependencies or at how the evaluator works: the rules are stated from the loads, the
records and the costs, by scanning. Whoever made the schedule, `violations` names the rules that it breaks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import attrs

from expertcache_spec.schedule.legal_reads import DEMAND, READS
from expertcache_spec.schedule.look import Look, latest
from expertcache_spec.schedule.plan import Scenario
from expertcache_spec.schedule.tasks import COMPUTE, Schedule


class Violation(NamedTuple):
    """A rule that the schedule breaks, and where."""

    rule: str
    what: str


def violations(scenario: Scenario, schedule: Schedule) -> list[Violation]:
    """Every rule that the schedule breaks, with a witness each; empty where it is legal.

    A schedule that lacks a task, or has one too many, is judged no further. Costs time in proportion to the square of
    the tasks: it is for tests, and for schedules of an event or a few tokens.
    """
    look = Look(scenario, schedule)
    found = [Violation("XC-SCHED-001", what) for what in every_task_runs_once(look)]
    if not found:
        found = [Violation(rule, what) for rule, law in LAWS for what in law(look)]
    return found


def every_task_runs_once(look: Look) -> Iterator[str]:
    """Every task of every event runs, and nothing else does."""
    expected = set(look.expected())
    yield from (f"{task} does not run" for task in sorted(expected - look.schedule.spans.keys()))
    yield from (f"{task} is no task of the scenario" for task in sorted(look.schedule.spans.keys() - expected))


def a_task_takes_what_it_costs(look: Look) -> Iterator[str]:
    """A task on the compute queue takes exactly its cost."""
    costs = attrs.asdict(look.scenario.costs)
    for task, span in look.schedule.spans.items():
        if task.kind != "read":
            handoff = costs["handoff"] if task.kind == "dispatch" and task.place else 0
            if span.end - span.start != costs[task.kind] + handoff:
                yield f"{task} takes {span.end - span.start} ns"


def one_at_a_time(look: Look) -> Iterator[str]:
    """The compute queue runs one task at a time, each worker one request at a time."""
    lanes: dict[int, list[tuple[int, int]]] = {}
    for task, span in look.schedule.spans.items():
        known = range(look.scenario.storage.workers) if task.kind == "read" else (COMPUTE,)
        if span.lane not in known or span.start < 0:
            yield f"{task} runs on {span.lane} at {span.start}"
        lanes.setdefault(span.lane, []).append((span.start, span.end))
    for lane, spans in lanes.items():
        spans.sort()
        yield from (f"lane {lane} is taken at {b}" for (_, a), (b, _) in pairwise(spans) if b < a)


def stages_follow_each_other(look: Look) -> Iterator[str]:
    """Route comes before all compute of the event, a gate and up before its down, every down before the combine."""
    for event, load in enumerate(look.scenario.loads):
        routed, combined = look.span(event, "route").end, look.span(event, "combine").start
        for slot in range(len(load.keys)):
            first, second = look.span(event, "gate_up", slot), look.span(event, "down", slot)
            if not routed <= first.start <= first.end <= second.start <= second.end <= combined:
                yield f"event {event} slot {slot} is out of order"


def streams_and_selections_are_in_order(look: Look) -> Iterator[str]:
    """An event is selected after the event before it, and begins after its stream's event before it has executed."""
    for event, load in enumerate(look.scenario.loads):
        start = look.span(event, "route").start
        before = [e for e in range(event) if look.scenario.loads[e].stream == load.stream][-1:]
        if start < max([look.span(e, "combine").end for e in before], default=0):
            yield f"event {event} begins before the event before it has executed"
        if event and start < look.span(event - 1, "route").end:
            yield f"event {event} is selected out of turn"


def sums_are_in_slot_order(look: Look) -> Iterator[str]:
    """The combine of every event adds slot after slot, whatever arrived first; a schedule tells one sum an event."""
    told = look.schedule.sums
    if len(told) != len(look.scenario.loads):
        yield f"{len(told)} sums are told of {len(look.scenario.loads)} events"
    for event, (load, slots) in enumerate(zip(look.scenario.loads, told, strict=False)):
        if slots != tuple(range(len(load.keys))):
            yield f"event {event} adds {slots}"


# ------------------------------------------------------------------------------------------------ disciplines


def under(name: str, law: Callable[[Look, int], Iterable[str]]) -> Callable[[Look], Iterator[str]]:
    """The law for the events that run under that discipline."""

    def over_all(look: Look) -> Iterator[str]:
        for event, load in enumerate(look.scenario.loads):
            if look.scenario.discipline.taken(load) == name:
                yield from law(look, event)

    return over_all


def sync(look: Look, event: int) -> Iterator[str]:
    """All reads end before any compute of the event is launched."""
    if look.first(event, "dispatch", "gate_up", "down") < latest(look.reads(event)):
        yield f"event {event} computes before its reads have ended"


def split(look: Look, event: int) -> Iterator[str]:
    """The second launch follows the last read and the first batch; missing experts and the down pass follow it."""
    launch = look.span(event, "dispatch", 1).start
    missing = min(look.span(event, "gate_up", slot).start for slot in look.scenario.loads[event].absent)
    ready = max(latest(look.reads(event)), latest(look.stage(event, "gate_up", look.scenario.loads[event].present)))
    if launch < ready or missing < look.span(event, "dispatch", 1).end:
        yield f"event {event} launches its missing experts too early"
    yield from one_pass(look, event)


def staged(look: Look, event: int) -> Iterator[str]:
    """The missing experts' launch follows the gate and up of all that is read, the down pass's the last read."""
    load = look.scenario.loads[event]
    number = 1 if load.present else 0
    second, third = look.span(event, "dispatch", number), look.span(event, "dispatch", number + 1)
    ready = max(latest(look.reads(event, "gate_up")), latest(look.stage(event, "gate_up", load.present)))
    if second.start < ready or min(s.start for s in look.stage(event, "gate_up", load.absent)) < second.end:
        yield f"event {event} launches its missing experts too early"
    if third.start < latest(look.reads(event)) or look.first(event, "down") < third.end:
        yield f"event {event} launches its down pass too early"
    yield from one_pass(look, event)


def pipelined(look: Look, event: int) -> Iterator[str]:
    """Each missing expert waits for the whole of its own record and for its own launch, and for nothing else's."""
    load = look.scenario.loads[event]
    for number, slot in enumerate(load.absent, 1 if load.present else 0):
        launch = look.span(event, "dispatch", number)
        if launch.start < latest(look.reads_of(event, slot)) or look.span(event, "gate_up", slot).start < launch.end:
            yield f"event {event} slot {slot} is launched before its record is complete"


def one_pass(look: Look, event: int) -> Iterator[str]:
    """Every gate and up of the event ends before any down begins."""
    if look.first(event, "down") < latest(look.stage(event, "gate_up", range(len(look.scenario.loads[event].keys)))):
        yield f"event {event} begins its down pass too early"


def launched(look: Look) -> Iterator[str]:
    """Nothing of an event computes before the event's first launch, which follows its route."""
    for event in range(len(look.scenario.loads)):
        if look.span(event, "route").end > look.first(event, "dispatch"):
            yield f"event {event} is launched before its experts are known"
        first = min(span.end for _, span in look.schedule.of(event, "dispatch"))
        if look.first(event, "gate_up", "down") < first:
            yield f"event {event} computes before it is launched"


LAWS: tuple[tuple[str, Callable[[Look], Iterator[str]]], ...] = (
    ("XC-SCHED-001", a_task_takes_what_it_costs),
    ("XC-SCHED-002", one_at_a_time),
    *READS,
    ("XC-SCHED-004", stages_follow_each_other),
    ("XC-SCHED-004", streams_and_selections_are_in_order),
    ("XC-SCHED-004", launched),
    ("XC-SCHED-009", sums_are_in_slot_order),
    ("XC-SCHED-010", under("sync", sync)),
    ("XC-SCHED-011", under("split", split)),
    ("XC-SCHED-012", under("staged", staged)),
    ("XC-SCHED-013", under("pipelined", pipelined)),
    *DEMAND,
)
"""Rule to the law that states it."""
