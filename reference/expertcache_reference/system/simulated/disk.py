"""What all files of one run share: a page cache, and a device whose reads take virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import attrs
import numpy

from expertcache_reference.system.simulated.scheduler import Scheduler
from expertcache_reference.system.simulated.sharing import Bandwidth
from expertcache_spec.layout.extents import Extent
from expertcache_spec.pagecache import PageCache
from expertcache_spec.schedule.costs import Storage

UNDER_WAY = 0xA5
"""What a request shows of the bytes that it will deliver while it is under way."""


@attrs.frozen
class Device:
    """What a read of the device costs: latency in nanoseconds, bandwidth of a lane in bytes a second (None: no time).

    A device that costs nothing leaves it to the schedule which of two reads ends first. shared: instead of all that,
    the storage of a schedule, where each request costs its own bytes and the page cache answers none.
    """

    latency: int = 0
    bandwidth: int | None = None
    lanes: int = 1
    shared: Storage | None = None


class Disk:
    """The device and the page cache that all files of one run share."""

    def __init__(self, scheduler: Scheduler, device: Device, cache: PageCache, says: bool) -> None:
        self.scheduler, self.device, self.cache, self.says = scheduler, device, cache, says
        self.device_bytes = 0
        self.open_files: list[str] = []
        self._lanes = [0] * device.lanes
        self._bandwidth = None if device.shared is None else Bandwidth(scheduler, device.shared)
        self._written: list[tuple[int, int]] = []

    def fetch(self, extent: Extent, *, keep: bool) -> int:
        """Bring the pages in; how many nanoseconds from now they are there."""
        taken = self.cache.read(extent, keep=keep)
        if not taken:
            return 0
        self.device_bytes += taken
        lane = self._lanes.index(min(self._lanes))
        begin = max(self._lanes[lane], self.scheduler.time)
        cost = -(-taken * 10**9 // self.device.bandwidth) if self.device.bandwidth else 0
        self._lanes[lane] = begin + self.device.latency + cost
        return self._lanes[lane] - self.scheduler.time

    def serve(self, extent: Extent, *, keep: bool) -> None:
        """Sleep until the extent's bytes are there."""
        if self._bandwidth is None:
            cost = self.fetch(extent, keep=keep) if extent.length else 0
            self.scheduler.sleep(cost, "read ends", extent.file)
        else:
            self.device_bytes += extent.length
            self._bandwidth.serve(extent.length, extent.file)

    @contextmanager
    def writing(self, views: list[memoryview]) -> Iterator[None]:
        """While a request is under way its memory is the device's: a second one into it is a finding."""
        mine = [(begin := int(numpy.frombuffer(view, numpy.uint8).ctypes.data), begin + len(view)) for view in views]
        for begin, end in mine:
            if any(begin < other_end and other < end for other, other_end in self._written):
                raise self.scheduler.fail("memory", "reads into memory that another read is writing")
        self._written += mine
        for view in views:
            view[:] = bytes([UNDER_WAY]) * len(view)
        yield
        for each in mine:
            self._written.remove(each)

    def held(self, name: str, offset: int, length: int) -> list[bool]:
        """Of each page of the range, whether the cache holds it."""
        page = self.cache.page
        last = -(-(offset + length) // page) if length > 0 else offset // page
        return [(name, each) in self.cache.held for each in range(offset // page, last)]
