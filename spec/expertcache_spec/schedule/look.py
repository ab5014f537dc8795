"""Look: a schedule beside its scenario, with the words in which the rules speak."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import attrs

from expertcache_spec.model import Key
from expertcache_spec.schedule.plan import Scenario
from expertcache_spec.schedule.tasks import Kind, Schedule, Span, TaskId
from expertcache_spec.schedule.work import adoptions


def latest(spans: Iterable[Span]) -> int:
    """The end of the last of them; 0 where there is none."""
    return max((span.end for span in spans), default=0)


@attrs.define(slots=False)
class Look:
    """What the laws see."""

    scenario: Scenario
    schedule: Schedule

    @cached_property
    def issued(self) -> dict[tuple[int, int], int | None]:
        """Speculative reads, by issuing event and place, to the event that adopts them."""
        return adoptions(self.scenario.loads)

    @cached_property
    def speculative(self) -> dict[TaskId, tuple[int, int | None]]:
        """Every speculative request, to the event that issued it and the one that adopts it."""
        found: dict[TaskId, tuple[int, int | None]] = {}
        for (issuer, place), event in self.issued.items():
            key = self.scenario.loads[issuer].prefetches[place]
            owner, slot = (
                (issuer, len(self.scenario.loads[issuer].keys) + place)
                if event is None
                else (event, self.scenario.loads[event].keys.index(key))
            )
            for part in range(len(self.scenario.record(key))):
                found[TaskId(owner, "read", slot, part)] = (issuer, event)
        return found

    def expected(self) -> Iterator[TaskId]:
        """Every task that the scenario calls for."""
        for event, load in enumerate(self.scenario.loads):
            yield from (TaskId(event, "route"), TaskId(event, "combine"))
            yield from (TaskId(event, "dispatch", b) for b in range(len(self.scenario.discipline.batches(load))))
            for slot in range(len(load.keys)):
                yield from (TaskId(event, "gate_up", slot), TaskId(event, "down", slot))
            yield from (task for slot in load.absent for task, _ in self.scenario.requests(event, slot))
        yield from (task for task, (_, adopted) in self.speculative.items() if adopted is None)

    def span(self, event: int, kind: Kind, place: int = 0) -> Span:
        """When that task ran."""
        return self.schedule.spans[TaskId(event, kind, place)]

    def first(self, event: int, *kinds: Kind) -> int:
        """The first start of the event's tasks of those kinds."""
        return min(span.start for _, span in self.schedule.of(event, *kinds))

    def stage(self, event: int, kind: Kind, slots: Iterable[int]) -> list[Span]:
        """The spans of one stage in those slots."""
        return [self.span(event, kind, slot) for slot in slots]

    def reads_of(self, event: int, slot: int, stage: str = "") -> list[Span]:
        """The requests that bring a missing slot's record, or one stage of it."""
        pairs = self.scenario.requests(event, slot)
        return [self.schedule.spans[task] for task, request in pairs if stage in ("", request.stage)]

    def reads(self, event: int, stage: str = "") -> list[Span]:
        """The requests of all that the event misses."""
        return [span for slot in self.scenario.loads[event].absent for span in self.reads_of(event, slot, stage)]

    def bringer(self, event: int, key: Key) -> int | None:
        """The event before this one that read the record last; None where it was there from the outset."""
        loads = self.scenario.loads
        return next((each for each in reversed(range(event)) if key in loads[each].missing), None)

    def demanded_at(self, task: TaskId) -> int | None:
        """When the request became demand: the end of its event's route; None for one that nothing adopts."""
        _, event = self.speculative.get(task, (task.event, task.event))
        return None if event is None else self.span(event, "route").end

    def waits_from(self, task: TaskId) -> int:
        """When the request could start at the earliest: its issue, and for demand the end of its victims' leases."""
        if task in self.speculative:
            return self.span(self.speculative[task][0], "route").end
        return max(self.span(task.event, "route").end, self.room_at(task.event))

    def room_at(self, event: int) -> int:
        """When the room of the event's victims is free: their readers have executed, and their own reads have ended."""
        loads, found = self.scenario.loads, [0]
        for key in loads[event].victims:
            bringer = self.bringer(event, key)
            if bringer is not None:
                found.append(latest(self.reads_of(bringer, loads[bringer].keys.index(key))))
            since = range(bringer or 0, event)
            found += [self.span(each, "combine").end for each in since if key in loads[each].keys]
        return max(found)
