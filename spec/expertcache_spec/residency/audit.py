"""The audit: every invariant of the machine, recomputed in full. O(resident); tests run it after each step."""

from __future__ import annotations

from collections import Counter

from expertcache_spec.metrics import broken_identities
from expertcache_spec.residency.machine import Residency


def audit(machine: Residency) -> list[str]:
    """The rule ids that the machine's state breaks; empty in every reachable state."""
    broken = broken_identities(machine.counters, machine.occupancy_change(), len(machine.ledger.speculative))
    leased = Counter(key for lease in machine.leases.values() for key in lease.held)
    for part in machine.parts.values():
        reasons = Counter({key: n for key, n in leased.items() if machine.part_of(key.layer) is part})
        reasons.update(key for key in machine.flights if machine.part_of(key.layer) is part)
        reasons.update(part.pins)
        if reasons != Counter(part.holds) or part.held_bytes != sum(map(part.size_of, part.holds)):
            broken.append("XC-RES-009")
        flying = {key for key in machine.flights if machine.part_of(key.layer) is part}
        taken = sum(part.resident.values()) + sum(part.reading.values())
        if part.used_bytes != taken or set(part.reading) != flying or flying & set(part.resident):
            broken.append("XC-RES-015")
        if machine.settings.room == "reserve" and not part.within_debt():
            broken.append("XC-RES-010")
    used = sum(p.used_slots for p in machine.parts.values()), sum(p.used_bytes for p in machine.parts.values())
    if used != (machine.usage.slots, machine.usage.bytes):
        broken.append("XC-RES-009")
    for lease in machine.leases.values():
        if lease.pending != sum(key in machine.flights for key in lease.held):
            broken.append("XC-RES-017")
    return broken
