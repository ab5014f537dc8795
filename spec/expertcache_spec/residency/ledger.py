"""The ledger: books what the machine did into counters, and remembers what makes a miss a reload or a collision."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs

from expertcache_spec.metrics import Counters, Row
from expertcache_spec.model import Key
from expertcache_spec.residency.room import Usage
from expertcache_spec.residency.settings import Selection
from expertcache_spec.trace import Event

NOBODY = (-1, -1)
"""In place of the stream and pass that evicted a record: a resize or a reset did."""

IDLE = "idle"
"""The phase of evictions that no event caused: a resize."""


@attrs.define
class Ledger:
    """Counters of one machine and the facts they are judged by.

    past: every key that was ever asked for or resident: the (stream, pass) that evicted it last, `NOBODY` where none
    did, None while it has not left. unasked: those of them that a seed or prefetch brought and nothing has asked for.
    speculative: keys that a prefetch brought or is bringing and nothing has asked for yet.
    """

    counters: Counters
    past: dict[Key, tuple[int, int] | None] = attrs.field(factory=dict)
    unasked: set[Key] = attrs.field(factory=set)
    speculative: set[Key] = attrs.field(factory=set)
    _first_decode: dict[int, int] = attrs.field(factory=dict)

    def row(self, event: Event, *, layer: int | None = None, rejected: bool = False) -> Row:
        """The row of the event's phase and `layer`, its own unless stated; `rejected`: of rows thrown away."""
        first = event.phase == "decode" and self._first_decode.get(event.stream) == event.pass_index
        phase = "verify-rejected" if rejected else event.phase
        return self.counters.bucket(phase, first)[event.layer if layer is None else layer]

    def served(
        self, event: Event, hits: Sequence[Key], misses: Sequence[Key], victims: Sequence[Key], size: int
    ) -> None:
        """Book an event that was served whole: every miss read, admitted and published."""
        stream, pass_index = mark = (event.stream, event.pass_index)
        first = event.phase == "decode" and self._first_decode.setdefault(stream, pass_index) == pass_index
        bucket = self.counters.bucket(event.phase, first)
        row, count = bucket[event.layer], len(event.keys)
        row.selections += sum(map(len, event.rows)) if event.has_repeats else count
        row.lookups += count
        row.hits += len(hits)
        if self.unasked:
            self._first_asked(row, event.keys, misses)
        if misses:
            count, past = len(misses), self.past
            row.misses += count
            row.reads += count
            row.admissions += count
            row.bytes_read += count * size
            self._judge_misses(row, misses, mark)
            for key in victims:
                past[key] = mark
                bucket[key[0]].evictions += 1

    def _judge_misses(self, row: Row, misses: Sequence[Key], mark: tuple[int, int]) -> None:
        """Whether each miss is the first request of its key, a reload, a collision in the (stream, pass) `mark`."""
        past = self.past
        for key in misses:
            if key not in past:
                past[key] = None
                row.compulsory += 1
            elif (left_by := past[key]) is not None:
                row.reloads += 1
                if left_by == mark:
                    row.collisions += 1

    def _first_asked(self, row: Row, keys: Collection[Key], misses: Collection[Key]) -> None:
        """Keys that were resident before anything asked for them: a miss on one is a first request all the same."""
        for key in self.unasked.intersection(keys):
            self.unasked.discard(key)
            row.compulsory += key in misses

    def selected(self, selection: Selection) -> None:
        """Book the lookups of a selection; reads are booked when they end, or here where nothing is kept."""
        event = selection.event
        if event.phase == "decode":
            self._first_decode.setdefault(event.stream, event.pass_index)
        rejected = event.rejected_keys() if event.accepted is not None else frozenset()
        row = self.row(event)
        row.selections += sum(map(len, event.rows))
        if rejected:
            other = self.row(event, rejected=True)
            moved = sum(event.multiplicity(key) for key in rejected)
            row.selections -= moved
            other.selections += moved
            self._lookups(other, selection, rejected)
        self._lookups(row, selection, [key for key in event.keys if key not in rejected] if rejected else event.keys)
        for key in selection.bypassed:
            self.past.setdefault(key)

    def used(self, selection: Selection) -> None:
        """Book the prefetched keys that this wave asks for: useful when they are there, late when on their way."""
        for late, keys in ((False, selection.hits), (True, selection.joined)):
            for key in self.speculative.intersection(keys):
                self.speculative.discard(key)
                self.counters.prefetch_late += late
                self.counters.prefetch_useful += not late

    def _lookups(self, row: Row, selection: Selection, keys: Collection[Key]) -> None:
        chosen = keys if len(keys) < len(selection.event.keys) else None

        def among(group: tuple[Key, ...]) -> Sequence[Key]:
            return group if chosen is None else [key for key in group if key in chosen]

        row.lookups += len(keys)
        row.hits += len(among(selection.hits))
        row.bypassed += len(among(selection.bypassed))
        row.joined += len(among(selection.joined))
        misses = among(selection.misses)
        row.misses += len(misses)
        if self.unasked:
            self._first_asked(row, keys, misses)
        self._judge_misses(row, misses, (selection.event.stream, selection.event.pass_index))

    def read(self, event: Event, key: Key, size: int, *, admitted: bool = False, refused: bool = False) -> None:
        """Book one demand read of `size` bytes, and whether admission kept the record or declined it."""
        row = self._row_of(event, key)
        row.reads += 1
        row.bytes_read += size
        row.admissions += admitted
        row.refused += refused

    def spared(self, event: Event, key: Key, size: int, *, late: bool) -> None:
        """Book that a staged prefetch has done, or is doing (`late`), a read that was booked on demand."""
        row = self._row_of(event, key)
        row.reads -= 1
        row.bytes_read -= size
        row.joined += late
        row.adopted += not late

    def not_served(self, event: Event, keys: Collection[Key], selections: int) -> None:
        """Book lookups that a lossy mode does not serve, with how many selections they were (XC-MISS-002)."""
        row = self.row(event)
        row.lookups += len(keys)
        row.dropped += len(keys)
        row.selections += selections

    def not_kept(self, event: Event, key: Key) -> None:
        """Book that a record which the event had admitted was declined after all (room `retain`)."""
        row = self._row_of(event, key)
        row.admissions -= 1
        row.refused += 1

    def _row_of(self, event: Event, key: Key) -> Row:
        return self.row(event, rejected=event.accepted is not None and key in event.rejected_keys())

    def installed(self, key: Key, origin: str, size: int) -> None:
        """Book a record that a seed or a prefetch made resident."""
        if key not in self.past:
            self.past[key] = None
            self.unasked.add(key)
        if origin == "seed":
            self.counters.seeds += 1
            self.counters.seed_bytes += size
        else:
            self.counters.prefetched += 1
            self.counters.prefetch_bytes += size

    def failed(self, key: Key) -> None:
        """Book a read that failed; a speculative one that nothing waited for is a failed prefetch."""
        self.counters.failed += 1
        if key in self.speculative:
            self.speculative.discard(key)
            self.counters.prefetch_failed += 1

    def evicted(self, key: Key, event: Event | None) -> None:
        """Book an eviction, by the event that needed the room or by none."""
        if event is None:
            self.counters.bucket(IDLE, False)[key.layer].evictions += 1
            self.past[key] = NOBODY
        else:
            self.row(event, layer=key.layer).evictions += 1
            self.past[key] = (event.stream, event.pass_index)
        self._wasted(key)

    def cleared(self, keys: Collection[Key]) -> None:
        """Book residents that a reset or a rebind dropped."""
        self.counters.cleared += len(keys)
        for key in keys:
            self.past[key] = NOBODY
            self._wasted(key)

    def _wasted(self, key: Key) -> None:
        if key in self.speculative:
            self.speculative.discard(key)
            self.counters.prefetch_wasted += 1

    def forget(self) -> None:
        """Other keys from here on: nothing of the new model was asked for, resident or decoded before."""
        self.past.clear()
        self.unasked.clear()
        self._first_decode.clear()

    def restart(self, usage: Usage) -> None:
        """Zero the counters; what makes a miss a reload stays, and what is in use now is the new peak."""
        self.counters = usage.counters = Counters(
            peak_slots=usage.slots, peak_bytes=usage.bytes, prefetch_issued=len(self.speculative)
        )
