"""Slots: memory for records, page-aligned, in one block where all records have one size.

A budget is in records' own bytes, and it holds for memory too. Where all records have one size, the arena is one block
cut into slots, and a slot serves any record. Where sizes differ, a slot of the largest size for every record would hold
fewer records than the budget pays for; so each slot is then memory of its own, made when it is wanted and kept for the
next record of its size as long as all slots together, free ones included, stay within the limit. The same goes for
slots beyond the block: an event's overshoot, and a budget that has grown.

Each slot is rounded up to whole pages; that is the arena's only overhead.
"""

from __future__ import annotations

import attrs

from expertcache_reference.system.seam import Machine
from expertcache_spec.errors import StillInUse, WrongState
from expertcache_spec.layout.extents import round_up


@attrs.define(eq=False)
class Slot:
    """Room for one record.

    number: its name in the event log. view: its memory, whole pages. uses: leases and reads that need the bytes as they
    are. out: whether it holds somebody's record. fixed: whether it is cut from the block.
    """

    number: int
    view: memoryview
    fixed: bool
    uses: int = 0
    out: bool = False

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self.view)


class Arena:
    """Slots for records.

    size, count: a block of that many slots of that many bytes, none where sizes differ. limit: bytes that slots may
    take in all, in use or free; what is in use may exceed it, for the residency machine decides about that. Raises
    what `Machine.memory` raises.
    """

    def __init__(self, machine: Machine, limit: int, size: int = 0, count: int = 0) -> None:
        self._machine, self.limit = machine, limit
        self.bytes = self.peak = self.used = 0
        self._made = 0
        self._free: dict[int, list[Slot]] = {}
        if size and count:
            stride = round_up(size, machine.page)
            block = machine.memory(stride * count)
            self._free[stride] = [self._slot(block[at * stride : (at + 1) * stride], fixed=True) for at in range(count)]
            self._free[stride].reverse()  # the lowest first

    def _slot(self, view: memoryview, *, fixed: bool) -> Slot:
        self._made += 1
        self.bytes += len(view)
        self.peak = max(self.peak, self.bytes)
        return Slot(self._made - 1, view, fixed)

    def take(self, size: int) -> Slot:
        """A slot of at least that many bytes, in nobody's use. Raises what `Machine.memory` raises, unchanged."""
        stride = round_up(size, self._machine.page)
        free = self._free.setdefault(stride, [])
        if not free:
            self._shed(stride)
            free.append(self._slot(self._machine.memory(stride), fixed=False))
        slot = free.pop()
        slot.out = True
        self.used += 1
        return slot

    def give(self, slot: Slot) -> None:
        """The record has left. Raises `WrongState` for a slot that is free, `StillInUse` while somebody needs it."""
        if not slot.out:
            raise WrongState("the slot is free", where=f"slot {slot.number}", cure="give each slot back once")
        if slot.uses:
            raise StillInUse(f"{slot.uses} leases and reads", where=f"slot {slot.number}", cure="let them end first")
        slot.out = False
        self.used -= 1
        self._free[slot.size].append(slot)
        self._shed(0)

    def resize(self, limit: int) -> None:
        """Another limit: free slots beyond it are given back to the machine; those of the block stay."""
        self.limit = limit
        self._shed(0)

    def _shed(self, more: int) -> None:
        """Drop free slots until so many bytes more are within the limit, or there is nothing to drop."""
        for free in self._free.values():
            at = len(free)
            while at and self.bytes + more > self.limit:
                at -= 1
                if not free[at].fixed:
                    self.bytes -= free.pop(at).size

    def close(self) -> None:
        """Give all memory back; raises `WrongState` naming the slots that were never given back."""
        if self.used:
            raise WrongState(f"{self.used} slots are out", where="arena", cure="give each slot back: this is a leak")
        self._free.clear()
        self.bytes = 0
