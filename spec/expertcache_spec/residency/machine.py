"""The machine: pin, seed, prefetch, resize, reset and rebind, beside the events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

import attrs

from expertcache_spec.admission import make as make_admission
from expertcache_spec.contracts import invariant
from expertcache_spec.errors import InvalidBudget, InvalidModel, StillInUse, UnknownName, WrongState
from expertcache_spec.model import Budget, Key
from expertcache_spec.residency.reading import Reading
from expertcache_spec.residency.room import Partition
from expertcache_spec.residency.settings import ResetScope
from expertcache_spec.residency.state import Flight, Origin
from expertcache_spec.trace import Event

PrefetchOutcome = Literal["started", "resident", "in-flight", "refused"]


class Seeded(NamedTuple):
    """What `seed` did with its list: keys to read, already present, no key of the model, out of room."""

    reads: tuple[Key, ...]
    present: int
    ignored: int
    refused: int


@invariant(lambda self: all(part.used_bytes >= part.held_bytes >= 0 for part in self.recent), "XC-RES-009")
@invariant(lambda self: self.settings.room != "reserve" or all(p.within_debt() for p in self.recent), "XC-RES-010")
@attrs.define(slots=False)
class Residency(Reading):
    """The residency machine of one model. See `State` for its parts and `select` for the step everything turns on.

    machine = Residency(geometry, Budget(slots=1889), make("lru"))
    selection = machine.select(event)
    for key in selection.reads:
        machine.complete(key)
    machine.release(selection.ticket)
    """

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
        _check_key(key, where)
        if key.layer not in self.geometry.routed or key not in self.part_of(key.layer).resident:
            raise WrongState(f"{key} is not resident", where=where, cure="load it first; pins do not load")
        return self.part_of(key.layer)

    # ------------------------------------------------------------------------------------------ installs without demand

    def seed(self, keys: Iterable[Key], priorities: Iterable[int] = ()) -> Seeded:
        """Reserve free room for profile keys in list order; the caller reads and completes them (XC-RES-020).

        Seeds evict nothing and count as neither hits nor misses; keys that no model has are ignored and counted.
        `priorities` go with the keys, 0 where they end; they matter to policies that rank by them. Raises
        `InvalidModel`, unchanged, for more priorities than keys, and for what is no `Key`.
        """
        listed, ranks = list(keys), list(priorities)  # a list that fails to be read installs nothing
        for key in listed:
            _check_key(key, "seed")
        if len(ranks) > len(listed):
            raise InvalidModel("more priorities than keys", where="seed", cure="give one priority a key")
        reads: list[Key] = []
        present = ignored = refused = 0
        for key, priority in zip(listed, ranks + [0] * (len(listed) - len(ranks)), strict=True):
            if key.layer not in self.geometry.routed or not 0 <= key.expert < self.geometry.experts:
                ignored += 1
                continue
            self.part_of(key.layer).policy.prioritize(key, priority)
            if self.part_of(key.layer).has(key):
                present += 1
            elif self._install(key, "seed"):
                reads.append(key)
            else:
                refused += 1
        return Seeded(tuple(reads), present, ignored, refused)

    def prefetch(self, key: Key) -> PrefetchOutcome:
        """Start a speculative read into free room; it never evicts (XC-RES-021). The caller completes or fails it.

        Nothing is read of what has its slot already; the policy hears that it was asked for (`Policy.renew`).
        """
        part = self._guessed_part(key)
        if part.has(key):
            self.counters.prefetch_duplicate += 1
            part.policy.renew(key)
            return "resident" if key in part.resident else "in-flight"
        if not self._install(key, "prefetch"):
            self.counters.prefetch_refused += 1
            return "refused"
        self.counters.prefetch_issued += 1
        self.ledger.speculative.add(key)
        return "started"

    def vacate(self, key: Key, event: Event, may_go: Callable[[Key], bool]) -> tuple[Key, ...]:
        """Make room for a prefetch of `key`: evict the policy's victims, if each of them `may_go` (XC-PREFETCH-008).

        Nothing leaves when one of them may not, or when there is room or the key is there already. What is held stays,
        and so do the keys of `event`, which is executing: the evictions are booked to it. Raises as `prefetch`.
        """
        part, size = self._guessed_part(key), self.size(key.layer)
        if part.has(key) or not part.holds_alone(1, size):
            return ()
        going: list[Key] = []
        held, freed, before = {*part.holds, *event.keys}, 0, self.before_asking(part.policy, may_decline=True)
        while part.over(1 - len(going), size - freed):
            victim = part.ask(held, key)
            if victim is None or not may_go(victim):
                part.policy = before
                return ()
            going.append(victim)
            held.add(victim)
            freed += part.size_of(victim)
        for victim in going:
            self.drop(part, victim)
            self.ledger.evicted(victim, event)
        self.recent = (part,)
        return tuple(going)

    def _guessed_part(self, key: Key) -> Partition:
        _check_key(key, "prefetch")
        if key.layer not in self.geometry.routed or not 0 <= key.expert < self.geometry.experts:
            raise InvalidModel(f"{key} is no key of the model", where="prefetch", cure="predict experts that exist")
        return self.part_of(key.layer)

    def _install(self, key: Key, origin: Origin) -> bool:
        part, size = self.part_of(key.layer), self.size(key.layer)
        self.recent = (part,)
        if part.over(1, size):
            return False
        part.take(key, size)
        self.usage.keep_peak()
        (part.policy.prefetch if origin == "prefetch" else part.policy.insert)(key, self.stamp(1))
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
            self._tell_capacity(layer)
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
            self.admission.forget()
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
        for layer, part in self.parts.items():
            for key in [*part.resident, *part.reading]:
                part.give(key)
            part.pins.clear()
            part.holds.clear()
            part.held_bytes = part.debt_slots = part.debt_bytes = 0
            part.policy = self.policy()
            self._tell_capacity(layer)
        self.unfinished.clear()
        self.admission = make_admission(self.settings.admission)
        self.epoch += 1
        self.recent = tuple(self.parts.values())


def _check_key(key: Key, where: str) -> None:
    if not isinstance(key, Key):  # a plain pair equals its key, and would live on in sets and dicts of keys
        raise InvalidModel(f"{key!r} is no Key", where=where, cure="write Key(layer, expert)")
