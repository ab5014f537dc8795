"""Reads that begin when they are told to: a runtime whose reads end, well or not, in the order of somebody's choosing.

The examination of caches says itself when a read has ended or failed. Here that is the moment at which the read is
let go: it runs for real, to its end, before the call returns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import attrs

from expertcache_reference.reader import Flight, Job, Request, Service
from expertcache_reference.runtime.core import Core
from expertcache_reference.runtime.opening import Source
from expertcache_reference.runtime.records import Records
from expertcache_reference.runtime.runtime import Runtime
from expertcache_spec.layout.extents import Extent
from expertcache_spec.model import Key
from expertcache_spec.residency import Progress


class HeldService(Service):
    """A service that holds the reads of records for the cache back while `holding`."""

    holding = False

    def __init__(self, *parts: Any) -> None:
        self.held: dict[Hashable, list[Job]] = {}
        super().__init__(*parts)

    def submit(self, requests: Iterable[Request], *, demand: bool = True) -> list[Flight]:
        """As `Service.submit`; the chunks of held reads wait outside of the queue."""
        flights = super().submit(requests, demand=demand)
        if self.holding:
            for queue in (self._queue.demand, self._queue.speculation):
                for job in [job for job in queue if isinstance(job.flight.key, Key)]:
                    queue.remove(job)
                    self.held.setdefault(job.flight.key, []).append(job)
        return flights

    def promote(self, flight: Flight) -> None:
        """As `Service.promote`; what is held stays so."""
        if flight.key in self.held:
            flight.demand = True
        else:
            super().promote(flight)

    def let_go(self, key: Key, *, whole: bool = True) -> None:
        """The read may begin; where it is not to be `whole`, its second half is beyond the end of its file."""
        for job in self.held.pop(key, []):
            self._queue.demand.append(job)
            if not whole:
                job.flight.extents, whole = _cut_off(job.flight.extents), True
        self._work.notify_all()


def _cut_off(extents: tuple[Extent, ...]) -> tuple[Extent, ...]:
    """The same bytes, of which the second half cannot be read."""
    left, found = sum(extent.length for extent in extents) // 2, list[Extent]()
    for file, offset, length in extents:
        good = min(left, length)
        left -= good
        found += [Extent(file, offset, good)] * bool(good)
        found += [Extent(file, offset + good + (1 << 40), length - good)] * (good < length)
    return tuple(found)


class HeldCore(Core):
    """A core that remembers what the end of each read has brought about."""

    reading = HeldService
    reader: HeldService

    def end_read(self, key: Key, *, whole: bool) -> Progress:
        """Let the read go and sleep until it has landed; raises `WrongState` for a key that is not in flight."""
        if key not in self.residency.flights:
            return self.residency.complete(key) if whole else self.residency.fail(key)  # both raise
        self._progress = Progress(())
        self.reader.let_go(key, whole=whole)
        while key in self.residency.flights:
            self.idle.wait()
        return self._progress

    def _published(self, key: Key) -> Progress:
        self._progress = super()._published(key)
        return self._progress

    def _failed(self, key: Key, error: object) -> Progress:
        self._progress = super()._failed(key, error)  # type: ignore[arg-type]
        return self._progress


class HeldRuntime(Runtime):
    """A runtime whose reads begin when they are told to; of a large record it reads what there is."""

    inside = HeldCore
    _core: HeldCore

    def _records(self, store: Source) -> Records:
        """As `Runtime._records`, with the sizes that are read, whatever is charged for."""
        shape, charged = store.layout.shape, store.geometry
        sizes = tuple(shape.record_bytes(layer) if layer in shape.parts else 0 for layer in range(charged.layers))
        return Records(store.layout, attrs.evolve(charged, record_bytes=sizes), chunks=1, staged=True)

    @property
    def core(self) -> HeldCore:
        """Its inside."""
        return self._core
