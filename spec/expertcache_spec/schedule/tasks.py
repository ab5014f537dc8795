"""Tasks, plans and schedules: what is to be done, what must wait for what, and when it was done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Literal, NamedTuple

import attrs

Kind = Literal["route", "read", "dispatch", "gate_up", "down", "combine"]

COMPUTE = -1
"""The lane of the compute queue; workers are 0, 1, 2 ..."""


class TaskId(NamedTuple):
    """Which task: of an event (its place in the replay), of a kind.

    place: the slot of `read`, `gate_up` and `down`, the batch of `dispatch`. A speculative read that no event adopts
    belongs to the event that issued it, at a place behind that event's slots. part: which request of its record.
    """

    event: int
    kind: Kind
    place: int = 0
    part: int = 0


@attrs.frozen(slots=False)
class Task:
    """One piece of work that runs without interruption.

    duration: nanoseconds on the compute queue; of a read, before its first byte. after: tasks that must have ended
    before it starts. transfer: of a read, nanoseconds of the whole bandwidth. speculative: read before anything has
    asked for it. wanted: the task whose end turns the speculative read into a demand read.
    """

    id: TaskId
    duration: int
    after: frozenset[TaskId] = frozenset()
    transfer: int = 0
    speculative: bool = False
    wanted: TaskId | None = None

    @property
    def is_read(self) -> bool:
        """Whether it runs on an I/O worker; all others run on the compute queue."""
        return self.id.kind == "read"


@attrs.frozen(slots=False)
class Plan:
    """Tasks in queue order: of those that could start, the first in this order does (XC-SCHED-007).

    sums: for each event, the slots in the order in which its combine adds them.
    """

    tasks: tuple[Task, ...]
    sums: tuple[tuple[int, ...], ...]

    @cached_property
    def rank(self) -> Mapping[TaskId, int]:
        """Each task's place in the queue order."""
        return {task.id: place for place, task in enumerate(self.tasks)}


class Span(NamedTuple):
    """When a task ran, from start to end, in nanoseconds, and where: `COMPUTE` or the number of a worker."""

    start: int
    end: int
    lane: int


@attrs.frozen(slots=False)
class Schedule:
    """When everything ran, and the slots in the order in which the combine added them: one sum for each event."""

    spans: Mapping[TaskId, Span]
    sums: tuple[tuple[int, ...], ...]

    @cached_property
    def makespan(self) -> int:
        """The end of the last combine; speculative reads that nothing adopts may outlast it."""
        return max(span.end for task, span in self.spans.items() if task.kind == "combine")

    def of(self, event: int, *kinds: Kind) -> Iterator[tuple[TaskId, Span]]:
        """The event's tasks of those kinds, or of all, with their spans."""
        return ((t, span) for t, span in self.spans.items() if t.event == event and (not kinds or t.kind in kinds))
