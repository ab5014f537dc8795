"""The rules of variants of the literature's policies, each with one thing changed."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from expertcache_spec.eviction.classical.arc import ArcRule
from expertcache_spec.eviction.classical.clock import ClockRule, Slot
from expertcache_spec.eviction.classical.sieve import SieveRule
from expertcache_spec.eviction.classical.slru import SlruRule
from expertcache_spec.eviction.classical.two_q import TwoQRule
from expertcache_spec.model import Key


class HitIsForgotten(ClockRule):
    """A hit counts nothing."""

    def hit(self, key: Key, now: int) -> None:
        """Nothing."""


class HandRestarts(ClockRule):
    """Every search starts from the first slot."""

    first: Slot | None = None

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """Turn the ring back to its first slot."""
        if self.first not in self.ring:
            self.first = self.ring[0] if self.ring else None
        while self.ring and self.ring[0] is not self.first:
            self.ring.append(self.ring.pop(0))
        return super().victim(held, incoming)


class HeldKeysPay(ClockRule):
    """A held key that the hand passes pays as others do."""

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """Held keys pay, and stay."""
        if all(slot.key is None or slot.key in held for slot in self.ring):
            return None
        while True:
            slot = self.ring.pop(0)
            self.ring.append(slot)
            if slot.key is not None and not slot.count and slot.key not in held:
                key = slot.key
                self.evict(key)
                return key
            slot.count = max(0, slot.count - 1)


class SurvivorsMove(SieveRule):
    """A visited key that the hand passes goes to the new end."""

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """Walk, and move."""
        if all(key in held for key in self.queue):
            return None
        key = self.hand or self.queue[0]
        while key in held or key in self.bits:
            following = self._newer(key)
            if key not in held:
                self.bits.remove(key)
                self.queue.remove(key)
                self.queue.append(key)
            key = following or self.queue[0]
        self.hand = key
        self.evict(key)
        return key


class NoPlaceForTheHand(SieveRule):
    """Every search starts from the oldest key."""

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """No hand."""
        self.hand = None
        return super().victim(held, incoming)


class ProtectsOnInsert(SlruRule):
    """An insert is a hit at once."""

    def insert(self, key: Key, now: int) -> None:
        """Enter, and rise."""
        super().insert(key, now)
        self.hit(key, now)


class DemotesToTheOldEnd(SlruRule):
    """What a full segment cannot hold goes to the old end of the one below."""

    def _demote(self) -> None:
        before = [list(keys) for keys in self.lists]
        super()._demote()
        for keys, former in zip(self.lists, before, strict=True):
            fallen = [key for key in keys if key not in former]
            keys[:] = [*reversed(fallen), *(key for key in keys if key in former)]


class TargetStays(ArcRule):
    """A ghost moves no target."""

    def misses(self, keys: Sequence[Key]) -> None:
        """Learn nothing."""
        p = self.p
        super().misses(keys)
        self.p = p


class GhostsReturnAsNew(ArcRule):
    """A ghost that returns enters T1."""

    def insert(self, key: Key, now: int) -> None:
        """As any other."""
        self.returning.pop(key, None)
        super().insert(key, now)


class HitPromotes(TwoQRule):
    """A hit in A1in moves the key to Am."""

    def hit(self, key: Key, now: int) -> None:
        """No first comer any more."""
        if key in self.queue_in:
            self.queue_in.remove(key)
            self.main.append(key)
