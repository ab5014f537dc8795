"""Least-Stale: evict what earlier passes used before what this pass used; the stalest first.

What it is: SpecMD's policy. Its text fixes two generations and leaves the order inside them, the boundary, prefetches
and the fallback open; every open choice is a parameter, and `reading` names seven public readings of them.
State: the number of the pass; the layer that runs; for each resident the pass that used it last, its place in the
queue of that pass, and whether anything has asked for it; for orders `overdue` and `next`, for every key ever asked
for, the pass that asked last and a moving mean of the passes between.
Order: the generation (stale before current; with `left_first`, by the side of the running layer as well), then
`order`, then the place in the queue.
Transitions: a boundary makes everything current stale, in its order. The touch of a stale or new key appends it to the
current queue; that of a current key leaves it where it is unless `requeue`. A prefetch (or seed) appends to the current
queue if `prefetch_marks_current`, else to the stale one; without `prefetch_stamps` it goes to the front of it. With
`prefetch_renews` a prefetch of a record that is there and stale makes it current, as SpecMD has it.
Laws: with order `fifo` and no prefetch it is `lru`, victim for victim, wherever a key is asked for by at most one event
of a pass; with `requeue`, everywhere. Position orders lose to recency without prefetch and win with it. No stack
policy: where streams ask for a key twice in a pass, its place is that of the first request that found it absent or
stale, which depends on the capacity.
Engines that differ: all: see the readings. None of them renews. A key of the running event is never a victim;
tinyserve protects none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from expertcache_spec.eviction.base import Policy, leave_in_order
from expertcache_spec.eviction.cards import Card
from expertcache_spec.eviction.engines import readings
from expertcache_spec.eviction.engines.layers import ByLayer, Queue
from expertcache_spec.eviction.engines.stale_rule import Declared
from expertcache_spec.eviction.engines.staleness import PARAMETERS, Choices, Intervals, Passes
from expertcache_spec.eviction.index import Heap
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


class LeastStale(Policy):
    """The indexed form: a stale and a current queue, in parts by layer; a boundary moves the one behind the other.

    A key becomes current by a touch, so a boundary moves no more than the pass has touched.
    """

    name: ClassVar[str] = "least-stale"
    stamped: ClassVar[bool] = False

    def __init__(self, **parameters: Any) -> None:
        self.choices = chosen = Choices(**parameters)
        self.renews = chosen.prefetch_renews
        self.passes, self.intervals = Passes(chosen.boundary), Intervals(chosen.weight)
        queued = chosen.order != "layer" and not chosen.counts_intervals
        self.index = ByLayer(partial(Queue, chosen.first == "newest") if queued else Heap, self._place, chosen.apart)
        self.current: dict[Key, bool] = {}  # and whether each waits to be used for the first time
        self.residents: dict[Key, tuple[int, int]] = {}  # the pass that used each last, and its place
        self.appended = 0

    def _place(self, queue: int, layer: int) -> tuple[int, ...]:
        return self.choices.rank(queue == 0, layer, self.index.here, self.passes.layers)

    def _part(self, key: Key) -> Queue | Heap:
        """Where the key is filed: without generations there is one queue."""
        return self.index.part(int(key in self.current and self.choices.generations), key)

    def _file(self, key: Key, generation: int, place: int) -> None:
        """Put the key into the queue that it belongs to, at its end or, never stamped, at its front."""
        self.residents[key] = generation, place
        value = self.intervals.rank(self.choices.order, key, generation)
        rank = (*value, *self.choices.place(generation, place))
        part = self._part(key)
        part.file(key, rank)
        if place < 0 and isinstance(part, Queue):
            part.filed.move_to_end(key, last=False)

    def begin_pass(self) -> None:
        """The current queue goes behind the stale one."""
        self.passes.number += 1
        kept = [key for key, unused in self.current.items() if unused] if self.choices.keeps_unused else []
        waiting = {key: self._part(key) for key in kept}
        self.current = dict.fromkeys(kept, True)
        if self.choices.generations:
            for key, part in waiting.items():
                del part.filed[key]
            self.index.append(1, 0)
        for key in kept:
            generation, place = self.residents[key]
            self.residents[key] = generation + 1, place
            if self.choices.generations or self.choices.counts_intervals:
                self._file(key, generation + 1, place)

    def begin(self, event: Event) -> None:
        """Perhaps a pass begins; the layer runs; intervals end."""
        if self.passes.begins(event):
            self.begin_pass()
        self.index.move_to(event.layer)
        if self.choices.counts_intervals:
            self.intervals.ask(event.keys, self.passes.number)

    def insert(self, key: Key, now: int) -> None:
        """A seed or a prefetch."""
        self.passes.reach(key.layer)
        self.index.reach(key.layer)
        self.appended += 1
        if self.choices.prefetch_marks_current:
            self.current[key] = True
        self._file(key, *self.choices.arrival(self.passes.number, self.appended))

    def renew(self, key: Key) -> None:
        """What is stale becomes current, and waits to be used, where that is chosen."""
        if self.renews and key not in self.current:
            del self._part(key).filed[key]
            self.appended += 1
            self.current[key] = True
            self._file(key, *self.choices.renewal(self.passes.number, self.appended))

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Nothing yet: `settle` appends."""

    inserts = hits

    def settle(self, keys: Sequence[Key]) -> None:
        """What the event touched is current; what was not, or has no place yet, is appended in touch order."""
        stays, plain = not self.choices.requeue, self.choices.is_plain
        current, residents, part, number = self.current, self.residents, self.index.part, self.passes.number
        for key in keys:
            unused = current.get(key)
            if stays and (unused is False or (unused and self.choices.prefetch_stamps)):
                current[key] = False
                if self.choices.counts_intervals:
                    self._file(key, *residents[key])
                continue
            if unused is None and key in residents:
                del part(0, key).filed[key]
            current[key] = False
            self.appended += 1
            if plain:
                residents[key] = rank = number, self.appended
                part(1, key).file(key, rank)
            else:
                self._file(key, number, self.appended)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The first of the first part that has one."""
        return self.index.first(held)

    def leave(self, held: Collection[Key], incoming: Sequence[Key]) -> list[Key]:
        """Two queues that tell no layers apart are left in one walk: the stale one, then the current one."""
        if not incoming or self.choices.apart or not self.choices.is_plain:
            return super().leave(held, incoming)
        gone: list[Key] = []
        for queue in (0, 1):
            gone += leave_in_order(self.index.part(queue, incoming[0]).filed, held, len(incoming) - len(gone))
        for key in gone:
            del self.residents[key]
            self.current.pop(key, None)
        return gone

    def evict(self, key: Key) -> None:
        """Leave the queue."""
        del self._part(key).filed[key], self.residents[key]
        self.current.pop(key, None)

    def forget(self) -> None:
        """Forget the intervals; the queues stay."""
        self.intervals.forget()
        if self.choices.counts_intervals:
            for key, (generation, place) in self.residents.items():
                self._file(key, generation, place)


CARD = Card(
    "least-stale",
    "XC-EVICT-200",
    Declared,
    LeastStale,
    "what earlier passes used before what this pass used",
    "SpecMD (arXiv 2602.03921) 4.2; seven public implementations, see its readings",
    "O(log resident); O(layers) for a victim where the order tells layers apart",
    (readings.PARAMETER, *PARAMETERS),
    readings={name: reading.parameters for name, reading in readings.READINGS.items()},
)
