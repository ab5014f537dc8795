"""Room: what one partition may hold, what it uses, and how much of that is held against eviction."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import attrs

from expertcache_spec.eviction.base import Policy, wrong_victim
from expertcache_spec.metrics import Counters
from expertcache_spec.model import Key

UNLIMITED = 1 << 62


@attrs.define
class Usage:
    """Slots and bytes in use over all partitions, reserved and in-flight records included."""

    counters: Counters
    slots: int = 0
    bytes: int = 0

    def change(self, slots: int, size: int) -> None:
        """Add to the usage."""
        self.slots += slots
        self.bytes += size

    def keep_peak(self) -> None:
        """Call at the end of a transition that reserves room: one is atomic, its inner order is nobody's peak."""
        if self.slots > self.counters.peak_slots:
            self.counters.peak_slots = self.slots
        if self.bytes > self.counters.peak_bytes:
            self.counters.peak_bytes = self.bytes


@attrs.define
class Partition:
    """The room of one layer (scope `layer`) or of all (scope `global`).

    resident: published keys with their bytes. reading: in-flight keys with their bytes. holds: for each key that may
    not be evicted, how many reasons there are (leases, the read in flight, a pin). debt: what a shrink could not evict
    yet because it was held.
    """

    policy: Policy
    usage: Usage
    slots: int | None = None
    bytes: int | None = None
    resident: dict[Key, int] = attrs.field(factory=dict)
    reading: dict[Key, int] = attrs.field(factory=dict)
    holds: dict[Key, int] = attrs.field(factory=dict)
    pins: set[Key] = attrs.field(factory=set)
    used_bytes: int = 0
    held_bytes: int = 0
    debt_slots: int = 0
    debt_bytes: int = 0

    @property
    def used_slots(self) -> int:
        """Records that are resident or in flight."""
        return len(self.resident) + len(self.reading)

    @property
    def is_zero(self) -> bool:
        """Whether nothing can ever be kept (XC-RES-014)."""
        return self.slots == 0 or self.bytes == 0

    def has(self, key: Key) -> bool:
        """Whether the record is resident or in flight."""
        return key in self.resident or key in self.reading

    def size_of(self, key: Key) -> int:
        """Bytes of a record that is resident or in flight."""
        return self.resident[key] if key in self.resident else self.reading[key]

    def holds_alone(self, count: int, size: int) -> bool:
        """Whether that many records of `size` bytes fit into the empty partition."""
        return (self.slots is None or count <= self.slots) and (self.bytes is None or count * size <= self.bytes)

    def settle_debt(self) -> None:
        """Owe exactly what still exceeds the capacity."""
        self.debt_slots = 0 if self.slots is None else max(0, self.used_slots - self.slots)
        self.debt_bytes = 0 if self.bytes is None else max(0, self.used_bytes - self.bytes)

    def over(self, more_slots: int = 0, more_bytes: int = 0) -> bool:
        """Whether what is used, and a little more, exceeds the capacity."""
        return (self.slots is not None and self.used_slots + more_slots > self.slots) or (
            self.bytes is not None and self.used_bytes + more_bytes > self.bytes
        )

    def within_debt(self) -> bool:
        """Whether usage exceeds the capacity by no more than a shrink still owes (XC-RES-010)."""
        return not self.over(-self.debt_slots, -self.debt_bytes)

    def can_pin(self, keys: Collection[Key], slots: int | None, size: int | None) -> bool:
        """Whether these pins fit into that many slots and bytes."""
        return (slots is None or len(keys) <= slots) and (
            size is None or sum(self.size_of(key) for key in keys) <= size
        )

    def room_beside(self, size: int, slots: int, taken: int) -> int:
        """How many records of `size` bytes fit beside `slots` records of together `taken` bytes."""
        room = UNLIMITED if self.slots is None else self.slots - slots
        if self.bytes is not None and size:
            room = min(room, (self.bytes - taken) // size)
        return max(room, 0)

    def room_beside_pins(self, size: int, keys: Iterable[Key] = ()) -> int:
        """How many records of `size` bytes fit when all but the pins outside `keys` may go."""
        pins = self.pins.difference(keys) if self.pins else ()
        return self.room_beside(size, len(pins), sum(self.size_of(key) for key in pins))

    def room_beside_held(self, size: int, keep: Iterable[Key]) -> int:
        """How many records of `size` bytes fit when all but the held keys and `keep` may go."""
        fresh = [key for key in keep if key not in self.holds]
        taken = self.held_bytes + sum(map(self.size_of, fresh))
        return self.room_beside(size, len(self.holds) + len(fresh), taken)

    def ask(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The policy's victim; None when all are held. Raises `InvalidPolicy` for one that may not leave (XC-RES-005).

        `held` has all that is in `holds`, and perhaps more.
        """
        victim = self.policy.victim(held, incoming)
        if victim is None:
            if self.policy.may_abstain or all(key in held for key in self.resident):
                return None
            why = "is no Key, and not all residents are held"
        elif not isinstance(victim, Key):
            why = "is no Key"
        elif victim in held:
            why = "is held"
        elif victim not in self.resident:
            why = "is not resident"
        else:
            return victim
        raise wrong_victim(self.policy, victim, why)

    def take(self, key: Key, size: int) -> None:
        """Reserve the room of one record that is to be read."""
        self.reading[key] = size
        self.used_bytes += size
        self.usage.change(1, size)

    def publish(self, key: Key) -> int:
        """The record is resident from here on; its bytes."""
        self.resident[key] = size = self.reading.pop(key)
        return size

    def give(self, key: Key) -> None:
        """Return the room of one record, published or not."""
        size = self.resident.pop(key) if key in self.resident else self.reading.pop(key)
        self.used_bytes -= size
        self.usage.change(-1, -size)

    def hold(self, key: Key) -> None:
        """One more reason not to evict the key."""
        count = self.holds.get(key, 0)
        self.holds[key] = count + 1
        if not count:
            self.held_bytes += self.size_of(key)

    def unhold(self, key: Key) -> None:
        """One reason less."""
        count = self.holds[key] - 1
        if count:
            self.holds[key] = count
        else:
            del self.holds[key]
            self.held_bytes -= self.size_of(key)
