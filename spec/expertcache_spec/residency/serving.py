"""Serve: an event whole, when nothing else is under way. The same steps as select, complete and release, in one.

An engine that runs one event at a time, and every replay, does nothing else. What the long way would reserve, lease
and release again is skipped, not changed: a property compares the two on every kind of event.
"""

from __future__ import annotations

import attrs

from expertcache_spec.contracts import ensure
from expertcache_spec.model import Key
from expertcache_spec.residency.room import Partition
from expertcache_spec.residency.selecting import Selecting
from expertcache_spec.residency.settings import Step
from expertcache_spec.trace import Event


@attrs.define(slots=False)
class Serving(Selecting):
    """The machine's short way."""

    @ensure(
        lambda event, result: result is None or sorted(result.hits + result.misses) == sorted(event.keys), "XC-RES-002"
    )
    @ensure(lambda event, result: result is None or set(event.keys).isdisjoint(result.victims), "XC-RES-005")
    def serve(self, event: Event) -> Step | None:
        """Serve the whole event at once; None, unchanged, where only the long way will do.

        That is: room or admission other than the default, other leases, reads, pins or prefetches, a rejected row, an
        event that does not fit, a debt. Raises what `select` raises.
        """
        part = self.parts.get(-1 if self.is_global else event.layer)
        if part is None or not self._nothing_else(event, part):
            return None
        keys, resident, policy, size = event.keys, part.resident, part.policy, self.sizes[event.layer]
        hits = [key for key in keys if key in resident]
        misses = [key for key in keys if key not in resident] if len(hits) < len(keys) else []
        if misses and not part.holds_alone(len(keys), size):
            return None
        policy.begin(event)
        order = keys if self.in_order and not event.has_repeats else self._touch_order(event, keys, hits)
        stamps = self._stamps(order, policy)
        policy.hits(hits, stamps)
        victims: list[Key] = []
        if misses:
            policy.misses(misses)
            victims = self._replace(part, set(hits), misses, size)
            policy.inserts(misses, stamps)
        policy.settle(order)
        self.ledger.served(event, hits, misses, victims, size)
        self.recent = (part,)
        return Step(tuple(hits), tuple(misses), tuple(victims))

    def _nothing_else(self, event: Event, part: Partition) -> bool:
        return (
            self.plain
            and event.layer in self.sizes
            and event.highest < self.geometry.experts
            and event.accepted is None
            and not (self.leases or self.flights or part.holds or self.ledger.speculative)
            and not (part.debt_slots or part.debt_bytes)
        )

    def _replace(self, part: Partition, held: set[Key], misses: list[Key], size: int) -> list[Key]:
        """Choose every victim, then take the room of the misses."""
        resident, policy = part.resident, part.policy
        if part.bytes is None and part.slots is not None:
            free = part.slots - len(resident)
            victims = policy.leave(held, misses[free:] if free > 0 else misses)
        else:
            victims = self._leave_by_size(part, held, misses, size)
        freed = 0
        for key in victims:
            freed += resident.pop(key)
        for key in misses:
            resident[key] = size
        change = len(misses) * size - freed
        part.used_bytes += change
        self.usage.change(len(misses) - len(victims), change)
        self.usage.keep_peak()
        return victims

    def _leave_by_size(self, part: Partition, held: set[Key], misses: list[Key], size: int) -> list[Key]:
        """As `Policy.leave`, where how many must leave depends on their sizes."""
        victims: list[Key] = []
        slots, freed = 0, 0
        for place, key in enumerate(misses, 1):
            while part.over(place - slots, place * size - freed):
                victims += part.policy.leave(held, [key])
                slots, freed = slots + 1, freed + part.resident[victims[-1]]
        return victims
