"""Look: a schedule beside its scenario, with the words in which the rules speak."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import attrs

from expertcache_spec.model import Key
from expertcache_spec.schedule.plan import Scenario
from expertcache_spec.schedule.tasks import Kind, Schedule, Span, TaskId


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
        """Speculative reads that are called for, by issuing event and place, to the event that adopts them."""
        found: dict[tuple[int, int], int | None] = {}
        for event, load in enumerate(self.scenario.loads):
            for place, key in enumerate(load.prefetches):
                if self._lacks(event, key, [by for by, at in found if self._key(by, at) == key]):
                    found[event, place] = self._misser(event, key)
        return found

    def _key(self, event: int, place: int) -> Key:
        return self.scenario.loads[event].prefetches[place]

    def _misser(self, event: int, key: Key) -> int | None:
        """The event that misses the record, if that is the next thing that comes of it; None where it is not."""
        loads = self.scenario.loads
        later = (e for e in range(event + 1, len(loads)) if key in loads[e].keys or key in loads[e].victims)
        found = next(later, None)
        return found if found is not None and key in loads[found].missing else None

    def _lacks(self, event: int, key: Key, guesses: list[int]) -> bool:
        """Whether the record is neither there nor on its way when the event is known (XC-SCHED-015)."""
        loads, past = self.scenario.loads, range(event + 1)
        if any(key in loads[e].missing and loads[e].stream not in {x.stream for x in loads[e + 1 : event + 1]}
               for e in past):  # fmt: skip
            return False  # its reader may not have executed
        since = max([*guesses, *(e for e in past if key in loads[e].keys)], default=None)
        if since is None or any(key in loads[e].victims for e in range(since + 1, event + 1)):
            return True
        return since not in guesses and self._misser(event, key) is not None  # asked for, and not kept

    @cached_property
    def speculative(self) -> dict[TaskId, tuple[int, int | None]]:
        """Every speculative request, to the event that issued it and the one that adopts it."""
        found: dict[TaskId, tuple[int, int | None]] = {}
        for (issuer, place), event in self.issued.items():
            key = self._key(issuer, place)
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

    def brought(self, event: int, key: Key) -> tuple[int, list[Span]]:
        """The event before this one that read or guessed the record last, and its reads; 0 and none for nobody."""
        for each in reversed(range(event)):
            load = self.scenario.loads[each]
            if key in load.missing:
                return each, self.reads_of(each, load.keys.index(key))
            if key in load.prefetches and (each, load.prefetches.index(key)) in self.issued:
                return each, self.guess(each, load.prefetches.index(key))
        return 0, []

    def guess(self, event: int, place: int) -> list[Span]:
        """The requests of a guess that no event adopts."""
        at, parts = (
            len(self.scenario.loads[event].keys) + place,
            range(len(self.scenario.record(self._key(event, place)))),
        )
        return [self.schedule.spans[TaskId(event, "read", at, part)] for part in parts]

    def guessed_until(self, event: int, key: Key) -> int:
        """The end of the guesses of that record that earlier events issued and no event adopts."""
        former = [pair for pair, adopter in self.issued.items() if adopter is None and pair[0] < event]
        return latest(span for pair in former if self._key(*pair) == key for span in self.guess(*pair))

    def demanded_at(self, task: TaskId) -> int | None:
        """When the request became demand: the end of its event's route; None for one that nothing adopts."""
        _, event = self.speculative.get(task, (task.event, task.event))
        return None if event is None else self.span(event, "route").end

    def waits_from(self, task: TaskId) -> int:
        """When the request could start at the earliest: its issue, and for demand the end of its victims' leases."""
        if task in self.speculative:
            issuer, _ = self.speculative[task]
            return max(self.span(issuer, "route").end, self.guessed_until(issuer, self.key(task)))
        load = self.scenario.loads[task.event]
        asked = [
            key for key in load.missing if TaskId(task.event, "read", load.keys.index(key)) not in self.speculative
        ]
        former = [self.guessed_until(task.event, key) for key in asked]
        return max(self.span(task.event, "route").end, self.room_at(task.event), *former)

    def key(self, task: TaskId) -> Key:
        """The record that a request reads."""
        load = self.scenario.loads[task.event]
        return (*load.keys, *load.prefetches)[task.place]

    def room_at(self, event: int) -> int:
        """When the room of the event's victims is free: their readers have executed, and their own reads have ended."""
        loads, found = self.scenario.loads, [0]
        for key in loads[event].victims:
            bringer, reads = self.brought(event, key)
            found.append(latest(reads))
            found += [self.span(each, "combine").end for each in range(bringer, event) if key in loads[each].keys]
        return max(found)
