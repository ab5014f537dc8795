"""LFU: evict what was asked for least often.

What it is: two policies under one name. `lfu` counts every event that asked for the key, resident or not, and keeps
the count across evictions; `lfu-reset` counts from the latest insert, so an evicted key starts at one again.
State: a count for each key and the stamp of its latest touch.
Order: (count, stamp of the latest touch), rising: ties go to the least recent.
Transitions: `lfu`: every request adds one, hit, miss, bypass or refusal alike. `lfu-reset`: an insert sets one, a hit
adds one. A repeat inside an event moves the recency, never the count.
Laws: where LRU must hit exactly 0 (XC-EVICT-004), `lfu-reset` does too: no count ever passes one. `lfu` need not: kept
counts break the cycle wherever routing is skewed. Under touch `router` `lfu` is a stack policy; `lfu-reset` is none.
Which key leaves at equal counts decides the result.
Engines that differ: BigMoeOnEdge keeps counts; MoE-Infinity, libCacheSim and cachetools drop them at eviction; cacheus
breaks ties towards the most recent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from expertcache_spec.eviction.base import Past, Policy, by_order
from expertcache_spec.eviction.cards import Card
from expertcache_spec.eviction.index import Ranks
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


def order(past: Past, key: Key) -> tuple[Any, ...]:
    """The rule of `lfu` (XC-EVICT-030)."""
    return (past.requests.get(key, 0), past.touched[key])


def order_reset(past: Past, key: Key) -> tuple[Any, ...]:
    """The rule of `lfu-reset` (XC-EVICT-040)."""
    return (past.uses[key], past.touched[key])


@attrs.define(slots=False)
class _Counting(Policy):
    """Both indexed forms: keys by count, and by recency inside a count. A touch costs O(1) but for new counts."""

    stamped: ClassVar[bool] = False
    counts: dict[Key, int] = attrs.field(factory=dict)
    index: Ranks = attrs.field(factory=Ranks)

    def insert(self, key: Key, now: int) -> None:
        """File under the present count."""
        self.index.file(key, self.counts.get(key, 0))

    def settle(self, keys: Sequence[Key]) -> None:
        """Re-file what was touched under its new count, in touch order."""
        for key in keys:
            self.index.file(key, self.counts.get(key, 0))

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least recent key of the least count."""
        return self.index.first(held)

    def evict(self, key: Key) -> None:
        """Remove from the index."""
        self.index.remove(key)

    def forget(self) -> None:
        """Zero the counts; the recency stays."""
        self.counts.clear()
        self.index.rank_again(lambda key: 0)


@attrs.define(slots=False)
class Lfu(_Counting):
    """The indexed form of `lfu`: counts of everything ever asked for."""

    name: ClassVar[str] = "lfu"

    def begin(self, event: Event) -> None:
        """Count every key asked for."""
        for key in event.keys:
            self.counts[key] = self.counts.get(key, 0) + 1

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Counted already; `settle` re-files."""

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """As hits."""


@attrs.define(slots=False)
class LfuReset(_Counting):
    """The indexed form of `lfu-reset`: counts of what is resident."""

    name: ClassVar[str] = "lfu-reset"

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """One more use each."""
        for key in keys:
            self.counts[key] = self.counts.get(key, 0) + 1

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Uses start at one."""
        self.counts.update(dict.fromkeys(keys, 1))

    def insert(self, key: Key, now: int) -> None:
        """As `inserts`, for a seed or a prefetch."""
        self.counts[key] = 1
        super().insert(key, now)

    def evict(self, key: Key) -> None:
        """The count goes with the record."""
        super().evict(key)
        self.counts.pop(key, None)


CARDS = (
    Card(
        "lfu",
        "XC-EVICT-030",
        by_order(order),
        Lfu,
        "least often asked for, counts kept across evictions",
        "BigMoeOnEdge; arXiv 2608.07911",
        "O(1), O(log counts) for a new count",
    ),
    Card(
        "lfu-reset",
        "XC-EVICT-040",
        by_order(order_reset),
        LfuReset,
        "least often used since its insert",
        "MoE-Infinity, libCacheSim, cachetools",
        "O(1), O(log counts) for a new count",
    ),
)
