"""SLRU: a key earns its place by a second use; the victim is the least recent of the lowest segment that has one.

What it is: an LRU in segments, a probationary one that scans wash through and protected ones that they do not reach.
State: `segments` lists in order of recency. Each above the first holds at most its equal part of `protected` times the
capacity, rounded down; the first holds the rest, whatever that is.
Order: (segment, recency inside it), rising. Held keys are passed over where they lie.
Transitions: a hit moves the key one segment up, at most to the top; while a segment above the first then holds too
many, its least recent key goes to the recent end of the one below. An insert (seed and prefetch alike) enters the first
segment, or under `fill` lowest-with-room the lowest one that holds less than an equal part of the capacity. A smaller
capacity demotes at once, from the top. Segments are places and not counts: a reset of history leaves them.
Laws: with one segment, or with nothing protected, it is LRU. No segment above the first ever holds more than its part.
Under `fill` first a key that was never hit is in the first segment, so no scan pushes out a protected key. No stack
policy.
Engines that differ: libCacheSim's SLRU is 4 segments, `protected` 0.75, `fill` lowest-with-room, victim for victim
where the capacity is a multiple of 4 (elsewhere a hit of its may evict). tinyserve protects 0.8 in two segments. vLLM's
proposed SLRU lets a key that it remembers as protected skip probation.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

import attrs

from expertcache_spec.eviction.base import Policy, first_free
from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.model import Key


def share(capacity: int, segments: int, protected: float) -> int:
    """What one segment above the first may hold, in records."""
    return int(capacity * protected / (segments - 1)) if segments > 1 else 0


@attrs.define(slots=False)
class SlruRule(Policy):
    """The rule (XC-EVICT-110): lists, the least recent first."""

    segments: int
    protected: float
    fill: str
    capacity: int = attrs.field(default=0, init=False)
    lists: list[list[Key]] = attrs.field(
        default=attrs.Factory(lambda self: [[] for _ in range(self.segments)], takes_self=True), init=False
    )

    @property
    def present(self) -> list[Key]:
        """Every key that holds a slot."""
        return [key for keys in self.lists for key in keys]

    def _level(self, key: Key) -> int:
        return next(level for level, keys in enumerate(self.lists) if key in keys)

    def _demote(self) -> None:
        for level in reversed(range(1, self.segments)):
            while len(self.lists[level]) > share(self.capacity, self.segments, self.protected):
                self.lists[level - 1].append(self.lists[level].pop(0))

    def set_capacity(self, records: int) -> None:
        """Demote what a smaller capacity does not protect."""
        self.capacity = records
        self._demote()

    def hit(self, key: Key, now: int) -> None:
        """One segment up, and the overflow down."""
        level = self._level(key)
        self.lists[level].remove(key)
        self.lists[min(level + 1, self.segments - 1)].append(key)
        self._demote()

    def insert(self, key: Key, now: int) -> None:
        """Enter the first segment, or the lowest with room."""
        level = 0
        if self.fill == "lowest-with-room":
            room = [n for n, keys in enumerate(self.lists) if len(keys) < self.capacity // self.segments]
            level = min(room, default=0)
        self.lists[level].append(key)
        self._demote()

    def settle(self, keys: Sequence[Key]) -> None:
        """Recency inside a segment is touch order."""
        for key in keys:
            keys_of_its_segment = self.lists[self._level(key)]
            keys_of_its_segment.remove(key)
            keys_of_its_segment.append(key)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least recent of the lowest segment."""
        for keys in self.lists:
            for key in keys:
                if key not in held:
                    keys.remove(key)
                    return key
        return None

    def evict(self, key: Key) -> None:
        """Remove."""
        for keys in self.lists:
            if key in keys:
                keys.remove(key)


@attrs.define(slots=False)
class Slru(Policy):
    """The indexed form: an ordered dict for each segment; a touch costs a move, and one more for each segment above."""

    name: ClassVar[str] = "slru"
    stamped: ClassVar[bool] = False
    segments: int
    protected: float
    fill: str
    capacity: int = attrs.field(default=0, init=False)
    share: int = attrs.field(default=0, init=False)
    levels: dict[Key, int] = attrs.field(factory=dict, init=False)
    lists: tuple[OrderedDict[Key, None], ...] = attrs.field(
        default=attrs.Factory(lambda self: tuple(OrderedDict() for _ in range(self.segments)), takes_self=True),
        init=False,
    )

    def set_capacity(self, records: int) -> None:
        """Demote from the top."""
        self.capacity, self.share = records, share(records, self.segments, self.protected)
        self._demote(self.segments - 1)

    def _demote(self, level: int) -> None:
        """Move the overflow of this segment and of those below it down."""
        for above in range(level, 0, -1):
            keys, below = self.lists[above], self.lists[above - 1]
            while len(keys) > self.share:
                key, _ = keys.popitem(last=False)
                below[key] = None
                self.levels[key] = above - 1

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Promote each in turn."""
        levels, lists, top = self.levels, self.lists, self.segments - 1
        for key in keys:
            level = levels[key]
            if level < top:
                del lists[level][key]
                lists[level + 1][key] = None
                levels[key] = level + 1
                self._demote(level + 1)
            else:
                lists[top].move_to_end(key)

    def insert(self, key: Key, now: int) -> None:
        """Enter the first segment, or the lowest with room."""
        level = 0
        if self.fill == "lowest-with-room":
            part = self.capacity // self.segments
            level = next((n for n, keys in enumerate(self.lists) if len(keys) < part), 0)
        self.lists[level][key] = None
        self.levels[key] = level
        self._demote(level)

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """As `insert`."""
        for key in keys:
            self.insert(key, 0)

    def settle(self, keys: Sequence[Key]) -> None:
        """Move each to the recent end of its segment."""
        for key in keys:
            self.lists[self.levels[key]].move_to_end(key)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The first free key of the first segment that has one."""
        for keys in self.lists:
            key = first_free(keys, held)
            if key is not None:
                self.evict(key)
                return key
        return None

    def evict(self, key: Key) -> None:
        """Remove from its segment."""
        level = self.levels.pop(key, None)
        if level is not None:
            del self.lists[level][key]


CARD = Card(
    "slru",
    "XC-EVICT-110",
    SlruRule,
    Slru,
    "least recent of the lowest segment; a hit promotes",
    "Karedla, Love, Wherry 1994; tinyserve; libCacheSim",
    "O(segments)",
    parameters=(
        Parameter("segments", 2, "how many segments", (), 1, 16),
        Parameter("protected", 0.8, "the part of the capacity that the segments above the first share", (), 0, 1),
        Parameter("fill", "first", "which segment a new key enters", ("first", "lowest-with-room")),
    ),
)
