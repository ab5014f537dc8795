"""Plain right caches for the policies of the caching literature, as lists and dicts: what `wrong_queues` gets wrong.

They do slots under one global budget and nothing else: no leases, pins or resizes.
"""

from __future__ import annotations

from expertcache_conformance.adapters.protocol import Config
from expertcache_conformance.miniatures.plain import PlainCache
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


class QueueCache(PlainCache):
    """Hits, then ghosts, then all victims of the event, then its inserts."""

    def count(self, event: Event) -> None:
        """Tell the hits."""
        for key in event.keys:
            if key in self.stamp:
                self.hit(key)

    def load(self, reads: list[Key], held: set[Key]) -> list[Key]:
        """All victims before the first insert."""
        self.meet(reads)
        victims = []
        for number, key in enumerate(reads):
            if len(self.stamp) + number >= (self.slots or 0):
                victims.append(self.choose(key, reads[:number], held))
                self.evict(victims[-1])
        for key in reads:
            self.insert(key)
            self.reading.add(key)
        return victims

    def hit(self, key: Key) -> None:
        """A resident is asked for."""

    def meet(self, reads: list[Key]) -> None:
        """What is about to be loaded, for those who keep ghosts."""

    def choose(self, incoming: Key, earlier: list[Key], held: set[Key]) -> Key:
        """The victim for the incoming key, which the earlier misses of its event come before."""
        return self.victim(incoming.layer, held)


class ArrayClock(QueueCache):
    """CLOCK as an array of slots, a bit for each and a hand that is an index."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.ring: list[list[Key | None]] = []
        """Slots, each a list of one."""
        self.freed: list[list[Key | None]] = []
        self.bits: set[Key] = set()
        self.hand = 0

    def hit(self, key: Key) -> None:
        """Set the bit."""
        self.bits.add(key)

    def insert(self, key: Key) -> None:
        """Into the slot that was freed first, or a new one that the hand comes to last."""
        super().insert(key)
        if self.freed:
            self.freed.pop(0)[0] = key
        elif self.hand:
            self.ring.insert(self.hand, [key])
            self.hand += 1
        else:
            self.ring.append([key])

    def choose(self, incoming: Key, earlier: list[Key], held: set[Key]) -> Key:
        """Turn the hand."""
        while True:
            slot = self.ring[self.hand]
            self.hand = (self.hand + 1) % len(self.ring)
            key = slot[0]
            if key is None:
                continue
            if key in held:
                self.pass_held(key)
            elif key in self.bits:
                self.bits.discard(key)
            else:
                slot[0] = None
                self.freed.append(slot)
                return key

    def pass_held(self, key: Key) -> None:
        """As if it were not there."""


class LinkedSieve(QueueCache):
    """SIEVE as the paper draws it: a linked list, a bit for each key, a hand that walks from old to new."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.newer: dict[Key | None, Key | None] = {None: None}
        self.older: dict[Key | None, Key | None] = {None: None}
        self.bits: set[Key] = set()
        self.hand: Key | None = None

    def hit(self, key: Key) -> None:
        """Set the bit."""
        self.bits.add(key)

    def insert(self, key: Key) -> None:
        """At the new end."""
        super().insert(key)
        self.link(key)

    def link(self, key: Key) -> None:
        """Behind the newest; None is before the oldest and behind the newest."""
        newest = self.older[None]
        self.newer[newest], self.older[key], self.newer[key], self.older[None] = key, newest, None, key

    def unlink(self, key: Key) -> None:
        """Join the neighbours."""
        newer, older = self.newer.pop(key), self.older.pop(key)
        self.newer[older], self.older[newer] = newer, older

    def choose(self, incoming: Key, earlier: list[Key], held: set[Key]) -> Key:
        """Walk from the hand; past the newest the oldest follows."""
        while True:
            key = self.hand or self.newer[None]
            assert key is not None
            self.hand = self.newer[key]
            if key not in held and key not in self.bits:
                self.unlink(key)
                return key
            if key not in held:
                self.pass_by(key)

    def pass_by(self, key: Key) -> None:
        """Clear the bit."""
        self.bits.discard(key)


class Segments(QueueCache):
    """SLRU with two segments: a number for each key, recency by stamp."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.segment: dict[Key, int] = {}
        self.share = float(config.parameters["protected"])

    def order(self, key: Key) -> tuple[int, ...]:
        """Probation first, then least recent."""
        return (self.segment[key], self.stamp[key])

    def hit(self, key: Key) -> None:
        """Protect the key, and demote what is too much."""
        self.segment[key] = 1
        self.touch(key)
        self.balance()

    def balance(self) -> None:
        """The least recent of the protected go back, as the most recent on probation."""
        while len(kept := [key for key in self.stamp if self.segment.get(key)]) > int((self.slots or 0) * self.share):
            least = min(kept, key=self.order)
            self.segment[least] = 0
            self.demote(least)

    def demote(self, key: Key) -> None:
        """To the recent end."""
        self.touch(key)

    def insert(self, key: Key) -> None:
        """On probation."""
        super().insert(key)
        self.segment[key] = 0
