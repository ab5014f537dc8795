"""Aged LFU: evict what was asked for least often lately; all counts are halved from time to time.

What it is: `lfu` that can forget: counts outlive the residency, as there, but what was hot once does not stay so.
State: a count for every key ever asked for, the stamp of each resident's latest touch, and a clock.
Order: (count, stamp of the latest touch), rising: ties go to the least recent.
Transitions: every request adds one, hit, miss, bypass or refusal alike. When an event begins and the clock, that event
included, reaches a multiple of `every`, all counts are halved first, rounded down to `places` binary places: once for
each multiple. A seed or a prefetch counts nothing and is the most recent. A reset of history zeroes the counts; the
clock runs on.
Laws: without aging (`every` 0, or more than the trace is long) it is `lfu`. Halving never turns two counts round; with
whole counts it makes ties, and so moves the choice towards `lru`. Halved at every event, whole counts are none or one,
and without prefetches the policy is `lru` exactly. Under touch `router` a stack policy.
Engines that differ: q36 halves every 16 tokens and breaks ties by recency; slipstream and Mference every 32 plans
(calls of one layer: `clock=events`); astronomical every 512 tokens or so, and weighs counts by what a reload costs.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

import attrs

from expertcache_spec.eviction.base import Past, Policy
from expertcache_spec.eviction.cards import Card
from expertcache_spec.eviction.counting.clock import Clock, clock_parameter
from expertcache_spec.eviction.counting.halving import EVERY, PLACES, HalvedCounts, Halving
from expertcache_spec.eviction.index import Heap
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


class LfuAgedRule(Halving):
    """The rule (XC-EVICT-060): LFU over counts that halve."""

    def place(self, past: Past, key: Key) -> tuple[Any, ...]:
        """Fewest requests, as they are now; then least recent."""
        return (self.counts.get(key, 0), past.touched[key])


@attrs.define(slots=False)
class LfuAged(Policy):
    """The indexed form: a heap of (count, stamp); residents whose count has changed by halving are filed again.

    That happens when a victim is next wanted, and only to counts that are not zero yet. A request adds one such filing
    at most, so that a halving costs nothing but what the requests before it have paid for.
    """

    name: ClassVar[str] = "lfu-aged"
    every: int
    places: int
    clock: str
    counts: HalvedCounts = attrs.field(init=False)
    index: Heap = attrs.field(factory=Heap)
    stamps: dict[Key, int] = attrs.field(factory=dict)
    warm: dict[Key, None] = attrs.field(factory=dict)
    """Residents filed under more than zero."""
    filed_at: int = 0
    """How many halvings the filings know of."""

    def __attrs_post_init__(self) -> None:
        self.counts = HalvedCounts(self.every, self.places, Clock(self.clock))

    def begin(self, event: Event) -> None:
        """Count every key asked for."""
        self.counts.begin(event)

    def hit(self, key: Key, now: int) -> None:
        """File under the new count and stamp."""
        self.stamps[key] = now
        self._file(key)

    def insert(self, key: Key, now: int) -> None:
        """As a hit; what was counted before, counts."""
        self.hit(key, now)

    def _file(self, key: Key) -> None:
        count = self.counts.of(key)
        self.index.file(key, (count, self.stamps[key]))
        if count:
            self.warm[key] = None
        else:
            self.warm.pop(key, None)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least recent key of the least count."""
        if self.filed_at != self.counts.halvings:
            self.filed_at = self.counts.halvings
            self._file_again()
        return self.index.first(held)

    def _file_again(self) -> None:
        for key in list(self.warm):
            self._file(key)

    def evict(self, key: Key) -> None:
        """Remove from the index; the count stays."""
        self.index.remove(key)
        del self.stamps[key]
        self.warm.pop(key, None)

    def forget(self) -> None:
        """Zero the counts; the recency stays."""
        self.counts.counts.clear()
        self._file_again()


CARD = Card(
    "lfu-aged",
    "XC-EVICT-060",
    lambda every, places, clock: LfuAgedRule(every=every, places=places, clock=Clock(clock)),
    LfuAged,
    "least often asked for, all counts halved from time to time",
    "q36, slipstream, Mference, astronomical",
    "O(log resident), amortized over halvings",
    (EVERY, PLACES, clock_parameter("passes")),
)
