"""The core: one lock, and behind it the machine that decides, the slots, the reads, the lines and the journal.

Every method is called while the lock is held, by callers and by the reader's workers alike. What the residency machine
decides is carried out here and nowhere else: a victim gives its slot, a miss gets one, a read that has landed is
published or failed, and whoever that concerns is woken.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar, NamedTuple, Protocol

from expertcache_reference.reader import Files, Flight, Job, ReadFailed, Request, Service, Way
from expertcache_reference.runtime.errors import closed
from expertcache_reference.runtime.journal import Journal
from expertcache_reference.runtime.line import Line
from expertcache_reference.runtime.records import Records
from expertcache_reference.slots import Arena, Slot
from expertcache_reference.system.seam import Machine
from expertcache_spec.model import Key
from expertcache_spec.residency import Ended, Progress, Residency


class Alone(NamedTuple):
    """The name of a read for the event of a ticket alone: a record that is not kept."""

    ticket: int
    key: Key


class Waits(Protocol):
    """A wave of an event, as far as the core knows it."""

    stream: int

    def wake(self) -> None:
        """Some of its bytes may be there."""

    def landed(self, key: Key, error: ReadFailed | None) -> None:
        """A record that it waits for is there, or has failed."""


class Core:
    """The runtime's inside. Raises what threads raise, with nothing left running."""

    reading: ClassVar[type[Service]] = Service

    def __init__(
        self, machine: Machine, residency: Residency, records: Records, files: Files, arenas: tuple[Arena, Arena],
        journal: Journal | None, workers: int, way: Way,
    ) -> None:  # fmt: skip
        self.machine, self.residency, self.records, self.files = machine, residency, records, files
        self.arena, self.scratch = arenas
        self.lock = machine.lock()
        self.lines = {layer: Line(machine, self.lock) for layer in residency.parts}
        self.idle = machine.condition(self.lock)
        """Told when a read ends."""
        self.journal = journal
        self.page: AbstractContextManager[object] = nullcontext() if journal is None else journal
        """Around what changes contents and is said in the log: both or, if Ctrl-C comes between, a log that stops."""
        self.slots: dict[Key, Slot] = {}
        self.works: dict[int, Waits] = {}
        self.exposed = self.failed_alone = 0
        """Time that callers slept; reads of records for one event alone that have failed, since counters were reset."""
        self.closed = self.stopped = self.finished = False
        self.reader = self.reading(machine, files, self.lock, self, workers, way)

    def check_open(self, where: str) -> None:
        """Raise `RuntimeClosed` after `close`."""
        if self.closed:
            raise closed(where)

    def holds(self, stream: int) -> bool:
        """Whether an event of the stream is selected and not released."""
        return any(work.stream == stream for work in self.works.values())

    def line(self, layer: int) -> Line:
        """Where those stand who wait for room for records of the layer."""
        return self.lines[-1 if self.residency.is_global else layer]

    def finish(self) -> None:
        """Once workers and leases have ended: give all memory back and complete the log; raises its error."""
        if not self.stopped or self.works or self.finished:
            return
        self.finished = True
        self.leave(list(self.slots))
        self.arena.close()
        self.scratch.close()
        if self.journal is not None:
            self.journal.close()

    # ------------------------------------------------------------------------------------------ carrying out decisions

    def leave(self, keys: Iterable[Key]) -> None:
        """Records that the machine has dropped give their slots back."""
        for key in keys:
            self.arena.give(self.slots.pop(key))

    def request(self, key: Key) -> Request | None:
        """A slot for a record in flight, and the request that fills it; without memory the read has failed at once."""
        try:
            slot = self.arena.take(self.records.sizes[key.layer])
        except (OSError, MemoryError) as error:
            self._failed(key, _no_memory(key, error))
            return None
        slot.uses += 1  # by the read
        self.slots[key] = slot
        return self.records.request(key, slot)

    def request_alone(self, ticket: int, key: Key) -> tuple[Slot, Request] | None:
        """As `request`, for a record that one event reads and nobody keeps."""
        try:
            slot = self.scratch.take(self.records.sizes[key.layer])
        except (OSError, MemoryError) as error:
            if self.journal is not None:
                self.journal.say("fail", key=list(key), ticket=ticket)
            self.failed_alone += 1
            self.works[ticket].landed(key, _no_memory(key, error))
            return None
        return slot, self.records.request(key, slot, Alone(ticket, key))

    def begin(self, keys: Iterable[Key]) -> None:
        """Have the records of seeds and prefetches read, behind all demand."""
        requests = [request for key in keys if (request := self.request(key)) is not None]
        self.reader.submit(requests, demand=False)

    def release(self, ticket: int, *, given_up: bool = False) -> Ended:
        """End a lease; what that lets go gives its slot back, and who stands in line tries again."""
        ended = self.residency.release(ticket)
        if self.journal is not None:
            self.journal.released(ticket, ended, given_up=given_up)
        del self.works[ticket]
        self.leave((*ended.victims, *ended.refused))
        self.room()
        return ended

    def room(self) -> None:
        """There may be room where there was none."""
        for line in self.lines.values():
            line.wake()

    # ------------------------------------------------------------------------------------------ what the reader tells

    def began(self, job: Job, worker: int) -> None:
        """A worker reads a chunk."""
        if self.journal is None:
            return
        name = job.flight.key
        if isinstance(name, Alone):
            self.journal.began_read(job, worker, name.key, {"ticket": name.ticket})
        elif isinstance(name, Key):
            self.journal.began_read(job, worker, name, {"slot": self.slots[name].number})

    def ended(self, job: Job, worker: int) -> None:
        """A chunk is there; the last of a stage may be what somebody waits for."""
        if self.journal is not None:
            self.journal.ended_read(job, worker)
        flight = job.flight
        if len(flight.left) > 1 and not flight.left[job.stage]:
            name = flight.key
            if isinstance(name, Alone):
                self.works[name.ticket].wake()
            elif isinstance(name, Key):
                for ticket in self.residency.flights[name].tickets:
                    self.works[ticket].wake()

    def landed(self, flight: Flight) -> None:
        """A record is there, or its read has failed: publish or fail it, and wake whom it concerns."""
        name = flight.key
        if isinstance(name, Alone):
            if flight.error is not None:
                self.failed_alone += 1
                if self.journal is not None:
                    self.journal.say("fail", key=list(name.key), ticket=name.ticket)
            self.works[name.ticket].landed(name.key, flight.error)
        elif isinstance(name, Key):
            self.slots[name].uses -= 1
            if flight.error is None:
                self._published(name)
            else:
                self._failed(name, flight.error)

    def _published(self, key: Key) -> Progress:
        waiting = tuple(self.residency.flights[key].tickets)
        progress = self.residency.complete(key)
        if self.journal is not None:
            self.journal.published(key, progress.victims)
        self.leave(progress.victims)
        self._told(key, waiting, None)
        return progress

    def _failed(self, key: Key, error: ReadFailed) -> Progress:
        progress = self.residency.fail(key)
        if self.journal is not None:
            self.journal.failed(key, progress.victims)
        self._told(key, progress.tickets, error)  # who leases the slot lets go of it first
        self.leave([key] if key in self.slots else [])
        self.leave(progress.victims)
        return progress

    def _told(self, key: Key, tickets: tuple[int, ...], error: ReadFailed | None) -> None:
        for ticket in tickets:
            self.works[ticket].landed(key, error)
        self.idle.notify_all()
        self.room()


def _no_memory(key: Key, error: Exception) -> ReadFailed:
    return ReadFailed(f"no memory for {key}: {error}", where="runtime", cure="lower the budget, or the load")
