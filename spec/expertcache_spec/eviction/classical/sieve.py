"""SIEVE: a hand walks the queue from old to new and takes the first key that was not visited since it last came by.

What it is: FIFO with a visited bit and a hand that keeps its place; unlike CLOCK's, a survivor does not move.
State: the queue in order of insertion, a visited bit for each resident, and the hand: a key of the queue, or none.
Order: the keys from the hand towards the newest, then on from the oldest; no hand means the oldest. A visited one loses
its bit and stays where it is; the victim is the first without. A held key is stepped over and keeps its bit.
Transitions: a hit sets the bit. An insert (seed and prefetch alike) goes to the new end, with the bit as `visited`
says, wherever the hand is. The hand rests on the next newer key than the victim; when the victim was the newest, it has
no place and starts from the oldest. When the key under the hand leaves by a failed read, the hand moves to the next
newer one. Reset of history clears the bits; queue and hand stay.
Laws: without any hit it is FIFO. The queue is always in order of insertion. A turn in which nothing is hit leaves no
visit. No stack policy.
Engines that differ: libCacheSim's Sieve is this one, hit for hit and victim for victim; neither it nor the paper knows
held keys.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

import attrs

from expertcache_spec.eviction.base import Policy
from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.model import Key


@attrs.define(slots=False)
class SieveRule(Policy):
    """The rule (XC-EVICT-140): the paper's queue, bits and hand."""

    visited: bool
    queue: list[Key] = attrs.field(factory=list, init=False)
    """Oldest first."""
    bits: set[Key] = attrs.field(factory=set, init=False)
    hand: Key | None = attrs.field(default=None, init=False)

    @property
    def present(self) -> list[Key]:
        """Every key that holds a slot."""
        return self.queue

    def _newer(self, key: Key) -> Key | None:
        place = self.queue.index(key) + 1
        return self.queue[place] if place < len(self.queue) else None

    def hit(self, key: Key, now: int) -> None:
        """Set the bit."""
        self.bits.add(key)

    def insert(self, key: Key, now: int) -> None:
        """Append at the new end."""
        self.queue.append(key)
        if self.visited:
            self.bits.add(key)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """Walk to the first key that was not visited."""
        if all(key in held for key in self.queue):
            return None
        key = self.hand or self.queue[0]
        while key in held or key in self.bits:
            if key not in held:
                self.bits.remove(key)
            key = self._newer(key) or self.queue[0]
        self.hand = key
        self.evict(key)
        return key

    def evict(self, key: Key) -> None:
        """Remove; a hand on the key moves to the next newer."""
        if key in self.queue:
            if key == self.hand:
                self.hand = self._newer(key)
            self.queue.remove(key)
            self.bits.discard(key)

    def forget(self) -> None:
        """Clear the bits."""
        self.bits.clear()


@attrs.define(slots=False)
class Sieve(Policy):
    """The indexed form: the queue cut in two at the hand, so that a step of the hand is one move between ends."""

    name: ClassVar[str] = "sieve"
    stamped: ClassVar[bool] = False
    visited: bool
    bits: dict[Key, bool] = attrs.field(factory=dict, init=False)
    passed: OrderedDict[Key, None] = attrs.field(factory=OrderedDict, init=False)
    """Older than the hand, oldest first."""
    ahead: OrderedDict[Key, None] = attrs.field(factory=OrderedDict, init=False)
    """The key under the hand and everything newer. Empty only when there is nothing."""

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Set the bits."""
        bits = self.bits
        for key in keys:
            bits[key] = True

    def insert(self, key: Key, now: int) -> None:
        """Append at the new end."""
        self.ahead[key] = None
        self.bits[key] = self.visited

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Append all."""
        for key in keys:
            self.insert(key, 0)

    def _turn(self) -> None:
        """Past the newest the hand comes to the oldest."""
        if not self.ahead:
            self.passed, self.ahead = self.ahead, self.passed

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """Move keys past the hand until one was not visited."""
        skipped = 0
        while skipped < len(self.bits):
            key = next(iter(self.ahead))
            if key in held:
                skipped += 1
            elif not self.bits[key]:
                self.evict(key)
                return key
            else:
                self.bits[key], skipped = False, 0
            del self.ahead[key]
            self.passed[key] = None
            self._turn()
        return None

    def evict(self, key: Key) -> None:
        """Remove from its half."""
        if self.bits.pop(key, None) is not None:
            self.passed.pop(key, None)
            self.ahead.pop(key, None)
            self._turn()

    def forget(self) -> None:
        """Clear the bits."""
        self.bits = dict.fromkeys(self.bits, False)


CARD = Card(
    "sieve",
    "XC-EVICT-140",
    SieveRule,
    Sieve,
    "first key from the hand towards the newest that was not visited",
    "Zhang et al., NSDI 2024; libCacheSim",
    "O(1), a turn of the hand amortized over the hits that it undoes",
    parameters=(Parameter("visited", False, "whether an insert counts as a visit"),),
)
