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

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from expertcache_spec.eviction.base import Past, Policy, by_order, first_free
from expertcache_spec.eviction.cards import Card
from expertcache_spec.model import Key


def order(past: Past, key: Key) -> tuple[Any, ...]:
    """The rule (XC-EVICT-010)."""
    return (past.inserted[key],)


@attrs.define(slots=False)
class Fifo(Policy):
    """The indexed form: one queue; a victim costs O(held keys at the old end), a record that leaves otherwise O(n)."""

    name: ClassVar[str] = "fifo"
    stamped: ClassVar[bool] = False
    queue: deque[Key] = attrs.field(factory=deque)

    def insert(self, key: Key, now: int) -> None:
        """Append."""
        self.queue.append(key)

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Nothing."""

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Append all."""
        self.queue.extend(keys)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The oldest insert that nothing holds."""
        return first_free(self.queue, held)

    def leave(self, held: Collection[Key], incoming: Sequence[Key]) -> list[Key]:
        """The oldest, in one walk."""
        return self._oldest(held, len(incoming))

    def _oldest(self, held: Collection[Key], count: int) -> list[Key]:
        gone: list[Key] = []
        passed: list[Key] = []
        take = self.queue.popleft
        while count > 0:
            key = take()
            if key in held:
                passed.append(key)
            else:
                gone.append(key)
                count -= 1
        if passed:
            self.queue.extendleft(reversed(passed))
        return gone

    def turn(
        self, order: Sequence[Key], hits: Sequence[Key], misses: Sequence[Key], stamps: Mapping[Key, int], going: int
    ) -> list[Key]:
        """The oldest go, the misses come."""
        gone = self._oldest(hits, going)
        self.inserts(misses, stamps)
        return gone

    def evict(self, key: Key) -> None:
        """Remove."""
        self.queue.remove(key)


CARD = Card(
    "fifo",
    "XC-EVICT-010",
    by_order(order),
    Fifo,
    "first inserted, first evicted",
    "classical; what a broken LRU becomes",
    "O(1)",
)
