"""Belady: evict what is asked for latest again.

What it is: the offline bound. Records of one event are chosen together, so a co-requested expert is never evicted by
its own event: single-key Belady does that in a fifth of the steps, and is a bound no engine can reach.
State: for each key, the index of the next event that asks for it.
Order: next use, falling; keys that nobody asks for again come first. Ties go to the lowest (layer, expert).
Transitions: every request moves the key's next use forward. Under admission `refusable` (bypass) an incoming key
whose next use is no sooner than the victim's is served and not kept: equality bypasses.
Laws: with records of one size, bypass reads no more than forced, and forced no more than any forced-admit policy; with
unequal sizes it is only a heuristic. Bypass is optimal under room `retain`, forced under room `reserve`; admission
`refusable` under `reserve` decides key by key and lies between the two. A stack policy under either touch order.
Engines that differ: libCacheSim inserts by force, one key at a time; PyMimircache bypasses; BigMoeOnEdge's replay is
forced, by batch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from expertcache_spec.eviction.base import NEVER, Declarative, Past, Policy, check_expected
from expertcache_spec.eviction.cards import Card, Future
from expertcache_spec.eviction.index import Heap
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


def order(past: Past, key: Key) -> tuple[Any, ...]:
    """The rule (XC-EVICT-050)."""
    return (-past.next_use(key),)


@attrs.define(slots=False)
class Belady(Policy):
    """The indexed form: a heap of (-next use, key); every request costs O(log resident).

    `future` is consumed: give every partition of one machine the same, every machine its own.
    """

    name: ClassVar[str] = "belady"
    stamped: ClassVar[bool] = False
    can_refuse = True
    future: Future
    index: Heap = attrs.field(factory=Heap)

    def _next(self, key: Key) -> int:
        uses = self.future.uses.get(key)
        return uses[0] if uses else NEVER

    def begin(self, event: Event) -> None:
        """The event's own requests are no longer in the future."""
        coming = self.future.by_layer.get(event.layer)
        check_expected(event, coming[0] if coming else None)
        self.future.by_layer[event.layer].popleft()
        for key in event.keys:
            self.future.uses[key].popleft()

    def insert(self, key: Key, now: int) -> None:
        """File under the next use."""
        self.index.file(key, -self._next(key))

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Re-file each under its next use."""
        for key in keys:
            self.index.file(key, -self._next(key))

    inserts = hits

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The latest next use that nothing holds."""
        return self.index.first(held)

    def refuses(self, incoming: Key, victim: Key) -> bool:
        """Whether the incoming key is asked for again no sooner than the victim."""
        rank: int = self.index.filed[victim]
        return -self._next(incoming) <= rank

    def evict(self, key: Key) -> None:
        """Remove from the index."""
        self.index.remove(key)


def declare(future: Future) -> Policy:
    """The declarative form."""
    return Declarative(order, Past(future=future.events), can_refuse=True)


CARD = Card(
    "belady",
    "XC-EVICT-050",
    declare,
    Belady,
    "latest next use: the offline bound",
    "Belady 1966; batch form after BigMoeOnEdge and arXiv 2608.07911",
    "O(log resident)",
    offline=True,
    can_refuse=True,
)
