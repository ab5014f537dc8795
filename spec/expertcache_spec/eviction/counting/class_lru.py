"""Class LRU: evict what is oldest for its class of use.

What it is: one LRU list for each class of an exponentially decayed use count, as llama.cpp's ClassLRU keeps them.
State: for every key ever asked for a decayed count; for each resident its class and the time of its latest touch.
Order: age * 2**-class, falling; ties go to the lower class (or the higher, `ties=high`), then to the least recent. Age
is the time of the clock since the latest touch.
Transitions: a request first decays the key's count to the present, then adds one; this happens to absent keys too. A
hit or an insert of any kind sets the class, floor(log2(count)) between 0 and `classes` - 1, and the time: a class is
as of the latest touch, and does not fall while the count decays. A reset of history zeroes counts and classes; times
stay.
Laws: with one class it is `lru`, and so it is while no count reaches two. A key of class n leaves before the oldest of
class 0 only when it is more than 2**n times as old. Under touch `router` a stack policy.
Engines that differ: the engine keeps its counts in floating point; here they are fixed-point, so that every machine
agrees. Its order among equal scores, and the class of what was never asked for, are not stated: lower class, and 0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from expertcache_spec.eviction.base import Past, Policy, first_free
from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.eviction.counting.clock import Clock, clock_parameter
from expertcache_spec.eviction.counting.decay import BITS, ONE, Decay
from expertcache_spec.eviction.counting.stating import Stated
from expertcache_spec.eviction.index import Ranks
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


@attrs.define(slots=False)
class UseCounts:
    """Decayed counts of requests, each as of its latest request (XC-EVICT-077)."""

    clock: Clock
    decay: Decay
    classes: int
    counts: dict[Key, tuple[int, int]] = attrs.field(factory=dict)
    """Key to its count and the time it is as of."""

    def begin(self, event: Event) -> None:
        """Count the requests."""
        self.clock.begin(event)
        for key in event.keys:
            self.counts[key] = (self.of(key) + ONE, self.clock.now)

    def of(self, key: Key) -> int:
        """The present count, in units of 2**-32."""
        count, then = self.counts.get(key, (0, 0))
        return self.decay.after(count, self.clock.now - then)

    def class_of(self, key: Key) -> int:
        """The present class (XC-EVICT-078)."""
        return min(max((self.of(key) >> BITS).bit_length() - 1, 0), self.classes - 1)


@attrs.define(slots=False, kw_only=True)
class ClassLruRule(Stated):
    """The rule (XC-EVICT-076)."""

    counts: UseCounts
    ties: str
    touch: dict[Key, tuple[int, int]] = attrs.field(factory=dict)
    """Class and time of the latest touch."""

    def begin(self, event: Event) -> None:
        """Count the requests."""
        super().begin(event)
        self.counts.begin(event)

    def hit(self, key: Key, now: int) -> None:
        """Set the class and the time."""
        super().hit(key, now)
        self.touch[key] = (self.counts.class_of(key), self.counts.clock.now)

    def insert(self, key: Key, now: int) -> None:
        """As a hit."""
        super().insert(key, now)
        self.touch[key] = (self.counts.class_of(key), self.counts.clock.now)

    def forget(self) -> None:
        """Zero the counts and the classes."""
        super().forget()
        self.counts.counts.clear()
        self.touch = {key: (0, time) for key, (_, time) in self.touch.items()}

    def place(self, past: Past, key: Key) -> tuple[Any, ...]:
        """Greatest age for its class; the lower class; least recent."""
        number, time = self.touch[key]
        age = (self.counts.clock.now - time) << (self.counts.classes - number)
        return (-age, number if self.ties == "low" else -number, past.touched[key])


@attrs.define(slots=False)
class ClassLru(Policy):
    """The indexed form: a list for each class by recency; a victim compares their heads."""

    name: ClassVar[str] = "class-lru"
    stamped: ClassVar[bool] = False
    half_life: int
    classes: int
    clock: str
    ties: str
    counts: UseCounts = attrs.field(init=False)
    times: dict[Key, int] = attrs.field(factory=dict)
    lists: Ranks = attrs.field(factory=Ranks)

    def __attrs_post_init__(self) -> None:
        self.counts = UseCounts(Clock(self.clock), Decay(self.half_life), self.classes)

    def begin(self, event: Event) -> None:
        """Count the requests."""
        self.counts.begin(event)

    def insert(self, key: Key, now: int) -> None:
        """Append to the list of the present class."""
        self.times[key] = self.counts.clock.now
        self.lists.file(key, self.counts.class_of(key))

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Nothing yet: `settle` moves them."""

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """As hits."""

    def settle(self, keys: Sequence[Key]) -> None:
        """Append all to the lists of their present classes, in touch order."""
        for key in keys:
            self.insert(key, 0)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """Of the heads, the oldest for its class."""
        now, classes, sign = self.counts.clock.now, self.classes, 1 if self.ties == "low" else -1
        best: tuple[int, int, Key] | None = None
        for number, keys in self.lists.ranks.items():
            key = first_free(keys, held)
            if key is not None:
                found = (-((now - self.times[key]) << (classes - number)), sign * number, key)
                best = found if best is None else min(best, found)
        return best[2] if best is not None else None

    def evict(self, key: Key) -> None:
        """Remove from its list; the count stays."""
        self.lists.remove(key)
        del self.times[key]

    def forget(self) -> None:
        """One list again, by recency."""
        self.counts.counts.clear()
        self.lists.rank_again(lambda key: 0)


CARD = Card(
    "class-lru",
    "XC-EVICT-076",
    lambda half_life, classes, clock, ties: ClassLruRule(
        counts=UseCounts(Clock(clock), Decay(half_life), classes), ties=ties
    ),
    ClassLru,
    "oldest for its class of use",
    "llama.cpp#31233 (b12170)",
    "O(1); a victim looks at each class",
    (
        Parameter("half_life", 128, "units of the clock in which a count falls to half", least=1, most=1 << 20),
        Parameter("classes", 8, "how many classes there are", least=1, most=64),
        clock_parameter("tokens"),
        Parameter("ties", "low", "which class goes first at equal scores", ("low", "high")),
    ),
)
