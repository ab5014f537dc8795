"""The machine: publish, fail, release, pin, seed, prefetch, resize, reset and rebind, beside select."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal, NamedTuple

import attrs

from expertcache_spec.contracts import ensure, invariant
from expertcache_spec.errors import InvalidBudget, InvalidModel, StillInUse, UnknownName, WrongState
from expertcache_spec.model import Budget, Key
from expertcache_spec.residency.room import Partition
from expertcache_spec.residency.selecting import Selecting
from expertcache_spec.residency.settings import ResetScope
from expertcache_spec.residency.state import Flight, Lease, Origin
from expertcache_spec.trace import Event

PrefetchOutcome = Literal["started", "resident", "in-flight", "refused"]


class Progress(NamedTuple):
    """What `complete` or `fail` brought about: the tickets to wake, and what a trim evicted."""

    tickets: tuple[int, ...]
    victims: tuple[Key, ...] = ()


class Ended(NamedTuple):
    """What the end of a lease brought about: evictions, and the event's own loads that `retain` did not keep."""

    victims: tuple[Key, ...] = ()
    refused: tuple[Key, ...] = ()


class Seeded(NamedTuple):
    """What `seed` did with its list: keys to read, already present, no key of the model, out of room."""

    reads: tuple[Key, ...]
    present: int
    ignored: int
    refused: int


