"""The two indexes that policies are made of: ranks with recency inside a rank, and a heap of ranks that move.

Both answer `first(held)`: the least key that nothing holds. Both must agree with a linear scan.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from heapq import heapify, heappop, heappush
from typing import Any

import attrs

from expertcache_spec.eviction.base import first_free
from expertcache_spec.model import Key


@attrs.define(slots=False)
class Ranks:
    """Keys in order of (rank, latest filing). For orders that only touches change.

    Filing a key costs O(1), and O(log ranks) for a rank that is new. A rank that has run empty stays until it is the
    least, or until the empty ones outnumber the keys.
    """

    filed: dict[Key, tuple[Any, int]] = attrs.field(factory=dict)
    """Key to its rank and the number of its latest filing."""
    ranks: dict[Any, OrderedDict[Key, None]] = attrs.field(factory=dict)
    """Rank to its keys, the earliest filed first."""
    least: list[Any] = attrs.field(factory=list)
    """A heap of the ranks."""
    filings: int = 0

    def file(self, key: Key, rank: Any) -> None:
        """Put the key at the recent end of its rank."""
        old = self.filed.get(key)
        if old is not None:
            del self.ranks[old[0]][key]
        keys = self.ranks.get(rank)
        if keys is None:
            keys = self._open(rank)
        keys[key] = None
        self.filings = number = self.filings + 1
        self.filed[key] = (rank, number)

    def touch(self, keys: Iterable[Key]) -> None:
        """Put filed keys at the recent end of the ranks that they have, one after the other."""
        filed, ranks, number = self.filed, self.ranks, self.filings
        for key in keys:
            rank, number = filed[key][0], number + 1
            ranks[rank].move_to_end(key)
            filed[key] = (rank, number)
        self.filings = number

    def _open(self, rank: Any) -> OrderedDict[Key, None]:
        if len(self.ranks) > 64 + 2 * len(self.filed):
            self.ranks = {rank: keys for rank, keys in self.ranks.items() if keys}
            self.least = sorted(self.ranks)
        heappush(self.least, rank)
        keys = self.ranks[rank] = OrderedDict()
        return keys

    def remove(self, key: Key) -> None:
        """Forget the key."""
        del self.ranks[self.filed.pop(key)[0]][key]

    def first(self, held: Collection[Key]) -> Key | None:
        """The earliest filed key of the least rank, held ones left out."""
        while self.least and not self.ranks[self.least[0]]:
            del self.ranks[heappop(self.least)]
        if not self.least:
            return None
        found = first_free(self.ranks[self.least[0]], held)
        if found is None:
            found = first_free((key for rank in sorted(self.ranks) for key in self.ranks[rank]), held)
        return found

    def rank_again(self, rank: Callable[[Key], Any]) -> None:
        """File every key under a new rank; recency stays."""
        keys = sorted(self.filed, key=lambda key: self.filed[key][1])
        self.filed.clear()
        self.ranks.clear()
        self.least.clear()
        for key in keys:
            self.file(key, rank(key))


@attrs.define(slots=False)
class Heap:
    """Keys in order of (rank, key). For orders with many distinct ranks that only touches change.

    A heap of filings, the outdated ones left in it until they surface or outnumber the others: filing costs O(log n).
    """

    filed: dict[Key, Any] = attrs.field(factory=dict)
    """Key to its present rank."""
    heap: list[tuple[Any, Key]] = attrs.field(factory=list)

    def file(self, key: Key, rank: Any) -> None:
        """Put the key under its rank."""
        self.filed[key] = rank
        heappush(self.heap, (rank, key))
        if len(self.heap) > 64 + 4 * len(self.filed):
            self.heap = [(rank, key) for key, rank in self.filed.items()]
            heapify(self.heap)

    def remove(self, key: Key) -> None:
        """Forget the key; its filings go when they surface."""
        del self.filed[key]

    def rank_again(self, rank: Callable[[Key], Any]) -> None:
        """File every key under a new rank, in time that is linear in their number."""
        self.filed = {key: rank(key) for key in self.filed}
        self.heap = [(rank, key) for key, rank in self.filed.items()]
        heapify(self.heap)

    def first(self, held: Collection[Key]) -> Key | None:
        """The least key, held ones left out."""
        aside: list[tuple[Any, Key]] = []
        found = None
        while self.heap:
            rank, key = self.heap[0]
            if key not in self.filed or self.filed[key] != rank:
                heappop(self.heap)
            elif key in held:
                aside.append(heappop(self.heap))
            else:
                found = key
                break
        for filing in dict.fromkeys(aside):
            heappush(self.heap, filing)
        return found
