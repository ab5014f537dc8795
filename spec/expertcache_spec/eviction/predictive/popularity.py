"""Popularity: evict what its layer's router has chosen least.

What it is: the share of a layer's rows that asked for the key, since the beginning: what a hotlist knows, learned as it
goes. LFU counts events over all layers alike; this is a rate in the key's own layer.
State: for each key ever asked for its count and the number of its latest request; one number for each layer.
Order: count / rows of the layer as a whole number of 2^-32, then number of the latest request, both rising.
Transitions: every row counts, so that a batch weighs by its tokens; under `count` events an event counts once. When the
rows of a layer reach `limit`, they and its counts are halved, rounding down. Hits, inserts, seeds, prefetches and pass
boundaries change nothing.
Laws: over decode of one stream it is `lfu` but for ties and for layers that the pass has not reached. A stack policy.
Engines that differ: ds4 halves by tokens and counts selections (route hotness); colibri halves heat now and then.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

import attrs

from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.eviction.index import Heap
from expertcache_spec.eviction.predictive.base import CONTROL, PLACES, Causal, Scanned
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


@attrs.define(slots=False)
class Shares(Causal):
    """What both forms count."""

    count: str = "rows"
    limit: int = 1 << 20
    counts: dict[Key, int] = attrs.field(factory=dict, init=False)
    """How many rows have asked for the key."""
    rows: dict[int, int] = attrs.field(factory=dict, init=False)
    """How many rows the layer has routed."""

    def begin(self, event: Event) -> None:
        """Count every row, or every event."""
        super().begin(event)
        layer, counts = event.layer, self.counts
        by_rows = self.count == "rows"
        self.rows[layer] = self.rows.get(layer, 0) + (len(event.rows) if by_rows else 1)
        once = not (by_rows and event.has_repeats)
        for key in event.keys:
            counts[key] = counts.get(key, 0) + (1 if once else event.multiplicity(key))
        if self.rows[layer] >= self.limit:
            self.halve(layer)

    def halve(self, layer: int) -> None:
        """Age what is known of the layer."""
        self.rows[layer] >>= 1
        for key in self.counts:
            if key.layer == layer:
                self.counts[key] >>= 1

    def share(self, layer: int, count: int) -> int:
        """The count as a share of the layer's rows."""
        return (count << PLACES) // (self.rows.get(layer) or 1)

    def forget(self) -> None:
        """The counts too."""
        self.counts.clear()
        self.rows.clear()


@attrs.define(slots=False)
class DeclaredPopularity(Shares, Scanned):
    """The declarative form."""

    def order(self, key: Key) -> tuple[int, ...]:
        """The rule (XC-EVICT-285)."""
        return self.share(key.layer, self.counts.get(key, 0)), self.number(key)


@attrs.define(slots=False)
class Popularity(Shares):
    """The indexed form: a heap for each layer, and the first of each remembered until the layer changes.

    A victim costs O(layers), since every event changes the shares of all keys of its layer.
    """

    name: ClassVar[str] = "popularity"
    stamped: ClassVar[bool] = False
    heaps: dict[int, Heap] = attrs.field(factory=dict, init=False)
    """Layer to its residents by (count, number)."""
    firsts: dict[int, tuple[int, int, Key]] = attrs.field(factory=dict, init=False)
    """Layer to (share, number, key) of its first resident."""
    changed: set[int] = attrs.field(factory=set, init=False)
    """The layers whose first is to be found again."""

    def begin(self, event: Event) -> None:
        """File again whom the event's keys judge."""
        super().begin(event)
        heap = self.heaps.get(event.layer)
        if heap is not None:
            self.changed.add(event.layer)
            for key in event.keys:
                seat = self.judge(key)
                if seat in heap.filed:
                    self._file(heap, seat, key)

    def _file(self, heap: Heap, seat: Key, judge: Key) -> None:
        heap.file(seat, (self.counts.get(judge, 0), self.number(judge)))

    def _file_again(self, layer: int) -> None:
        heap = self.heaps.setdefault(layer, Heap())
        self.changed.add(layer)
        for seat in [*heap.filed]:
            self._file(heap, seat, self.judge(seat))

    def halve(self, layer: int) -> None:
        """Counts that were apart may be equal now."""
        super().halve(layer)
        self._file_again(layer)

    def insert(self, key: Key, now: int) -> None:
        """File under the count as it stands."""
        self._file(self.heaps.setdefault(key.layer, Heap()), key, self.judge(key))
        self.changed.add(key.layer)

    def _first(self, layer: int, held: Collection[Key]) -> tuple[int, int, Key] | None:
        heap = self.heaps[layer]
        key = heap.first(held)
        if key is None:
            return None
        count, number = heap.filed[key]
        return self.share(layer, count), number, key

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least of the layers' firsts, or of those that are not held."""
        for layer in self.changed:
            self.firsts.pop(layer, None)
            if (first := self._first(layer, ())) is not None:
                self.firsts[layer] = first
        self.changed.clear()
        if not self.firsts:
            return None
        first = min(self.firsts.values())
        return first[2] if first[2] not in held else self._first_free(held)

    def _first_free(self, held: Collection[Key]) -> Key | None:
        """As `victim`, where the first of all is held."""
        firsts = (self._first(layer, held) for layer in self.heaps)
        found = min((first for first in firsts if first is not None), default=None)
        return None if found is None else found[2]

    def evict(self, key: Key) -> None:
        """Only residency ends."""
        self.heaps[key.layer].remove(key)
        self.changed.add(key.layer)

    def forget(self) -> None:
        """All counts are 0."""
        super().forget()
        for layer in [*self.heaps]:
            self._file_again(layer)


CARD = Card(
    "popularity",
    "XC-EVICT-285",
    DeclaredPopularity,
    Popularity,
    "least often asked for among the rows of its layer",
    "causal estimators of the field report on V4.1 Flash",
    "O(log resident)",
    (
        Parameter("count", "rows", "what counts one: every row, or every event", choices=("rows", "events")),
        Parameter("limit", 1 << 20, "rows at which a layer halves its rows and its counts", least=2),
        *CONTROL,
    ),
)
