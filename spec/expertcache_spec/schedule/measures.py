"""Measures: where the time of a schedule goes, and what no discipline goes below. Integers; ratios are the reader's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import attrs

from expertcache_spec.contracts import ensure
from expertcache_spec.schedule.disciplines import Discipline
from expertcache_spec.schedule.plan import Scenario, make_plan
from expertcache_spec.schedule.tasks import COMPUTE, Schedule, TaskId

Interval = tuple[int, int]


class Breakdown(NamedTuple):
    """Where the makespan goes, in nanoseconds (XC-SCHED-022).

    compute: the queue works on route, experts and combines. overhead: it launches batches. exposed: it waits while
    reads are in service. hidden: reads are in service while it works. makespan = compute + overhead + exposed, and
    the read wall is exposed + hidden.
    """

    makespan: int
    compute: int
    overhead: int
    exposed: int
    hidden: int

    @property
    def read_wall(self) -> int:
        """Time in which at least one read is in service."""
        return self.exposed + self.hidden

    @property
    def hideable(self) -> int:
        """The most that could be hidden if nothing had to wait for anything."""
        return min(self.read_wall, self.compute + self.overhead)

    def __add__(self, other: object) -> Breakdown:
        """Both, one after the other."""
        if not isinstance(other, Breakdown):
            return NotImplemented
        return Breakdown(*(a + b for a, b in zip(self, other, strict=True)))

    def times(self, count: int) -> Breakdown:
        """That many of it, one after the other."""
        return Breakdown(*(count * part for part in self))


NOTHING = Breakdown(0, 0, 0, 0, 0)


@ensure(lambda result: result.makespan == result.compute + result.overhead + result.exposed, "XC-SCHED-022")
def breakdown(schedule: Schedule) -> Breakdown:
    """The breakdown of an evaluated schedule, up to its makespan."""
    spans, end = schedule.spans.items(), schedule.makespan
    launches = sum(span.end - span.start for task, span in spans if task.kind == "dispatch")
    queue = [(span.start, span.end) for _, span in spans if span.lane == COMPUTE]
    reads = union([(span.start, min(span.end, end)) for _, span in spans if span.lane != COMPUTE])
    busy, both = length(queue), length(queue) + length(reads) - length(union([*queue, *reads]))
    return Breakdown(end, busy - launches, launches, length(reads) - both, both)


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same instants as disjoint intervals in order.

    >>> from expertcache_spec.schedule.measures import union
    >>> union([(3, 5), (0, 2), (4, 6), (2, 2)])
    [(0, 2), (3, 6)]
    """
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif start < end:
            found.append((start, end))
    return found


def length(intervals: Iterable[Interval]) -> int:
    """The sum of the lengths."""
    return sum(end - start for start, end in intervals)


class Bounds(NamedTuple):
    """Nanoseconds that no schedule of these loads goes below, each for its own reason (XC-SCHED-021).

    compute: the queue has that much to do, one launch an event included. bandwidth: so long do all demanded bytes
    take. workers: so long do the workers hold their requests. path: the longest chain in which each waits for the last.
    """

    compute: int
    bandwidth: int
    workers: int
    path: int


def bounds(scenario: Scenario) -> Bounds:
    """The lower bounds of the scenario's loads under every discipline, speculation that nothing adopts left out."""
    plan = make_plan(attrs.evolve(scenario, discipline=Discipline("free")))
    storage, slots = scenario.storage, [len(load.keys) for load in scenario.loads]
    reads = [task for task in plan.tasks if task.is_read and task.id.place < slots[task.id.event]]
    service = {task.id: task.duration + task.transfer * storage.lanes for task in reads}
    ends: dict[TaskId, int] = {}
    pending = list(plan.tasks)
    while pending:  # an adopted read stands in the plan before the event that adopts it
        later = []
        for task in pending:
            if task.after <= ends.keys():
                ends[task.id] = max((ends[b] for b in task.after), default=0) + service.get(task.id, task.duration)
            else:
                later.append(task)
        pending = later
    return Bounds(
        sum(task.duration for task in plan.tasks if not task.is_read),
        sum(task.transfer for task in reads),
        -(-sum(service.values()) // storage.workers),
        max(end for task, end in ends.items() if task.kind == "combine"),
    )
