"""Speculation: what `Ahead` asks of a runtime beside its events. Each call takes the lock."""

from __future__ import annotations

from collections.abc import Callable

from expertcache_reference.runtime.contents import Contents
from expertcache_reference.runtime.core import Core
from expertcache_spec.model import Geometry, Key
from expertcache_spec.residency.machine import PrefetchOutcome


class Speculation:
    """Reads that nobody waits for yet, of one runtime. All raise `RuntimeClosed` after its end where they begin one."""

    def __init__(self, core: Core, contents: Contents) -> None:
        self._core, self._contents = core, contents

    @property
    def geometry(self) -> Geometry:
        """Of the model."""
        return self._core.residency.geometry

    def size(self, key: Key) -> int:
        """Bytes of a record."""
        return self._core.records.sizes[key.layer]

    def under_way(self) -> int:
        """Records that are being read, or queued for it, and that nobody waits for."""
        with self._core.lock:
            return sum(not flight.demand for flight in self._core.reader.flights.values())

    def present(self) -> frozenset[Key]:
        """The records that are published or being read."""
        with self._core.lock:
            return self._core.residency.residents() | self._core.residency.flights.keys()

    def prefetch(self, key: Key) -> PrefetchOutcome:
        """As `Runtime.prefetch`: into free room only."""
        with self._core.lock, self._core.page:
            return self._contents.prefetch(key)

    def displace(
        self, key: Key, ticket: int, may_go: Callable[[Key], bool]
    ) -> tuple[PrefetchOutcome, tuple[Key, ...]]:  # fmt: skip
        """As `prefetch`, after the policy's victims gave way where each `may_go`; what was done, and who left.

        ticket: of the event that executes, whose keys stay. Raises `WrongState` where it has been released.
        """
        with self._core.lock, self._core.page:
            return self._contents.displace(key, ticket, may_go)

    def give_up(self, key: Key) -> bool:
        """End a read that no worker has begun and nobody waits for, as one that failed; whether there was one."""
        core = self._core
        with core.lock, core.page:
            flight = core.reader.flights.get(key)
            if flight is None or flight.demand or any(job.taken for jobs in flight.jobs for job in jobs):
                return False
            core.reader.withdraw(flight)
            return True
