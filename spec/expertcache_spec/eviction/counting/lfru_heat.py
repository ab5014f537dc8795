"""LFRU by heat: evict the least heat; among equal heat what has not been used for longest, up to a limit.

What it is: the LFRU of colibri, frequency first and recency second, with counts that are halved from time to time. Its
namesake `lfru` divides one by the other.
State: a heat for every key ever asked for, the time of each resident's latest touch, and a clock.
Order: (heat, -min(age, oldest)), rising; age is the time since the latest touch. Ties, among them all ages beyond the
limit, go to the earliest insert, or under `ties=key` to the lowest (layer, expert). With the limit 255 this is the
engine's packed score, heat * 256 + 255 - age.
Transitions: every request adds one heat, hit, miss, bypass or refusal alike. When an event begins and the clock has
reached a multiple of `every`, all heats are halved first, rounded down. A hit, an insert, a seed and a prefetch make
the key new; the last two add no heat. A reset of history zeroes the heats; the clock and the ages run on.
Laws: with a limit that no age reaches and a clock of `events` or `lookups` it is `lfu-aged` wherever events ask for
one key each, and differs from it only among keys of one event. With the limit 0 recency does not matter at all. No
stack policy: which insert was earlier depends on the capacity.
Engines that differ: colibri keeps a pinned store beside it and moves an expert into it only when hot > cold + cold/4 +
4: that is admission, not order. It breaks ties by its slots, which are no part of this model. The period of its
halving is not stated; 16 passes is our choice.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from expertcache_spec.eviction.base import Past, Policy
from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.eviction.counting.clock import Clock, clock_parameter
from expertcache_spec.eviction.counting.halving import EVERY, PLACES, HalvedCounts, Halving
from expertcache_spec.eviction.index import Heap
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


@attrs.define(slots=False, kw_only=True)
class LfruHeatRule(Halving):
    """The rule (XC-EVICT-069)."""

    oldest: int
    ties: str
    used: dict[Key, int] = attrs.field(factory=dict)
    """The time of the latest touch."""

    def hit(self, key: Key, now: int) -> None:
        """The key is new again."""
        super().hit(key, now)
        self.used[key] = self.clock.now

    def insert(self, key: Key, now: int) -> None:
        """As a hit."""
        super().insert(key, now)
        self.used[key] = self.clock.now

    def place(self, past: Past, key: Key) -> tuple[Any, ...]:
        """Least heat, then greatest age, then earliest insert."""
        age = min(self.clock.now - self.used[key], self.oldest)
        return (self.counts.get(key, 0), -age, past.inserted[key] if self.ties == "insert" else 0)


@attrs.define(slots=False)
class LfruHeat(Policy):
    """The indexed form: a heap of (heat, whether still aging, time of the latest touch, number of the insert).

    Heats change by halving as those of `lfu-aged` do; beside that a resident is filed anew once, when it has reached
    the greatest age. Both wait until a victim is wanted.
    """

    name: ClassVar[str] = "lfru-heat"
    stamped: ClassVar[bool] = False
    every: int
    places: int
    clock: str
    oldest: int
    ties: str
    heats: HalvedCounts = attrs.field(init=False)
    index: Heap = attrs.field(factory=Heap)
    used: dict[Key, int] = attrs.field(factory=dict)
    numbers: dict[Key, int] = attrs.field(factory=dict)
    """Residents by the number of their insert; zero where ties go by key."""
    inserted: int = 0
    aging: OrderedDict[Key, None] = attrs.field(factory=OrderedDict)
    """Residents below the greatest age, the oldest first."""
    warm: dict[Key, None] = attrs.field(factory=dict)
    """Residents filed under more than zero."""
    filed_at: int = 0
    """How many halvings the filings know of."""

    def __attrs_post_init__(self) -> None:
        self.heats = HalvedCounts(self.every, self.places, Clock(self.clock))

    def begin(self, event: Event) -> None:
        """Heat every key asked for."""
        self.heats.begin(event)

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """The keys are new again."""
        for key in keys:
            self.used[key] = self.heats.clock.now
            self.aging[key] = None
            self.aging.move_to_end(key)
            self._file(key)

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Number them; then as hits."""
        for key in keys:
            self.inserted += self.ties == "insert"
            self.numbers[key] = self.inserted
        self.hits(keys, stamps)

    def insert(self, key: Key, now: int) -> None:
        """As `inserts`, for a seed or a prefetch."""
        self.inserts((key,), {})

    def _file(self, key: Key) -> None:
        heat = self.heats.of(key)
        number = self.numbers[key]
        self.index.file(key, (heat, 1, self.used[key], number) if key in self.aging else (heat, 0, 0, number))
        if heat:
            self.warm[key] = None
        else:
            self.warm.pop(key, None)

    def _age(self) -> None:
        while self.aging:
            key = next(iter(self.aging))
            if self.heats.clock.now - self.used[key] < self.oldest:
                break
            del self.aging[key]
            self._file(key)

    def _cool(self) -> None:
        self.filed_at = self.heats.halvings
        for key in list(self.warm):
            self._file(key)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The oldest key of the least heat."""
        self._age()
        if self.filed_at != self.heats.halvings:
            self._cool()
        return self.index.first(held)

    def evict(self, key: Key) -> None:
        """Remove from the index; the heat stays."""
        self.index.remove(key)
        del self.used[key], self.numbers[key]
        self.aging.pop(key, None)
        self.warm.pop(key, None)

    def forget(self) -> None:
        """Zero the heats; the ages stay."""
        self.heats.counts.clear()
        self._cool()


CARD = Card(
    "lfru-heat",
    "XC-EVICT-069",
    lambda every, places, clock, oldest, ties: LfruHeatRule(
        every=every, places=places, clock=Clock(clock), oldest=oldest, ties=ties
    ),
    LfruHeat,
    "least heat, then the longest unused",
    "colibri",
    "O(log resident), amortized over halvings",
    (
        EVERY,
        PLACES,
        clock_parameter("passes"),
        Parameter("oldest", 255, "the age beyond which all ages are equal", least=0),
        Parameter(
            "ties", "insert", "which of equals goes first: the earliest insert, or the lowest key", ("insert", "key")
        ),
    ),
)
