"""FIFO: evict what was inserted first.

What it is: residency age, whatever the use. The policy that a broken LRU turns into.
State: the keys in order of insertion.
Order: number of the latest insert, rising.
Transitions: insert appends; hit and settle change nothing; evict removes.
Laws: at one token cycle less one event, or below, it hits exactly 0 on decode, as LRU does (XC-EVICT-004). No
stack policy: a larger cache may miss more.
Engines that differ: none known; caches advertised as LRU behave so when a hit does not refresh (bugs 1).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from expertcache_spec.eviction.base import Past, Policy, by_order, first_free, leave_in_order
from expertcache_spec.eviction.cards import Card
from expertcache_spec.model import Key


def order(past: Past, key: Key) -> tuple[Any, ...]:
    """The rule (XC-EVICT-010)."""
    return (past.inserted[key],)


@attrs.define(slots=False)
class Fifo(Policy):
    """The indexed form: one insertion-ordered dict; a victim costs O(held keys at the old end)."""

    name: ClassVar[str] = "fifo"
    stamped: ClassVar[bool] = False
    queue: dict[Key, None] = attrs.field(factory=dict)

    def insert(self, key: Key, now: int) -> None:
        """Append."""
        self.queue[key] = None

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Nothing."""

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Append all."""
        queue = self.queue
        for key in keys:
            queue[key] = None

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The oldest insert that nothing holds."""
        return first_free(self.queue, held)

    def leave(self, held: Collection[Key], incoming: Sequence[Key]) -> list[Key]:
        """The oldest, in one walk."""
        return leave_in_order(self.queue, held, len(incoming))

    def evict(self, key: Key) -> None:
        """Remove."""
        del self.queue[key]


CARD = Card(
    "fifo",
    "XC-EVICT-010",
    by_order(order),
    Fifo,
    "first inserted, first evicted",
    "classical; what a broken LRU becomes",
    "O(1)",
)
