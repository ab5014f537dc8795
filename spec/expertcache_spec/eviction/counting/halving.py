"""Counts that are halved: once eagerly, as the rules say it, and once lazily, as the indexes keep it."""

from __future__ import annotations

import attrs

from expertcache_spec.eviction.cards import Parameter
from expertcache_spec.eviction.counting.clock import Clock
from expertcache_spec.eviction.counting.stating import Stated
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

EVERY = Parameter("every", 16, "units of the clock from one halving of all counts to the next; 0 never halves", least=0)
PLACES = Parameter("places", 0, "binary places that a halved count keeps; 0 keeps whole counts", least=0, most=64)


@attrs.define(slots=False, kw_only=True)
class Halving(Stated):
    """A rule with counts that halve, rounded down, at each multiple of `every` (XC-EVICT-061, XC-EVICT-062).

    places: a request counts 2**places, so that so many halvings lose nothing of it.
    """

    every: int
    places: int
    clock: Clock
    counts: dict[Key, int] = attrs.field(factory=dict)

    def begin(self, event: Event) -> None:
        """Halve for every multiple that the clock reaches with this event, then count its requests."""
        super().begin(event)
        before = self.clock.total
        self.clock.begin(event)
        if self.every:
            for _ in range(before // self.every, self.clock.total // self.every):
                self.counts = {key: count >> 1 for key, count in self.counts.items()}
        for key in event.keys:
            self.counts[key] = self.counts.get(key, 0) + (1 << self.places)

    def forget(self) -> None:
        """Zero the counts."""
        super().forget()
        self.counts.clear()


@attrs.define(slots=False)
class HalvedCounts:
    """The same counts without the sweep: each with the number of halvings that it has been through."""

    every: int
    places: int
    clock: Clock
    counts: dict[Key, tuple[int, int]] = attrs.field(factory=dict)
    halvings: int = 0

    def begin(self, event: Event) -> None:
        """Count the requests."""
        self.clock.begin(event)
        if self.every:
            self.halvings = self.clock.total // self.every
        for key in event.keys:
            self.counts[key] = (self.of(key) + (1 << self.places), self.halvings)

    def of(self, key: Key) -> int:
        """The present count."""
        count, then = self.counts.get(key, (0, 0))
        return count >> (self.halvings - then)
