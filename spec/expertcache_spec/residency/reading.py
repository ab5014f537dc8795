"""Reading: what ends a read and a lease: publish, fail, release, and the room that this leaves to be made."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import attrs

from expertcache_spec.contracts import ensure
from expertcache_spec.errors import WrongState
from expertcache_spec.model import Key
from expertcache_spec.residency.room import Partition
from expertcache_spec.residency.serving import Serving
from expertcache_spec.residency.state import Flight, Lease
from expertcache_spec.trace import Event


class Progress(NamedTuple):
    """What `complete` or `fail` brought about: the tickets to wake, and what a trim evicted."""

    tickets: tuple[int, ...]
    victims: tuple[Key, ...] = ()


class Ended(NamedTuple):
    """What the end of a lease brought about: evictions, and the event's own loads that `retain` did not keep."""

    victims: tuple[Key, ...] = ()
    refused: tuple[Key, ...] = ()


@attrs.define(slots=False)
class Reading(Serving):
    """The machine's second half of an event."""

    @ensure(lambda self, key, result: key in self.part_of(key.layer).resident or key in result.victims, "XC-RES-015")
    def complete(self, key: Key) -> Progress:
        """The whole record has been read: publish it (XC-RES-015).

        Under room `trim` the last read of an event also evicts down. A seed or prefetch that nothing waits for pays
        what a shrink still owes. Raises `WrongState` unless the key is in flight.
        """
        flight, part = self._landed(key)
        size = part.publish(key)
        if flight.origin == "demand":
            lease = self.leases[flight.tickets[0]]
            lease.own.add(key)
            self.ledger.read(lease.selection.event, key, size, admitted=True)
        else:
            self.ledger.installed(key, flight.origin, size)
        part.unhold(key)
        if not flight.tickets and part.over() and not self._open(part):
            return Progress((), tuple(self._evict_down(part, None)))
        return self._wake(flight)

    def _open(self, part: Partition) -> bool:
        """Whether a lease is open whose end will evict down: the overshoot of trim and retain is its event's."""
        return self.settings.room != "reserve" and any(lease.part is part for lease in self.leases.values())

    @ensure(lambda self, key: not self.part_of(key.layer).has(key), "XC-RES-016")
    def fail(self, key: Key) -> Progress:
        """The read failed: publish nothing, return the room, wake every waiter (XC-RES-016).

        What was evicted for it is not restored; a retry is a new `select`. Raises `WrongState` unless in flight.
        """
        flight, part = self._landed(key)
        self.ledger.failed(key)
        for ticket in flight.tickets:
            self.leases[ticket].held.remove(key)
            part.unhold(key)
        part.unhold(key)
        self.drop(part, key)
        return self._wake(flight)

    def _landed(self, key: Key) -> tuple[Flight, Partition]:
        if key not in self.flights:
            raise WrongState(f"{key} is not in flight", where="read", cure="complete or fail each started read once")
        part = self.part_of(key.layer)
        self.recent = (part,)
        return self.flights.pop(key), part

    def _wake(self, flight: Flight) -> Progress:
        """Count the landed read off every waiting lease; the last one of a lease may trim."""
        victims: list[Key] = []
        for ticket in flight.tickets:
            lease = self.leases[ticket]
            lease.pending -= 1
            if not lease.pending and self.settings.room == "trim":
                victims += self._evict_down(lease.part, lease.selection.event)
        return Progress(tuple(flight.tickets), tuple(victims))

    def _evict_down(self, part: Partition, event: Event | None, own: Collection[Key] = ()) -> list[Key]:
        """Evict in victim order until the budget holds or all that is left is held; `own` loads are not evictions."""
        victims: list[Key] = []
        while part.over() and (victim := part.ask(part.holds, None)) is not None:
            self.drop(part, victim)
            victims.append(victim)
            if victim not in own:
                self.ledger.evicted(victim, event)
        part.settle_debt()
        return victims

    @ensure(lambda self, ticket: ticket not in self.leases, "XC-RES-017")
    def release(self, ticket: int) -> Ended:
        """The work that reads the event's bytes has executed: end its lease (XC-RES-017).

        Room `retain` chooses here among residents and event, and a shrink that had to wait goes on. Raises
        `WrongState` for a ticket that is unknown, released before, or still has reads in flight.
        """
        lease = self.leases.get(ticket)
        if lease is None or lease.pending:
            raise WrongState(
                "no lease that can end",
                where=f"ticket {ticket}",
                cure="release each ticket once, after its reads have ended and its work has executed",
            )
        del self.leases[ticket]
        self.recent = (lease.part,)
        for key in lease.held:
            lease.part.unhold(key)
        if not lease.part.over():
            return Ended()
        return self._retain(lease)

    def _retain(self, lease: Lease) -> Ended:
        selection, own = lease.selection, lease.own if self.settings.room == "retain" else ()
        gone = self._evict_down(lease.part, selection.event, own)
        refused = tuple(key for key in selection.reads if key in own and key in gone)
        for key in refused:
            self.ledger.not_kept(selection.event, key)
        return Ended(tuple(key for key in gone if key not in own), refused)
