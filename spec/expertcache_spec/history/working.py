"""Reads and work: chunks, slots, publication, computing, combining, release."""

from __future__ import annotations

import attrs

from expertcache_spec.errors import WrongState
from expertcache_spec.history.books import Coverage, Open, Running
from expertcache_spec.history.following import Block, Record
from expertcache_spec.history.selecting import Selecting
from expertcache_spec.history.verdict import Offence
from expertcache_spec.model import Key


@attrs.define(slots=False)
class Working(Selecting):
    """The checker's part that follows reads and computations."""

    # ------------------------------------------------------------------------------------------ reads

    def read_start(self, record: Record, line: int) -> None:
        """A read begins (XC-HIST-006, XC-HIST-007)."""
        key, start = self.key(record, line), record["offset"]
        end, size = start + record["length"], self.size(key)
        if record["read"] <= self.last_read:
            raise Offence("XC-HIST-006", line, f"read {record['read']} after read {self.last_read}")
        self.last_read = record["read"]
        coverage = self._coverage(record, key, line)
        if size is not None and end > size:
            raise Offence("XC-HIST-006", line, f"bytes {start} to {end} of a record of {size}", coverage.line)
        if coverage.overlaps(start, end):
            raise Offence("XC-HIST-006", line, f"bytes of {key} are read twice", coverage.line)
        if end > start:
            coverage.ranges[start] = end
        coverage.pending.add(record["read"])
        kept = coverage is self.flights.get(key)
        if "slot" in record:
            self._fill(record["slot"], key, line, kept=kept)
        elif self.observes("slots") and kept:
            raise Offence("XC-HIST-007", line, "a read into the cache that names no slot")
        self.runs[record["read"]] = Running(key, start, end - start, coverage, line)

    def _coverage(self, record: Record, key: Key, line: int) -> Coverage:
        """What the read counts for: a record kept for nobody, one in flight, one staged."""
        found: Coverage | None
        if "ticket" in record:
            found = self.open(record, line).scratch.get(key)
        else:
            found = self.flights.get(key) or self.staged.get(key)
        if found is None:
            known = self.published.get(key, 0)
            said = "which is resident" if known else "which no miss, seed or prefetch asks for"
            raise Offence("XC-HIST-006", line, f"a read of {key}, {said}", known)
        return found

    def _fill(self, slot: int, key: Key, line: int, *, kept: bool) -> None:
        """The slot holds the record from here on, if it is kept; what it holds of another may not be overwritten."""
        present, place = self.slots.get(slot), self.places.get(key, slot)
        if present is not None and (present != key or not kept):
            raise Offence(
                "XC-HIST-007", line, f"slot {slot} is filled with {key} and still holds {present}",
                self.published.get(present, 0), *self.lines_of(present),
            )  # fmt: skip
        if place != slot:
            raise Offence("XC-HIST-007", line, f"{key} is read into slots {place} and {slot}")
        if kept:
            self.slots[slot], self.places[key] = key, slot

    def read_end(self, record: Record, line: int) -> None:
        """A read has ended with all its bytes, or the log does not obey XC-FANOUT-005."""
        run = self.runs.pop(record["read"], None)
        if run is None:
            raise Offence("XC-HIST-006", line, f"read {record['read']} is not under way")
        if (record["offset"], record["length"]) != (run.offset, run.length):
            raise Offence(
                "XC-FANOUT-005", line, f"{record['length']} bytes from {record['offset']} were delivered, "
                f"{run.length} from {run.offset} were asked for", run.line,
            )  # fmt: skip
        run.coverage.pending.discard(record["read"])
        run.coverage.delivered += run.length

    def _check_whole(self, key: Key, coverage: Coverage, line: int, rule: str) -> None:
        size = self.size(key)
        if self.observes("reads") and (coverage.pending or coverage.delivered != (size or coverage.delivered)):
            said = f"{coverage.delivered} of {size} bytes of {key} have been read"
            under_way = f", {len(coverage.pending)} reads are under way" if coverage.pending else ""
            raise Offence(rule, line, said + under_way, coverage.line)

    def publish(self, record: Record, line: int) -> None:
        """The record is resident from here on (XC-RES-015); under room `trim` evictions may follow."""
        key = self.key(record, line)
        if key not in self.machine.flights:
            raise Offence("XC-RES-015", line, f"{key} is published and was not being read", self.published.get(key, 0))
        self._check_whole(key, self.flights[key], line, "XC-RES-015")
        missing = "XC-RES-025" if self.header.settings.room == "trim" else "XC-RES-011"
        self.block = Block(record, line, missing, self._published, freed=frozenset([key]))

    def _published(self, block: Block) -> None:
        key = Key(*block.record["key"])
        progress = self.machine.complete(key)
        del self.flights[key]
        self.published[key] = block.line
        self._compare(block, progress.victims, due=self._due(progress.tickets))

    def _due(self, tickets: tuple[int, ...]) -> bool:
        """Whether the end of a read must bring the cache down to its budget: under `trim` the last of an event."""
        if not tickets:
            return self.header.settings.room == "reserve" or not self.machine.leases
        return self.header.settings.room == "trim" and any(not self.machine.leases[t].pending for t in tickets)

    def _compare(self, block: Block, victims: tuple[Key, ...], *, due: bool = True) -> None:
        """Compare what a cause evicted; of an undeclared policy only that enough has left where that is due."""
        self._compare_victims(block, victims)
        for part in self.machine.recent if self.script is not None and due else ():
            if part.over() and any(key not in part.holds for key in part.resident):
                raise Offence(block.missing, block.line, "the budget is exceeded and nothing leaves")

    def fail(self, record: Record, line: int) -> None:
        """The reading of a record has failed (XC-RES-016)."""
        key = self.key(record, line)
        if "ticket" in record:
            self._failed_alone(self.open(record, line), key, line)
            return
        if key not in self.machine.flights:
            raise Offence("XC-RES-016", line, f"{key} has failed and was not being read", self.published.get(key, 0))
        self.block = Block(record, line, "XC-RES-025", self._failed)

    def _failed_alone(self, wave: Open, key: Key, line: int) -> None:
        """A read for one event alone: nobody else waits, and no room is returned."""
        coverage = wave.scratch.pop(key, None)
        if coverage is None:
            raise Offence("XC-RES-016", line, f"{key} has failed and is not read for the event alone", wave.line)
        for number in coverage.pending:
            del self.runs[number]
        wave.order.remove(key)
        wave.waiting.discard(key)
        self.failed[wave.selection.event.stream] = wave.selection.event

    def abandon(self, record: Record, line: int) -> None:
        """The event is given up: its lease ends after its reads, whatever of its work has executed (XC-RES-017)."""
        wave = self.open(record, line)
        if self.machine.leases[wave.selection.ticket].pending:
            flying = next(key for key in wave.order if key in self.machine.flights)
            raise Offence("XC-RES-017", line, f"{flying} is still being read", wave.line)
        for coverage in wave.scratch.values():
            if coverage.pending:
                raise Offence("XC-RES-017", line, f"read {min(coverage.pending)} is under way", coverage.line)
        self.deferring.pop(record["ticket"], None)
        self.failed[wave.selection.event.stream] = wave.selection.event
        held = frozenset(key for key in wave.order if key not in wave.scratch)
        missing = "XC-RES-026" if self.header.settings.room == "retain" else "XC-RES-011"
        self.block = Block(record, line, missing, self._released, freed=held)

    def _failed(self, block: Block) -> None:
        key = Key(*block.record["key"])
        for ticket in self.machine.flights[key].tickets:
            wave, event = self.waves[ticket], self.waves[ticket].selection.event
            wave.order.remove(key)
            wave.waiting.discard(key)
            self.failed[event.stream] = event
        progress = self.machine.fail(key)
        for number in self.flights.pop(key).pending:
            del self.runs[number]
        self.leave(key)
        self._compare(block, progress.victims, due=self._due(progress.tickets))

    # ------------------------------------------------------------------------------------------ work

    def compute_start(self, record: Record, line: int) -> None:
        """Work on a record begins: its bytes are there (XC-HIST-008)."""
        key, wave = self.key(record, line), self.open(record, line)
        if key not in wave.waiting:
            raise Offence("XC-HIST-008", line, f"{key} is computed and not waiting for it", wave.line)
        alone = wave.scratch.get(key)
        if alone is not None:
            self._check_whole(key, alone, line, "XC-HIST-008")
        elif not self.is_resident(key):
            raise Offence("XC-HIST-008", line, f"{key} is used before it is published", self.flights[key].line)
        wave.waiting.discard(key)
        wave.computing[key] = line

    def compute_end(self, record: Record, line: int) -> None:
        """The work on a record has executed."""
        key, wave = self.key(record, line), self.open(record, line)
        if wave.computing.pop(key, None) is None:
            raise Offence("XC-HIST-008", line, f"the work on {key} ends and has not begun", wave.line)

    def combine(self, record: Record, line: int) -> None:
        """The results are summed, in slot order (XC-HIST-009)."""
        wave = self.open(record, line)
        if wave.combined:
            raise Offence("XC-HIST-009", line, "the results are combined twice", wave.line)
        if self.observes("computes"):
            self._check_executed(wave, line, "XC-HIST-009")
        if [tuple(key) for key in record["keys"]] != wave.order:
            raise Offence("XC-HIST-009", line, "the results are not combined in slot order", wave.line)
        wave.combined = True

    def _check_executed(self, wave: Open, line: int, rule: str) -> None:
        for key in wave.order:
            if key in wave.waiting or key in wave.computing:
                raise Offence(rule, line, f"the work on {key} has not executed", wave.line, wave.computing.get(key, 0))

    def release(self, record: Record, line: int) -> None:
        """The lease ends: every read has ended and the work has executed (XC-RES-017)."""
        wave = self.open(record, line)
        if self.machine.leases[wave.selection.ticket].pending:
            flying = next(key for key in wave.order if key in self.machine.flights)
            raise Offence("XC-RES-017", line, f"{flying} is still being read", wave.line)
        if self.observes("computes"):
            self._check_executed(wave, line, "XC-RES-017")
        if self.observes("combines") and not wave.combined and wave.order:
            raise Offence("XC-HIST-009", line, "the results were not combined", wave.line)
        for key, coverage in wave.scratch.items():
            self._check_whole(key, coverage, line, "XC-RES-017")
        held = frozenset(key for key in wave.order if key not in wave.scratch)
        missing = "XC-RES-026" if self.header.settings.room == "retain" else "XC-RES-011"
        self.block = Block(record, line, missing, self._released, freed=held)

    def _released(self, block: Block) -> None:
        wave = self.tickets.pop(block.record["ticket"])
        del self.waves[wave.selection.ticket]
        gone = {**block.victims, **block.refused}
        try:
            ended = self.machine.release(wave.selection.ticket)
        except WrongState as error:
            raise Offence("XC-RES-017", block.line, error.what) from error
        if set(block.refused) ^ set(ended.refused):
            key = min(set(block.refused) ^ set(ended.refused))
            raise Offence(
                "XC-RES-026", gone.get(key, block.line), f"{key}: the event keeps what it should not, or lets go"
            )
        self._compare(block, ended.victims)
        for key in block.refused:
            self.leave(key)
