"""LRU: evict what was touched longest ago.

What it is: recency over the keys of one partition: the whole cache (scope global) or one layer (scope layer).
State: the keys in order of their latest touch.
Order: stamp of the latest touch, rising. Stamps are unique, so there are no ties.
Transitions: a hit, an insert and (under repeats `promote`) a later row of the same event make the key the most recent.
Laws: a global LRU at one token cycle less one event, or below, hits exactly 0 on decode (XC-EVICT-004); between there
and one token cycle it keeps only the last-ranked keys of an event. A stack policy under touch `router`; under
`hits_first` a larger cache may even miss more.
Engines that differ: BigMoeOnEdge walks the rows in router order and trims after the load; llama.cpp's plan cache and
ds4 touch the hits of an event first; Flash-MoE stamps without protecting the batch.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from expertcache_spec.eviction.base import Past, Policy, by_order, first_free, leave_in_order
from expertcache_spec.eviction.cards import Card
from expertcache_spec.model import Key


def order(past: Past, key: Key) -> tuple[Any, ...]:
    """The rule (XC-EVICT-020)."""
    return (past.touched[key],)


@attrs.define(slots=False)
class Lru(Policy):
    """The indexed form: one ordered dict, each touch one move; a victim costs O(held keys at the old end)."""

    name: ClassVar[str] = "lru"
    stamped: ClassVar[bool] = False
    recency: OrderedDict[Key, None] = attrs.field(factory=OrderedDict)

    def insert(self, key: Key, now: int) -> None:
        """Append as the most recent."""
        self.recency[key] = None

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Nothing yet: `settle` moves them."""

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Append all."""
        recency = self.recency
        for key in keys:
            recency[key] = None

    def settle(self, keys: Sequence[Key]) -> None:
        """Move the touched keys to the recent end, in touch order."""
        move = self.recency.move_to_end
        for key in keys:
            move(key)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least recent key that nothing holds."""
        return first_free(self.recency, held)

    def leave(self, held: Collection[Key], incoming: Sequence[Key]) -> list[Key]:
        """The oldest, in one walk."""
        return leave_in_order(self.recency, held, len(incoming))

    def turn(
        self, order: Sequence[Key], hits: Sequence[Key], misses: Sequence[Key], stamps: Mapping[Key, int], going: int
    ) -> list[Key]:
        """The oldest go, the misses come, all that was asked for moves."""
        gone = leave_in_order(self.recency, hits, going) if going > 0 else []
        self.inserts(misses, stamps)
        self.settle(order)
        return gone

    def evict(self, key: Key) -> None:
        """Remove."""
        del self.recency[key]


CARD = Card(
    "lru",
    "XC-EVICT-020",
    by_order(order),
    Lru,
    "least recently touched",
    "BigMoeOnEdge, Mixtral-offloading, mlx-lm #1588, llama.cpp plan cache",
    "O(1)",
)
