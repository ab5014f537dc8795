"""Serve: an event whole, when nothing else is under way. The same steps as select, complete and release, in one.

An engine that runs one event at a time, and every replay, does nothing else. What the long way would reserve, lease
and release again is skipped, not changed: a property compares the two on every kind of event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from expertcache_spec.contracts import ensure
from expertcache_spec.eviction.base import wrong_victim
from expertcache_spec.model import Key
from expertcache_spec.residency.room import Partition
from expertcache_spec.residency.selecting import NO_STAMPS, Selecting
from expertcache_spec.residency.settings import Step
from expertcache_spec.trace import Event

_step: Any = tuple.__new__
"""Makes a `Step` of all its fields, at a third of what its own constructor costs."""


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
        return next(self.serve_each((event,)))

    def serve_each(self, events: Iterable[Event]) -> Iterator[Step | None]:
        """What `serve` does, event after event; what is the same for all of them is looked up once."""
        parts, sizes, experts, ledger = self.parts, self.sizes, self.geometry.experts, self.ledger
        plain, common, leases, flights = self.plain, parts.get(-1), self.leases, self.flights
        for event in events:
            part, size = common or parts.get(event.layer), sizes.get(event.layer)
            if (
                not plain or part is None or size is None or event.highest >= experts or event.accepted is not None
                or leases or flights or part.holds or ledger.speculative or part.debt_slots or part.debt_bytes
            ):  # fmt: skip
                yield None
                continue
            keys, resident, policy = event.keys, part.resident, part.policy
            hits = tuple([key for key in keys if key in resident])
            misses = tuple([key for key in keys if key not in resident]) if len(hits) < len(keys) else ()
            if misses and not part.holds_alone(len(keys), size):
                yield None
                continue
            policy.begin(event)
            order = keys if self.in_order and not event.has_repeats else self._touch_order(event, keys, hits)
            stamps = self._stamps(order) if policy.stamped else NO_STAMPS
            victims: list[Key] = []
            if misses:
                if part.bytes is None and part.slots is not None:
                    victims = policy.turn(order, hits, misses, stamps, len(resident) + len(misses) - part.slots)
                else:
                    victims = self._turn_by_size(part, order, hits, misses, stamps, size)
                self._swap(part, misses, victims, size)
            else:
                policy.hits(hits, stamps)
                policy.settle(order)
            ledger.served(event, hits, misses, victims, size)
            self.recent = (part,)
            yield _step(Step, (hits, misses, tuple(victims), (), ()))

    def _turn_by_size(
        self, part: Partition, order: Sequence[Key], hits: tuple[Key, ...], misses: tuple[Key, ...],
        stamps: Mapping[Key, int], size: int,
    ) -> list[Key]:  # fmt: skip
        """As `Policy.turn`, where how many must leave depends on their sizes."""
        policy, held = part.policy, set(hits)
        policy.hits(hits, stamps)
        policy.misses(misses)
        victims: list[Key] = []
        slots, freed = 0, 0
        for place, key in enumerate(misses, 1):
            while part.over(place - slots, place * size - freed):
                victims += policy.leave(held, [key])
                if victims[-1] not in part.resident:
                    raise wrong_victim(policy, victims[-1], "is not resident")
                slots, freed = slots + 1, freed + part.resident[victims[-1]]
        policy.inserts(misses, stamps)
        policy.settle(order)
        return victims

    def _swap(self, part: Partition, misses: Sequence[Key], victims: Sequence[Key], size: int) -> None:
        """The victims' room goes to the misses."""
        resident, change = part.resident, len(misses) * size
        key: Any = None
        try:
            for key in victims:
                change -= resident.pop(key)
        except (KeyError, TypeError) as error:  # nothing is checked key by key while all is well
            raise wrong_victim(part.policy, key, "is not resident, or is named twice") from error
        for key in misses:
            resident[key] = size
        if change or len(victims) != len(misses):
            part.used_bytes += change
            self.usage.change(len(misses) - len(victims), change)
            self.usage.keep_peak()
