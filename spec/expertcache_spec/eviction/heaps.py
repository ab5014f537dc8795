"""The index of policies whose keys change rank together: a heap for each rank, which can be laid on another.

It must agree with a linear scan.
"""

from __future__ import annotations

from collections.abc import Collection
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

import attrs
from sortedcontainers import SortedDict

from expertcache_spec.model import Key

Entry: TypeAlias = tuple[Any, Key]
"""A key behind its place in its rank. The one object that `filed` has for the key counts; all others are outdated."""

Lifted: TypeAlias = list[tuple[int, Entry]]
"""Entries that are off their heaps, each behind its rank."""


@attrs.define(slots=False)
class Heaps:
    """Keys in order of (rank, place, key), for ranks that are whole numbers and few.

    Filing a key costs O(log n), and next to nothing at the last place of its rank; removing it costs O(1). Outdated
    entries stay until they surface or outnumber the others.
    """

    filed: dict[Key, Entry] = attrs.field(factory=dict)
    """Key to its entry."""
    heaps: SortedDict = attrs.field(factory=SortedDict)
    """Rank to the heap of its entries."""
    entries: int = 0
    """A bound on all that are on the heaps."""
    shifted: int = 0
    """How often all ranks were halved."""

    def file(self, key: Key, rank: int, place: Any) -> Entry:
        """Put the key at that place of that rank."""
        entry = self.filed[key] = (place, key)
        heap = self.heaps.get(rank)
        if heap is None:
            heap = self.heaps[rank] = []
        heappush(heap, entry)
        self.entries += 1
        if self.entries > 64 + 4 * len(self.filed):
            self._clear_out()
        return entry

    def put_back(self, lifted: Lifted) -> None:
        """Put entries back that were lifted off."""
        for rank, entry in lifted:
            heappush(self.heaps.setdefault(rank, []), entry)

    def _clear_out(self) -> None:
        filed = self.filed
        for rank, heap in list(self.heaps.items()):
            heap[:] = [entry for entry in heap if filed.get(entry[1]) is entry]
            heapify(heap)
            if not heap:
                del self.heaps[rank]
        self.entries = len(filed)

    def remove(self, key: Key) -> None:
        """Forget the key; its entries go when they surface."""
        del self.filed[key]

    def head(self, rank: int, held: Collection[Key], aside: Lifted) -> Entry | None:
        """The first entry of the rank that nothing holds, on top of its heap; held ones before it go `aside`.

        None where there is no such entry; the heap is empty then, and the caller drops the rank.
        """
        heap, filed = self.heaps[rank], self.filed
        while heap:
            entry: Entry = heap[0]
            key = entry[1]
            if filed.get(key) is entry:
                if key not in held:
                    return entry
                aside.append((rank, entry))
            heappop(heap)
        return None

    def _lift_least(self, held: Collection[Key], count: int, aside: Lifted) -> Lifted:
        """Lift the first `count` entries that nothing holds, or as many as there are."""
        found: Lifted = []
        while self.heaps and len(found) < count:
            rank = self.heaps.keys()[0]
            if self.head(rank, held, aside) is None:
                del self.heaps[rank]
            else:
                found.append((rank, heappop(self.heaps[rank])))
        return found

    def first(self, held: Collection[Key]) -> Key | None:
        """The least key that nothing holds."""
        aside: Lifted = []
        found = self._lift_least(held, 1, aside)
        self.put_back(aside + found)
        return found[0][1][1] if found else None

    def take(self, held: Collection[Key], count: int) -> list[Key]:
        """Remove the first `count` keys that nothing holds, or as many as there are, and return them in order."""
        aside: Lifted = []
        gone = [entry[1] for _, entry in self._lift_least(held, count, aside)]
        self.put_back(aside)
        for key in gone:
            del self.filed[key]
        return gone

    def shift(self, shifted: int) -> None:
        """Every rank is halved, rounding down, until `shifted` halvings have been made in all."""
        self._meet(shifted - self.shifted)
        self.shifted = shifted

    def level(self) -> None:
        """Every rank becomes 0."""
        if self.heaps:
            self._meet(self.heaps.keys()[-1].bit_length())

    def _meet(self, places: int) -> None:
        """Every rank becomes itself >> `places`. Of two heaps that meet, the smaller is put on the larger one.

        So whoever is moved is among twice as many as before: O(log n) moves for each filing, at most.
        """
        former, self.heaps = self.heaps, SortedDict()
        for rank, heap in former.items():
            met = self.heaps.get(rank >> places, [])
            small, large = (met, heap) if len(met) < len(heap) else (heap, met)
            for entry in small:
                heappush(large, entry)
            self.heaps[rank >> places] = large
