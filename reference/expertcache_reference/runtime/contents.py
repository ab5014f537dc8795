"""Contents: what changes what is resident beside the events: seeds, prefetches, pins, budgets, resets, other models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from expertcache_reference.reader import Files
from expertcache_reference.runtime.core import Core
from expertcache_reference.runtime.opening import Source, limit_of
from expertcache_reference.runtime.records import Records
from expertcache_spec.errors import InvalidModel, WrongState
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.residency import Seeded
from expertcache_spec.residency.machine import PrefetchOutcome
from expertcache_spec.residency.settings import ResetScope


class Contents:
    """Carries out what the residency machine says. Called under the lock; all raise `RuntimeClosed`."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def _say(self, op: str, **fields: Any) -> None:
        if self._core.journal is not None:
            self._core.journal.say(op, **fields)

    def prefetch(self, key: Key) -> PrefetchOutcome:
        """As `Residency.prefetch`; a read that has started is queued."""
        self._core.check_open("prefetch")
        return self._prefetch(key)

    def _prefetch(self, key: Key, victims: Sequence[Key] = (), **ticket: int) -> PrefetchOutcome:
        core = self._core
        outcome = core.residency.prefetch(key)
        if outcome not in ("started", "refused") and core.residency.part_of(key.layer).policy.renews:
            self._say("prefetch", key=list(key), state="present")
        if outcome == "started":
            if core.journal is not None:
                core.journal.prefetching(key, victims, **ticket)
            core.leave(victims)
            core.begin([key])
        return outcome

    def displace(
        self, key: Key, ticket: int, may_go: Callable[[Key], bool]
    ) -> tuple[PrefetchOutcome, tuple[Key, ...]]:  # fmt: skip
        """As `prefetch`, after `Residency.vacate` beside the event of the ticket; raises `WrongState` if it is over."""
        core = self._core
        core.check_open("displace")
        lease = core.residency.leases.get(ticket)
        if lease is None:
            raise WrongState("no event executes", where=f"ticket {ticket}", cure="guess before its release")
        victims = core.residency.vacate(key, lease.selection.event, may_go)
        return self._prefetch(key, victims, **({"ticket": ticket} if victims else {})), victims

    def seed(self, keys: Sequence[Key], priorities: Sequence[int]) -> Seeded:
        """As `Residency.seed`, key by key; nothing is installed if the list is no list of keys."""
        core = self._core
        core.check_open("seed")
        if len(priorities) > len(keys) or not all(isinstance(key, Key) for key in keys):
            core.residency.seed(keys, priorities)  # raises
        reads: list[Key] = []
        sums = {"present": 0, "ignored": 0, "refused": 0}
        for key, priority in zip(keys, [*priorities, *[0] * (len(keys) - len(priorities))], strict=True):
            done = core.residency.seed([key], [priority])
            reads += done.reads
            for name in sums:
                sums[name] += getattr(done, name)
            how = "read" if done.reads else "present" if done.present else "ignored" if done.ignored else "refuse"
            if how != "ignored":  # a key that the model does not have has no line: XC-HIST-004
                self._say("seed", key=list(key), priority=priority, how=how)
            core.begin(done.reads)
        return Seeded(tuple(reads), **sums)

    def pin(self, key: Key) -> None:
        """As `Residency.pin`."""
        self._core.check_open("pin")
        self._core.residency.pin(key)
        self._say("pin", key=list(key))

    def unpin(self, key: Key) -> None:
        """As `Residency.unpin`; there may be room now."""
        self._core.check_open("unpin")
        self._core.residency.unpin(key)
        self._say("unpin", key=list(key))
        self._core.room()

    def resize(self, budget: Budget) -> tuple[Key, ...]:
        """As `Residency.resize`; memory beyond the new budget goes back to the machine as far as it is free."""
        core = self._core
        core.check_open("resize")
        victims = core.residency.resize(budget)
        self._say("resize", **{name: size for name, size in attrs.asdict(budget).items() if size is not None})
        if core.journal is not None:
            core.journal.evicted(victims)
        core.leave(victims)
        core.arena.resize(limit_of(core.machine, core.residency, core.records))
        core.room()
        return victims

    def reset(self, scope: ResetScope) -> None:
        """As `Residency.reset`."""
        self._core.check_open("reset")
        self._core.residency.reset(scope)
        self._say("reset", scope=scope)
        if scope == "counters":
            self._core.failed_alone = 0
        if scope == "contents":
            self._cleared()

    def rebind(self, store: Source, geometry: Geometry, records: Records) -> None:
        """As `Residency.rebind`, with the other model's files."""
        core = self._core
        core.check_open("rebind")
        if store.geometry != geometry:
            raise InvalidModel("another geometry", where="rebind", cure="open a runtime for that model")
        epoch = core.residency.epoch
        core.residency.rebind(store.fingerprint)
        if core.residency.epoch != epoch:
            self._say("rebind", fingerprint=store.fingerprint)
            self._cleared()
            before, core.records = core.files, records
            core.files = core.reader.files = Files(core.machine, store.folder)
            before.close()

    def _cleared(self) -> None:
        core = self._core
        core.leave(list(core.slots))
        if core.journal is not None:
            core.journal.cleared()
        core.room()