@invariant(lambda self: all(part.used_bytes >= part.held_bytes >= 0 for part in self.recent), "XC-RES-009")
@invariant(lambda self: self.settings.room != "reserve" or all(p.within_debt() for p in self.recent), "XC-RES-010")
@attrs.define(slots=False)
class Residency(Selecting):
    """The residency machine of one model. See `State` for its parts and `select` for the step everything turns on.

    machine = Residency(geometry, Budget(slots=1889), make("lru"))
    selection = machine.select(event)
    for key in selection.reads:
        machine.complete(key)
    machine.release(selection.ticket)
    """

    # ------------------------------------------------------------------------------------------ reads end

    @ensure(lambda self, key, result: key in self.part_of(key.layer).resident or key in result.victims, "XC-RES-015")
    def complete(self, key: Key) -> Progress:
        """The whole record has been read: publish it (XC-RES-015).

        Under room `trim` the last read of an event also evicts down. A seed or prefetch that nothing waits for pays
        what a shrink still owes. Raises `WrongState` unless the key is in flight.
        """
        flight, part = self._landed(key)
        part.resident[key] = size = part.sizes[key]
        if flight.origin == "demand":
            lease = self.leases[flight.tickets[0]]
            lease.own.add(key)
            self.ledger.read(lease.selection.event, key, size, admitted=True)
        else:
            self.ledger.installed(flight.origin, size)
        part.unhold(key)
        if not flight.tickets and part.over() and not self._open(part):
            return Progress((), tuple(self._evict_down(part, None)))
        return self._wake(flight)

    def _open(self, part: Partition) -> bool:
        """Whether a lease is open whose end will evict down: the overshoot of trim and retain is its event's."""
        return self.settings.room != "reserve" and any(lease.part is part for lease in self.leases.values())

    @ensure(lambda self, key: key not in self.part_of(key.layer).sizes, "XC-RES-016")
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
        while part.over() and (victim := part.policy.victim(part.holds, None)) is not None:
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

    # ------------------------------------------------------------------------------------------ pins

    def pin(self, key: Key) -> None:
        """Keep a resident record from eviction until `unpin` (XC-RES-018); pinning twice is pinning once.

        Raises `WrongState` for a key that is not resident, `InvalidBudget` when the pins would exceed the budget, as
        they can while a shrink or a trim is under way.
        """
        part = self._resident_part(key, "pin")
        if key not in part.pins:
            if not part.can_pin(part.pins | {key}, part.slots, part.bytes):
                raise InvalidBudget(f"{len(part.pins) + 1} pinned records do not fit", where="pin", cure="unpin first")
            self.recent = (part,)
            part.pins.add(key)
            part.hold(key)

    def unpin(self, key: Key) -> None:
        """End a pin; recency does not change (XC-RES-019)."""
        part = self._resident_part(key, "unpin")
        if key not in part.pins:
            raise WrongState(f"{key} is not pinned", where="unpin", cure="unpin each pinned key once")
        self.recent = (part,)
        part.pins.discard(key)
        part.unhold(key)

    def _resident_part(self, key: Key, where: str) -> Partition:
        if key.layer not in self.geometry.routed or key not in self.part_of(key.layer).resident:
            raise WrongState(f"{key} is not resident", where=where, cure="load it first; pins do not load")
        return self.part_of(key.layer)

    # ------------------------------------------------------------------------------------------ installs without demand

    def seed(self, keys: Iterable[Key]) -> Seeded:
        """Reserve free room for profile keys in list order; the caller reads and completes them (XC-RES-020).

        Seeds evict nothing and count as neither hits nor misses; keys that no model has are ignored and counted.
        """
        keys = list(keys)  # a list that fails to be read installs nothing
        reads: list[Key] = []
        present = ignored = refused = 0
        for key in keys:
            if key.layer not in self.geometry.routed or not 0 <= key.expert < self.geometry.experts:
                ignored += 1
            elif key in self.part_of(key.layer).sizes:
                present += 1
            elif self._install(key, "seed"):
                reads.append(key)
            else:
                refused += 1
        return Seeded(tuple(reads), present, ignored, refused)

    def prefetch(self, key: Key) -> PrefetchOutcome:
        """Start a speculative read into free room; it never evicts (XC-RES-021). The caller completes or fails it."""
        if key.layer not in self.geometry.routed or not 0 <= key.expert < self.geometry.experts:
            raise InvalidModel(f"{key} is no key of the model", where="prefetch", cure="predict experts that exist")
        part = self.part_of(key.layer)
        if key in part.sizes:
            self.counters.prefetch_duplicate += 1
            return "resident" if key in part.resident else "in-flight"
        if not self._install(key, "prefetch"):
            self.counters.prefetch_refused += 1
            return "refused"
        self.counters.prefetch_issued += 1
        self.ledger.speculative.add(key)
        return "started"

    def _install(self, key: Key, origin: Origin) -> bool:
        part, size = self.part_of(key.layer), self.size(key.layer)
        self.recent = (part,)
        if part.over(1, size):
            return False
        part.take(key, size)
        self.usage.keep_peak()
        part.policy.insert(key, self.stamp(1))
        part.hold(key)
        self.flights[key] = Flight([], origin)
        return True

    # ------------------------------------------------------------------------------------------ life cycle

    def resize(self, budget: Budget) -> tuple[Key, ...]:
        """Take a new budget: evict down in victim order at once, and stay there (XC-RES-011).

        What is leased or in flight leaves when its lease or its read ends. Raises `InvalidBudget`, unchanged, when the
        pins alone exceed the new budget.
        """
        shares = self._shares(budget)
        for layer, share in shares.items():
            part = self.parts[layer]
            if not part.can_pin(part.pins, share.slots, share.bytes):
                raise InvalidBudget(f"{len(part.pins)} pinned records do not fit", where="resize", cure="unpin first")
        self.budget = budget
        self.recent = tuple(self.parts.values())
        victims: list[Key] = []
        for layer, share in shares.items():
            part = self.parts[layer]
            part.slots, part.bytes = share.slots, share.bytes
            victims += self._evict_down(part, None)
        return tuple(victims)

    def reset(self, scope: ResetScope) -> None:
        """Start again: `counters`, what the policy has learned (`history`), or `contents` (XC-RES-022).

        Contents take pins and history with them and leave counters alone; they raise `StillInUse` while a lease or a
        read is outstanding.
        """
        if scope == "counters":
            self.ledger.restart(self.usage)
            for lease in self.leases.values():
                lease.own.clear()  # admitted in the old counters: if they do not stay, they are evictions in the new
            self._occupancy_then += self.occupancy_change()
        elif scope == "history":
            for part in self.parts.values():
                part.policy.forget()
        elif scope == "contents":
            self._clear("reset of contents")
        else:
            raise UnknownName(f"reset scope {scope!r}", where="reset", cure="one of counters, history, contents")

    def rebind(self, fingerprint: str) -> None:
        """Serve another model: unless the fingerprint is the present one, everything resident is gone (XC-RES-023)."""
        if fingerprint != self.fingerprint:
            self._clear("rebind")
            self.ledger.forget()
            self.fingerprint = fingerprint

    def _clear(self, where: str) -> None:
        if self.leases or self.flights:
            raise StillInUse(
                f"{len(self.leases)} leases and {len(self.flights)} reads are outstanding",
                where=where,
                cure="let them end first",
            )
        self.ledger.cleared(self.residents())
        for part in self.parts.values():
            for key in list(part.sizes):
                part.give(key)
            part.pins.clear()
            part.holds.clear()
            part.held_bytes = part.debt_slots = part.debt_bytes = 0
            part.policy = self.policy()
        self.unfinished.clear()
        self.epoch += 1
        self.recent = tuple(self.parts.values())
