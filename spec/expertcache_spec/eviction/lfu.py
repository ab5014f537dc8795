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

from collections.abc import Collection
from typing import Any, ClassVar

import attrs
from sortedcontainers import SortedList

from expertcache_spec.eviction.base import Past, Policy
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
    """Both indexed forms: a sorted list of (count, stamp, key); every touch costs O(log resident)."""

    entries: dict[Key, tuple[int, int, Key]] = attrs.field(factory=dict)
    index: Any = attrs.field(factory=SortedList)

    def _place(self, key: Key, count: int, now: int) -> None:
        old = self.entries.get(key)
        if old is not None:
            self.index.remove(old)
        self.entries[key] = entry = (count, now, key)
        self.index.add(entry)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least (count, stamp) that nothing holds."""
        for _, _, key in self.index:
            if key not in held:
                return key  # type: ignore[no-any-return]
        return None

    def evict(self, key: Key) -> None:
        """Remove from the index."""
        self.index.remove(self.entries.pop(key))

    def forget(self) -> None:
        """Zero the counts; the recency stays."""
        for _, now, key in list(self.entries.values()):
            self._place(key, 0, now)


@attrs.define(slots=False)
class Lfu(_Counting):
    """The indexed form of `lfu`."""

    name: ClassVar[str] = "lfu"
    counts: dict[Key, int] = attrs.field(factory=dict)

    def begin(self, event: Event) -> None:
        """Count every key asked for."""
        for key in event.keys:
            self.counts[key] = self.counts.get(key, 0) + 1

    def hit(self, key: Key, now: int) -> None:
        """Re-file under the new count and stamp."""
        self._place(key, self.counts.get(key, 0), now)

    def insert(self, key: Key, now: int) -> None:
        """File under the count that the key has kept, zero for one never asked for."""
        self._place(key, self.counts.get(key, 0), now)

    def forget(self) -> None:
        """Zero the counts of all keys."""
        self.counts.clear()
        super().forget()


@attrs.define(slots=False)
class LfuReset(_Counting):
    """The indexed form of `lfu-reset`."""

    name: ClassVar[str] = "lfu-reset"

    def hit(self, key: Key, now: int) -> None:
        """One more use, and a new stamp."""
        self._place(key, self.entries[key][0] + 1, now)

    def insert(self, key: Key, now: int) -> None:
        """Uses start at one."""
        self._place(key, 1, now)
