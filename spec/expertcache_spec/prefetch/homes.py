"""Homes: where prefetched bytes wait. Staging is beside the cache, slots are in it.

A home takes a ticket or refuses it, starts its read, hears what an event did, and says what ends.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from expertcache_spec.admission import Ages
from expertcache_spec.errors import InvalidBudget
from expertcache_spec.model import Budget, Key
from expertcache_spec.prefetch.settings import Prefetch
from expertcache_spec.prefetch.tickets import State, Ticket, Tickets
from expertcache_spec.residency import Residency, Step
from expertcache_spec.trace import Event


@attrs.define
class Staging:
    """Buffers outside the cache under a cap of their own, charged from the queue to the end (XC-PREFETCH-007).

    Nothing in the cache knows of it: the machine serves every event as if there were none, and a read that staging has
    done already is then taken off the demand's account.
    """

    machine: Residency
    tickets: Tickets
    cap: Budget
    slots: int = 0
    bytes: int = 0
    victims: list[Key] = attrs.field(factory=list)
    """None, ever."""

    def __attrs_post_init__(self) -> None:
        if self.cap.bytes is not None and self.machine.geometry.record_bytes is None:
            raise InvalidBudget("record sizes are unknown", where="staging", cure="cap it in slots")

    def takes(self, size: int) -> bool:
        """Charge one more record, if the cap holds it."""
        slots, size_now = self.slots + 1, self.bytes + size
        if (self.cap.slots is not None and slots > self.cap.slots) or (
            self.cap.bytes is not None and size_now > self.cap.bytes
        ):
            return False
        self.slots, self.bytes = slots, size_now
        counts = self.tickets.counts
        counts.peak_slots, counts.peak_bytes = max(counts.peak_slots, slots), max(counts.peak_bytes, size_now)
        return True

    def wanted(self, key: Key) -> None:
        """A prediction names what is resident or on its way: nothing."""

    def start(self, ticket: Ticket) -> State | None:
        """The buffer is there already; only a record that has become resident needs no read."""
        return "cancelled" if ticket.key in self.machine.part_of(ticket.key.layer).resident else None

    def before(self, event: Event) -> None:
        """Nothing."""

    def demanded(self, event: Event, step: Step) -> set[Key]:
        """End the tickets that demand has met; the keys that were there for it."""
        useful, hits = set[Key](), set(step.hits)
        for key in event.keys:
            ticket = self.tickets.open.get(key)
            if ticket is None or key in hits:
                continue
            how: State = {"queued": "overtaken", "reading": "late", "ready": "adopted"}[ticket.state]  # type: ignore[assignment]
            self.end(key, how)
            if how != "overtaken":
                self.machine.ledger.spared(event, key, ticket.size, late=how == "late")
            if how == "adopted":
                useful.add(key)
        return useful

    def landed(self, ticket: Ticket) -> None:
        """The bytes are ready; those of a target that has passed are not wanted any more."""
        if not ticket.targets:
            self.end(ticket.key, "discarded")

    def passed(self, ticket: Ticket) -> None:
        """The last target of the ticket has passed without it: give the buffer back, once no read is writing to it."""
        if ticket.state != "reading":
            self.end(ticket.key, "cancelled" if ticket.state == "queued" else "discarded")

    def end(self, key: Key, how: State) -> None:
        """Close the ticket and return its charge."""
        ticket = self.tickets.end(key, how)
        self.slots, self.bytes = self.slots - 1, self.bytes - ticket.size


@attrs.define
class Slots:
    """Slots of the cache: free ones, and by declaration those of stale records (XC-PREFETCH-008)."""

    machine: Residency
    tickets: Tickets
    prefetch: Prefetch
    ages: Ages = attrs.field(factory=Ages)
    event: Event | None = None
    victims: list[Key] = attrs.field(factory=list)
    """Residents that prefetches have displaced since the driver last took them."""

    def takes(self, size: int) -> bool:
        """The queue costs nothing; a slot is taken when the read begins."""
        return True

    def wanted(self, key: Key) -> None:
        """A prediction names what is resident or on its way: the policy of its slot, if it has one, hears of it."""
        part = self.machine.part_of(key.layer)
        if part.has(key):
            part.policy.renew(key)

    def start(self, ticket: Ticket) -> State | None:
        """Take free room, or displace what may be displaced; else the ticket ends."""
        counts, machine, event = self.tickets.counts, self.machine, self.event
        if self.prefetch.displace != "nothing" and event is not None:
            gone = machine.vacate(ticket.key, event, self._may_go)
            self._gone(gone)
            counts.evicted += len(gone)
        if machine.prefetch(ticket.key) != "started":
            return "cancelled"
        self.ages.inserted([ticket.key])
        return None

    def _may_go(self, key: Key) -> bool:
        return self.prefetch.displace == "any" or self.ages.is_stale(key, self.prefetch.idle)

    def _gone(self, keys: Sequence[Key]) -> None:
        self.victims += keys
        for key in keys:
            if key in self.tickets.open:
                self.tickets.end(key, "discarded")

    def before(self, event: Event) -> None:
        """An event that could be served in waves only must not wait for speculation between them."""
        part, size = self.machine.part_of(event.layer), self.machine.size(event.layer)
        if self.machine.settings.overflow == "waves" and not part.holds_alone(len(event.keys), size):
            self.hurry(event)

    def hurry(self, event: Event) -> bool:
        """Demand needs room that speculative reads hold: wait for them; whether there were any it does not want."""
        waiting = [key for key, t in self.tickets.open.items() if t.state == "reading" and key not in event.keys]
        for key in waiting:
            self.tickets.land(key)
            self.victims += self.machine.complete(key).victims
        self.tickets.counts.waits += bool(waiting)
        return bool(waiting)

    def demanded(self, event: Event, step: Step) -> set[Key]:
        """End the tickets that demand has met, and those of records that it has displaced."""
        self.event, useful = event, set[Key]()
        self.ages.asked(event)
        for key in event.keys:
            ticket = self.tickets.open.get(key)
            if ticket is None:
                continue
            self.tickets.end(key, {"queued": "overtaken", "reading": "late", "ready": "adopted"}[ticket.state])  # type: ignore[arg-type]
            if ticket.state == "adopted":
                useful.add(key)
        for key in (*step.victims, *self.victims):
            if key in self.tickets.open and self.tickets.open[key].state == "ready":
                self.tickets.end(key, "discarded")
        return useful

    def landed(self, ticket: Ticket) -> None:
        """The record is resident from here on."""
        self._gone(self.machine.complete(ticket.key).victims)

    def passed(self, ticket: Ticket) -> None:
        """What is in the cache stays there; only what has not begun is given up."""
        if ticket.state == "queued":
            self.tickets.end(ticket.key, "cancelled")
