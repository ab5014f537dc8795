"""The hotness of keys: counted, seeded and halved; plainly for the rule, and without a sweep for the index."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import attrs

from expertcache_spec.eviction.engines.clock import TokenClock
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


@attrs.define(slots=False)
class Hotness:
    """The hotness of all keys; the same state under both forms (XC-EVICT-181, XC-EVICT-183, XC-EVICT-185)."""

    clock: TokenClock
    ceiling: int
    of: MutableMapping[Key, int] = attrs.field(factory=dict)

    def note(self, event: Event) -> bool:
        """Halve what is due, then count the event's selections; whether anything was halved."""
        halved = self.halve(self.clock.tick(event))
        for key in event.keys:
            self.add(key, event.multiplicity(key) if event.has_repeats else 1)
        return halved

    def seed(self, key: Key, priority: int) -> bool:
        """Halve what is due, then add the priority; whether anything was halved."""
        halved = self.halve(self.clock.due())
        self.add(key, max(1, priority))
        return halved

    def add(self, key: Key, count: int) -> None:
        """Raise the hotness, to the ceiling at most."""
        self.of[key] = min(self.ceiling, self.of.get(key, 0) + count)

    def halve(self, times: int) -> bool:
        """Halve all, rounding down; what has none is forgotten, so that no more is kept than is hot."""
        if times:
            self.of = {key: hotness >> times for key, hotness in self.of.items() if hotness >> times}
        return times > 0

    def start_anew(self) -> None:
        """Zero all."""
        self.of.clear()
        self.clock.start_anew()


NOTHING = (0, 0)
"""No count, halved never."""


@attrs.define(slots=False, eq=False)
class Halved(MutableMapping[Key, int]):
    """What a dict of positive counts is after `halvings` halvings, each rounding down; zeros are not in it.

    Each count is kept with the number of halvings that it had been through when it was set: rounding down at each is
    one shift. So a halving costs nothing, and a key is remembered for good.
    """

    halvings: int = 0
    counts: dict[Key, tuple[int, int]] = attrs.field(factory=dict)

    def get(self, key: Key, default: Any = None) -> Any:
        """The present count; `default` where it is zero."""
        count, then = self.counts.get(key, NOTHING)
        return count >> (self.halvings - then) or default

    def __getitem__(self, key: Key) -> int:
        count: int = self.get(key, 0)
        if not count:
            raise KeyError(key)
        return count

    def __setitem__(self, key: Key, count: int) -> None:
        self.counts[key] = (count, self.halvings)

    def __delitem__(self, key: Key) -> None:
        del self.counts[key]

    def __iter__(self) -> Iterator[Key]:
        return (key for key in self.counts if self.get(key))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def clear(self) -> None:
        """Forget all."""
        self.counts.clear()


@attrs.define(slots=False)
class LaterHotness(Hotness):
    """The same hotness without the sweep."""

    of: Halved = attrs.field(factory=Halved)  # pyright: ignore[reportIncompatibleVariableOverride]

    def add(self, key: Key, count: int) -> None:
        """As above."""
        counts, halvings = self.of.counts, self.of.halvings
        before, then = counts.get(key, NOTHING)
        now = (before >> halvings - then) + count
        counts[key] = (now if now < self.ceiling else self.ceiling, halvings)

    def halve(self, times: int) -> bool:
        """What is read from now on is halved."""
        self.of.halvings += times
        return times > 0
