"""Heat-protected LRU: evict what was touched longest ago among what has had few hits since its insert.

What it is: LRU that passes over the residents that have earned protection, as TheTom's llama.cpp branch does.
State: the keys in order of their latest touch; for each resident its hits since its latest insert.
Order: (protected, stamp of the latest touch), rising: the least recent cold key; when all are hot, the least recent.
Transitions: an insert of any kind sets the hits to zero, whatever they were before; a hit adds one; both make the key
the most recent. Hits never decay: a resident once hot stays hot until it leaves. A reset of history zeroes the hits.
Laws: with `hot` 0 it is `lru`, unless 0 is to be read literally (`zero=literal`): then what was never hit goes first.
With a threshold that nobody reaches it is `lru` as well. Where LRU must hit exactly 0 (XC-EVICT-004) this does too. No
stack policy: hits count from an insert.
Engines that differ: one engine, two readings of its threshold: whether a resident with exactly `hot` hits is still
cold (`cold=at-most`, in its code) or not (`below`), and what 0 means. It also admits after two sightings and loads in
the background: that is admission.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from expertcache_spec.eviction.base import NEVER, Past, Policy
from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.eviction.counting.stating import Stated
from expertcache_spec.eviction.index import Ranks
from expertcache_spec.model import Key


def most_cold_hits(hot: int, cold: str, zero: str) -> int:
    """The most hits that a resident may have and still be cold (XC-EVICT-075)."""
    if hot == 0 and zero == "lru":
        return NEVER
    return hot if cold == "at-most" else hot - 1


@attrs.define(slots=False, kw_only=True)
class HeatLruRule(Stated):
    """The rule (XC-EVICT-072)."""

    most: int
    earned: dict[Key, int] = attrs.field(factory=dict)
    """Hits since the latest insert."""

    def hit(self, key: Key, now: int) -> None:
        """One more."""
        super().hit(key, now)
        self.earned[key] += 1

    def insert(self, key: Key, now: int) -> None:
        """None yet."""
        super().insert(key, now)
        self.earned[key] = 0

    def forget(self) -> None:
        """None any more."""
        super().forget()
        self.earned = dict.fromkeys(self.earned, 0)

    def place(self, past: Past, key: Key) -> tuple[Any, ...]:
        """Cold before hot, then least recent."""
        return (self.earned[key] > self.most, past.touched[key])


@attrs.define(slots=False)
class HeatLru(Policy):
    """The indexed form: one list of the cold by recency, one of the hot."""

    name: ClassVar[str] = "heat-lru"
    stamped: ClassVar[bool] = False
    hot: int
    cold: str
    zero: str
    most: int = attrs.field(init=False)
    earned: dict[Key, int] = attrs.field(factory=dict)
    index: Ranks = attrs.field(factory=Ranks)

    def __attrs_post_init__(self) -> None:
        self.most = most_cold_hits(self.hot, self.cold, self.zero)

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """One more each; `settle` moves them."""
        for key in keys:
            self.earned[key] += 1

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """None yet; `settle` files them."""
        self.earned.update(dict.fromkeys(keys, 0))

    def insert(self, key: Key, now: int) -> None:
        """None yet."""
        self.earned[key] = 0
        self.index.file(key, self.most < 0)

    def settle(self, keys: Sequence[Key]) -> None:
        """Move to the recent end of its list, in touch order."""
        file, earned, most = self.index.file, self.earned, self.most
        for key in keys:
            file(key, earned[key] > most)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least recent cold key, else the least recent hot one."""
        return self.index.first(held)

    def evict(self, key: Key) -> None:
        """The hits go with the record."""
        self.index.remove(key)
        del self.earned[key]

    def forget(self) -> None:
        """Zero the hits; the recency stays."""
        self.earned = dict.fromkeys(self.earned, 0)
        self.index.rank_again(lambda key: self.most < 0)


CARD = Card(
    "heat-lru",
    "XC-EVICT-072",
    lambda hot, cold, zero: HeatLruRule(most=most_cold_hits(hot, cold, zero)),
    HeatLru,
    "least recent of those with few hits",
    "TheTom/llama-cpp-turboquant#300",
    "O(1)",
    (
        Parameter("hot", 4, "hits since the insert that a cold resident may have", least=0),
        Parameter("cold", "at-most", "whether exactly that many hits are cold", ("at-most", "below")),
        Parameter("zero", "lru", "what 0 protects: nothing, or literally all that was hit", ("lru", "literal")),
    ),
)
