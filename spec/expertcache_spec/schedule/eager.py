"""Eager: what the evaluator promises beyond a legal schedule. Nothing idles that could work, and queues keep order.

A legal schedule may wait; one that is compared across disciplines must not, or it compares two ways of waiting.
"""

from __future__ import annotations

from collections.abc import Iterator

from expertcache_spec.schedule.costs import Storage
from expertcache_spec.schedule.measures import union
from expertcache_spec.schedule.tasks import COMPUTE, Plan, Schedule, Task


def idleness(plan: Plan, storage: Storage, schedule: Schedule) -> list[str]:
    """Each task that waited although it could have started, and each that was overtaken (XC-SCHED-007)."""
    return [*_idle(plan, storage, schedule), *_overtaken(plan, schedule)]


def _ready(task: Task, schedule: Schedule) -> int:
    """When all that the task waits for had ended."""
    return max((schedule.spans[before].end for before in task.after), default=0)


def _idle(plan: Plan, storage: Storage, schedule: Schedule) -> Iterator[str]:
    """From the moment a task could start until it does, every lane that would do is taken."""
    lanes = {False: [COMPUTE], True: list(range(storage.workers))}
    taken = {
        lane: union((span.start, span.end) for span in schedule.spans.values() if span.lane == lane)
        for lane in (COMPUTE, *lanes[True])
    }
    for task in plan.tasks:
        ready, start = _ready(task, schedule), schedule.spans[task.id].start
        for lane in lanes[task.is_read]:
            if ready < start and not any(a <= ready and start <= b for a, b in taken[lane]):
                yield f"{task.id} could start at {ready} on lane {lane} and starts at {start}"


def _overtaken(plan: Plan, schedule: Schedule) -> Iterator[str]:
    """Nothing later in the queue starts while a task waits; demand reads wait for demand only.

    Requests start once all that ends at that instant has ended: of those, only what itself takes no time and thereby
    brings an earlier one is not late.
    """
    for late in plan.tasks:
        start, end, _ = schedule.spans[late.id]
        settled = start if late.is_read and start < end else start - 1
        for early in plan.tasks:
            waits = _ready(early, schedule) <= settled and start < schedule.spans[early.id].start
            if early.is_read == late.is_read and waits and _goes_first(plan, schedule, early, late, settled):
                yield f"{late.id} overtakes {early.id} at {start}"


def _goes_first(plan: Plan, schedule: Schedule, early: Task, late: Task, now: int) -> bool:
    """Whether the one comes before the other: demand before speculation, then queue order."""
    guesses = (_speculates(early, schedule, now), _speculates(late, schedule, schedule.spans[late.id].start))
    return guesses < guesses[::-1] or (guesses[0] == guesses[1] and plan.rank[early.id] < plan.rank[late.id])


def _speculates(task: Task, schedule: Schedule, now: int) -> bool:
    """Whether the read is still speculative once everything that ends at that instant has ended."""
    return task.speculative and (task.wanted is None or schedule.spans[task.wanted].end > now)
