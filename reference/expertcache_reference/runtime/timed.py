"""A runtime that keeps the time: its events are a scenario's, and it notes when each request was served, and by whom.

Everything that it does is the runtime's own. What a scenario says otherwise than a cache would, it takes as said: which
records an event misses, in which requests a record is read, what else is read on speculation.
"""

from __future__ import annotations

from typing import Any

import attrs

from expertcache_reference.reader import Flight, Job, Stages
from expertcache_reference.runtime.core import Alone, Core
from expertcache_reference.runtime.journal import Sink
from expertcache_reference.runtime.opening import Source
from expertcache_reference.runtime.records import DOWN, Records
from expertcache_reference.runtime.runtime import Runtime
from expertcache_reference.runtime.scripted import Script, Scripted
from expertcache_reference.runtime.work import Work
from expertcache_reference.slots import Slot
from expertcache_reference.system.seam import Machine
from expertcache_spec.fanout import Chunk
from expertcache_spec.model import Budget, Key
from expertcache_spec.residency import Residency
from expertcache_spec.schedule import Scenario, Span, TaskId
from expertcache_spec.trace import Event


@attrs.frozen
class Aside:
    """The name of a speculative read that the scenario calls for although its record is there."""

    event: int
    place: int


class ScenarioRecords(Records):
    """Records that are read in the requests of a scenario, stage by stage or each as a whole."""

    def __init__(self, store: Source, scenario: Scenario) -> None:
        self.scenario = scenario
        super().__init__(store.layout, store.geometry, 1, staged=True)

    def _stages_of(self, layer: int) -> Stages:
        runs, start = list[tuple[str, Chunk]](), 0
        for stage, size in self.scenario.record(Key(layer, 0)):
            runs.append((stage, Chunk(start, size)))
            start += size
        if self.scenario.discipline.reads == "record":
            return ([run for _, run in runs],)
        return tuple([run for stage, run in runs if (stage == DOWN) is second] for second in (False, True))


class TimedCore(Core):
    """A core that decides by a script and notes when each request was served, and by whom."""

    residency: Scripted

    def __init__(self, machine: Machine, residency: Residency, records: Records, *rest: Any) -> None:
        assert isinstance(records, ScenarioRecords), "a runtime of a scenario has made them"
        self.script = Script.of(records.scenario)
        self.spans: dict[TaskId, Span] = {}
        self._begun: dict[Job, tuple[int, int]] = {}
        """When a chunk was begun, and which of its record it is."""
        self._aside: dict[Aside, Slot] = {}
        scripted = Scripted(self.script, residency.geometry, residency.fingerprint)
        super().__init__(machine, scripted, records, *rest)

    def room(self) -> None:
        """As `Core.room`; whoever waits for his turn looks again."""
        super().room()
        self.idle.notify_all()

    def began(self, job: Job, worker: int) -> None:
        """As `Core.began`."""
        parts = sorted(each.chunk.offset for stage in job.flight.jobs for each in stage)
        self._begun[job] = self.machine.now(), parts.index(job.chunk.offset)
        super().began(job, worker)

    def ended(self, job: Job, worker: int) -> None:
        """As `Core.ended`."""
        owner = self._owner(job.flight)
        if owner is not None:
            since, part = self._begun.pop(job)
            task = TaskId(owner[0], "read", owner[1], part)
            self.spans[task] = Span(since, self.machine.now(), worker - 1)
        super().ended(job, worker)

    def _owner(self, flight: Flight) -> tuple[int, int] | None:
        """The event and the place that the read belongs to; None for what was there before the first event."""
        name = flight.key
        if isinstance(name, Alone):
            event = self.residency.numbers[name.ticket]
            return event, self.script.loads[event].keys.index(name.key)
        if isinstance(name, Aside):
            return name.event, name.place
        assert isinstance(name, Key), "there are no other reads"
        return self.residency.owner.get(name)

    def landed(self, flight: Flight) -> None:
        """As `Core.landed`; what was read aside is thrown away."""
        super().landed(flight)
        if isinstance(flight.key, Aside):
            self.scratch.give(self._aside.pop(flight.key))
            self.idle.notify_all()

    def read_aside(self, name: Aside, key: Key) -> None:
        """Read on speculation what is there already."""
        self._aside[name] = slot = self.scratch.take(self.records.sizes[key.layer])
        self.reader.submit([self.records.request(key, slot, name)], demand=False)


class ExecutedRuntime(Runtime):
    """A runtime that serves the events of a scenario."""

    inside = TimedCore
    _core: TimedCore

    def __init__(self, store: Source, scenario: Scenario, machine: Machine, log: Sink) -> None:
        self._scenario = scenario
        super().__init__(
            store, Budget(slots=store.geometry.layers * store.geometry.experts), discipline=scenario.discipline,
            workers=scenario.storage.workers, chunks=1, machine=machine, log=log,
        )  # fmt: skip

    @property
    def core(self) -> TimedCore:
        """Its inside."""
        return self._core

    def _records(self, store: Source) -> Records:
        return ScenarioRecords(store, self._scenario)

    def _count(self, event: Event) -> int:
        return self._scenario.loads[event.pass_index].tokens

    def serve_next(self, event: Event) -> Work:
        """Serve the event as what its load says that it is, whatever has come of speculation meanwhile."""
        work, load = self.serve(event), self._scenario.loads[event.pass_index]
        work.wave.missing, work.wave.entries = set(load.missing), load.entries
        return work

    def guess(self, event: int) -> None:
        """Issue the event's speculative reads. One for a later miss of a record that is there still is left to it."""
        load = self._scenario.loads[event]
        for place, key in enumerate(load.prefetches):
            if (event, place) not in self._core.script.issued:
                continue
            with self._core.lock:
                begins = self._core.residency.may_guess(event, place)
                if not begins and self._core.script.issued[event, place] is None:
                    self._core.read_aside(Aside(event, len(load.keys) + place), key)
            if begins:
                self.prefetch(key)
