"""CLOCK: second chance; a hand walks over the slots, lowers what was used, and takes the first that was not.

What it is: FIFO with a reference counter for each key, the cheap stand-in for LRU of paging and of some engines.
State: a ring of slots, a hand, a count from 0 to `ceiling` for each resident (`ceiling` 1 is the reference bit), and
the slots that are free, in the order in which they became so.
Order: the keys as the hand comes to them. One with a count above 0 pays one for being passed; the victim is the first
that cannot pay. A held key is passed as if it were not there: its count stays.
Transitions: a hit adds one, up to `ceiling`. An insert sets `initial`. Under `place` slot it takes the slot that was
freed first, else a new one right behind the hand; under tail always a new one behind the hand, which makes the ring a
queue. A seed or a prefetch is an insert. A slot beyond the capacity (after a trim, or a shrink) goes with its record.
Reset of history zeroes the counts; ring and hand stay.
Laws: with `ceiling` 0 and one key an event it is FIFO. With several it is not: the hand does not come back to a key
that it passed because the event held it, and FIFO does. One key an event, of one size, makes both places one policy;
several do not: in slots a new key stays among the survivors that the hand passed on the way to its victim, as it would
if its event came key by key. No stack policy.
Engines that differ: slotstream is `initial` 1; it has a mode for the smallest pools that takes an empty slot or one of
the missing layer first, and starts cold after a shrink. libCacheSim's Clock, hit for hit and victim for victim, is its
init_freq for `initial` and 2^b - 1 for `ceiling` where its n_bit_counter is b. Slipstream's cache named CLOCK-LRU-K,
whose counts start at 1 and go to K, is this policy with `ceiling` K and `initial` 1.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

import attrs

from expertcache_spec.eviction.base import Policy
from expertcache_spec.eviction.cards import Card, Parameter, above
from expertcache_spec.model import Key


@attrs.define(slots=False, eq=False)
class Slot:
    """A place of the ring; key None: it is free."""

    key: Key | None
    count: int = 0


@attrs.define(slots=False)
class ClockRule(Policy):
    """The rule (XC-EVICT-090): slots in the order in which the hand comes to them."""

    ceiling: int
    initial: int
    place: str
    capacity: int = attrs.field(default=0, init=False)
    ring: list[Slot] = attrs.field(factory=list, init=False)
    free: list[Slot] = attrs.field(factory=list, init=False)

    @property
    def present(self) -> list[Key]:
        """Every key that holds a slot."""
        return [slot.key for slot in self.ring if slot.key is not None]

    def _slot(self, key: Key) -> Slot | None:
        return next((slot for slot in self.ring if slot.key == key), None)

    def set_capacity(self, records: int) -> None:
        """Free slots beyond the capacity go."""
        self.capacity = records
        while len(self.ring) > records and self.free:
            self.ring.remove(self.free.pop())

    def hit(self, key: Key, now: int) -> None:
        """Add one."""
        slot = self._slot(key)
        assert slot is not None
        slot.count = min(slot.count + 1, self.ceiling)

    def insert(self, key: Key, now: int) -> None:
        """Take the slot that was freed first, else one behind the hand."""
        if self.free:
            slot = self.free.pop(0)
            slot.key, slot.count = key, self.initial
        else:
            self.ring.append(Slot(key, self.initial))

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """Turn the hand to the first key that cannot pay."""
        if all(slot.key is None or slot.key in held for slot in self.ring):
            return None
        while True:
            slot = self.ring.pop(0)
            self.ring.append(slot)
            if slot.key is None or slot.key in held:
                continue
            if slot.count == 0:
                key = slot.key
                self.evict(key)
                return key
            slot.count -= 1

    def evict(self, key: Key) -> None:
        """Free the slot, or remove it where it is one too many."""
        slot = self._slot(key)
        if slot is None:
            return
        if self.place == "tail" or len(self.ring) > self.capacity:
            self.ring.remove(slot)
        else:
            slot.key = None
            self.free.append(slot)

    def forget(self) -> None:
        """Zero the counts."""
        for slot in self.ring:
            slot.count = 0


@attrs.define(slots=False)
class Clock(Policy):
    """The indexed form: numbered slots in one ordered dict that starts at the hand; a step of the hand is one move."""

    name: ClassVar[str] = "clock"
    stamped: ClassVar[bool] = False
    ceiling: int
    initial: int
    place: str
    capacity: int = attrs.field(default=0, init=False)
    ring: OrderedDict[int, Key | None] = attrs.field(factory=OrderedDict, init=False)
    slots: dict[Key, int] = attrs.field(factory=dict, init=False)
    counts: dict[Key, int] = attrs.field(factory=dict, init=False)
    free: deque[int] = attrs.field(factory=deque, init=False)
    made: int = attrs.field(default=0, init=False)
    """Slots ever made: the number of the next."""

    def set_capacity(self, records: int) -> None:
        """Drop free slots, the latest freed first."""
        self.capacity = records
        while len(self.ring) > records and self.free:
            del self.ring[self.free.pop()]

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Add one each."""
        counts, ceiling = self.counts, self.ceiling
        for key in keys:
            if counts[key] < ceiling:
                counts[key] += 1

    def insert(self, key: Key, now: int) -> None:
        """Fill the first freed slot, else append one."""
        if self.free:
            slot = self.free.popleft()
        else:
            slot = self.made
            self.made += 1
        self.ring[slot] = key
        self.slots[key] = slot
        self.counts[key] = self.initial

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """As `insert`."""
        for key in keys:
            self.insert(key, 0)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """Move slots from the front to the end; a whole turn of skipped ones has changed nothing."""
        ring, counts, skipped = self.ring, self.counts, 0
        while skipped < len(ring):
            slot, key = next(iter(ring.items()))
            ring.move_to_end(slot)
            if key is None or key in held:
                skipped += 1
                continue
            skipped = 0
            if not counts[key]:
                self.evict(key)
                return key
            counts[key] -= 1
        return None

    def evict(self, key: Key) -> None:
        """Free the slot, or drop it."""
        slot = self.slots.pop(key, None)
        if slot is None:
            return
        del self.counts[key]
        if self.place == "tail" or len(self.ring) > self.capacity:
            del self.ring[slot]
        else:
            self.ring[slot] = None
            self.free.append(slot)

    def forget(self) -> None:
        """Zero the counts."""
        self.counts = dict.fromkeys(self.counts, 0)


CARD = Card(
    "clock",
    "XC-EVICT-090",
    ClockRule,
    Clock,
    "first key at the hand that was not used since the hand last passed",
    "Corbato 1968; slotstream; libCacheSim",
    "O(1), a turn of the hand amortized over the hits that it undoes",
    parameters=(
        Parameter("ceiling", 1, "the most that a count holds: 1 is the reference bit, 3 two bits, 0 FIFO", (), 0, 255),
        Parameter("initial", 0, "the count that an insert sets, at most the ceiling; slotstream sets 1", (), 0, 255),
        Parameter("place", "slot", "where a new key goes: into the freed slot, or behind the hand", ("slot", "tail")),
    ),
    objections=above("initial", "ceiling"),
)
