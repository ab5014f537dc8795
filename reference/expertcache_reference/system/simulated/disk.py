"""What all files of one run share: a page cache, and a device whose reads take virtual time."""

from __future__ import annotations

import attrs

from expertcache_reference.system.simulated.scheduler import Scheduler
from expertcache_spec.layout.extents import Extent
from expertcache_spec.pagecache import PageCache


@attrs.frozen
class Device:
    """What a read of the device costs: latency in nanoseconds, bandwidth of a lane in bytes a second (None: no time).

    A device that costs nothing leaves it to the schedule which of two reads ends first.
    """

    latency: int = 0
    bandwidth: int | None = None
    lanes: int = 1


class Disk:
    """The device and the page cache that all files of one run share."""

    def __init__(self, scheduler: Scheduler, device: Device, cache: PageCache, says: bool) -> None:
        self.scheduler, self.device, self.cache, self.says = scheduler, device, cache, says
        self.device_bytes = 0
        self.open_files: list[str] = []
        self._lanes = [0] * device.lanes

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

    def held(self, name: str, offset: int, length: int) -> list[bool]:
        """Of each page of the range, whether the cache holds it."""
        page = self.cache.page
        last = -(-(offset + length) // page) if length > 0 else offset // page
        return [(name, each) in self.cache.held for each in range(offset // page, last)]
