"""A wave: the records that one selection leases, from its reads to its release. Most events are one wave."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from expertcache_reference.reader import ReadFailed, Request
from expertcache_reference.runtime.batches import Batch
from expertcache_reference.runtime.core import Alone, Core
from expertcache_reference.runtime.records import DOWN
from expertcache_reference.slots import Slot
from expertcache_reference.system.seam import Condition
from expertcache_spec.errors import WrongState
from expertcache_spec.model import Key
from expertcache_spec.residency import Ended, Selection
from expertcache_spec.trace import Event


class Wave:
    """One lease. Made under the lock; its other methods take the lock themselves, but for those that the core calls.

    keys: in router order. missing: those that were not resident. pending: those whose reads have not ended. entries:
    records that were resident when it began.
    """

    def __init__(self, core: Core, selection: Selection, entries: int, after: int | None = None) -> None:
        self.core, self.selection, self.entries = core, selection, entries
        self.ticket, self.stream = selection.ticket, selection.event.stream
        known = {*selection.hits, *selection.misses, *selection.bypassed}.difference(selection.deferred)
        self.keys = tuple([key for key in selection.event.keys if key in known])
        self.missing = known.difference(selection.hits)
        self.pending = set(self.missing)
        self.failed: dict[Key, ReadFailed] = {}
        self._places: dict[Key, Slot] = {}
        self._alone: dict[Key, Slot] = {}
        self._whole: set[Key] = set()
        self._first: set[Key] = set()
        self._views: list[memoryview] = []
        self._unsaid: dict[Key, None] = {}
        self._turn: Condition | None = None
        self._wanted: Callable[[], bool] | None = None
        core.works[self.ticket] = self
        if core.journal is not None:
            core.journal.selected(selection, after)
        core.leave(selection.victims)
        if self.missing:
            self._read()
        for key in (*selection.hits, *selection.joined, *selection.reads):
            if key not in self.failed:
                self._lease(key, core.slots[key])

    @staticmethod
    def select(core: Core, event: Event) -> Wave:
        """Select the event; raises what the machine raises, with nothing changed."""
        with core.page:
            entries = core.residency.usage.slots
            return Wave(core, core.residency.select(event), entries)

    @staticmethod
    def resume(core: Core, before: Selection) -> Wave:
        """Select the next wave."""
        with core.page:
            entries = core.residency.usage.slots
            return Wave(core, core.residency.resume(before), entries, before.ticket)

    def _lease(self, key: Key, slot: Slot) -> None:
        slot.uses += 1
        self._places[key] = slot

    def _read(self) -> None:
        """Have the missing records read, in router order; what somebody else reads already has demand from now on."""
        core, alone = self.core, {*self.selection.refused, *self.selection.bypassed}
        requests: list[Request] = []
        for key in self.keys:
            if key in alone:
                found = core.request_alone(self.ticket, key)
                if found is not None:
                    self._alone[key] = found[0]
                    self._lease(key, found[0])
                    requests.append(found[1])
            elif key in self.selection.reads:
                request = core.request(key)
                requests += [] if request is None else [request]
        for key in self.selection.joined:
            if key in core.reader.flights:
                core.reader.promote(core.reader.flights[key])
        core.reader.submit(requests)

    # ------------------------------------------------------------------------------------------ what the core tells

    def wake(self) -> None:
        """Some bytes are there; who sleeps is woken when it is all that he sleeps for, and not for each record."""
        if self._turn is not None and self._wanted is not None and self._wanted():
            self._turn.notify_all()

    def landed(self, key: Key, error: ReadFailed | None) -> None:
        """The record is there, or lost; then its slot is no longer this wave's."""
        self.pending.discard(key)
        if error is not None:
            self.failed[key] = error
            slot = self._places.pop(key, None)
            if slot is not None:
                slot.uses -= 1
        self.wake()

    # ------------------------------------------------------------------------------------------ waiting and handing out

    def has_first(self, key: Key) -> bool:
        """Whether the first stage's bytes of the record are there, or nothing more will come."""
        if key not in self.pending:
            return True
        name = Alone(self.ticket, key) if key in self._alone else key
        flight = self.core.reader.flights.get(name)
        return flight is not None and flight.has(1)

    def wait(self, ready: Callable[[], bool]) -> None:
        """Sleep until it is so; the time counts as exposed."""
        if not self.pending:
            return
        core = self.core
        with core.lock:
            if ready():
                return
            self._turn = self._turn or core.machine.condition(core.lock)
            self._wanted, since = ready, core.reader.asleep(1)
            try:
                while not ready():
                    self._turn.wait()
            finally:
                self._wanted = None
                core.exposed += core.reader.asleep(-1) - since

    def hand_out(self, batch: Batch) -> None:
        """The batch's bytes are there, and may be looked at."""
        if self.core.journal is None:
            self._whole.update(batch.keys)
        else:
            with self.core.lock, self.core.page:
                self.core.journal.began_work(self.ticket, self.selection.event, batch.keys)
                self._unsaid.update(dict.fromkeys(batch.keys))
                self._whole.update(batch.keys)
        self._first.update(batch.gate_up)

    def executed(self, keys: Sequence[Key]) -> None:
        """The work on these has executed."""
        if self.core.journal is not None:
            with self.core.lock, self.core.page:
                self._say_executed(keys)

    def _say_executed(self, keys: Sequence[Key]) -> None:
        assert self.core.journal is not None, "asked for with a journal only"
        said = [key for key in keys if key in self._unsaid]
        self.core.journal.ended_work(self.ticket, self.selection.event, said)
        for key in said:
            del self._unsaid[key]

    def view(self, key: Key, part: str | None) -> memoryview:
        """The bytes of the record, or of a part, if they were handed out."""
        if not isinstance(key, Key):
            raise WrongState(f"{key!r} is no Key", where="work", cure="take the keys of a batch")
        there = key in self._whole or (part is not None and key in self._first and not part.startswith(DOWN))
        if not there or key not in self._places:
            raise WrongState(f"{key} is not there", where="work", cure="take the keys of a batch, before the release")
        layout = self.core.records.layout
        start, size = (0, self.core.records.sizes[key.layer]) if part is None else layout.part(key, part)
        view = self._places[key].view[start : start + size].toreadonly()
        self._views.append(view)
        return view

    # ------------------------------------------------------------------------------------------ the end

    def end(self, *, last: bool = False) -> Ended:
        """The work has executed: end the views, the lease, the scratch memory. last: no wave follows, left or not."""
        self.wait(lambda: not self.pending)
        for view in self._views:
            with contextlib.suppress(BufferError):  # an array made of it lives on, and nobody can take it back
                view.release()
        core = self.core
        with core.lock, core.page:
            given_up = core.journal is not None and self._say_rest() | (last and bool(self.selection.deferred))
            for slot in self._places.values():
                slot.uses -= 1
            self._places.clear()
            ended = core.release(self.ticket, given_up=given_up)
            for slot in self._alone.values():
                core.scratch.give(slot)
            self._alone.clear()
            core.finish()
        return ended

    def _say_rest(self) -> bool:
        """Close the event's page of the journal; whether the event is given up before its work has executed."""
        journal, event = self.core.journal, self.selection.event
        assert journal is not None, "asked for with a journal only"
        order = [key for key in self.keys if key not in self.failed]
        self._say_executed(list(self._unsaid))
        given_up = not self._whole.issuperset(order)
        if order and not given_up:
            journal.combined(self.ticket, event, order)
        return given_up
