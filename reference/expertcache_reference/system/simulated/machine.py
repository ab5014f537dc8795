"""A machine of one's own: what it is made of, and the seam on top."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Callable
from collections.abc import Mapping as Map
from pathlib import Path
from typing import cast

import attrs

from expertcache_reference.system import seam
from expertcache_reference.system.mapping import anonymous
from expertcache_reference.system.seam import Quality, Usage
from expertcache_reference.system.simulated.disk import Device, Disk
from expertcache_reference.system.simulated.faults import Faults, Injector
from expertcache_reference.system.simulated.faulty import FaultyFile
from expertcache_reference.system.simulated.files import SimulatedFile
from expertcache_reference.system.simulated.scheduler import Scheduler
from expertcache_reference.system.simulated.threads import SimulatedCondition, SimulatedLock, SimulatedThread
from expertcache_spec.pagecache import PageCache

PLENTY = 1 << 40
"""Pages of a page cache that never evicts."""


@attrs.frozen
class Simulation:
    """What a simulated machine is made of; each run gets a fresh one.

    files: path to bytes. page: bytes of a page. faults: what goes wrong. device: what a read costs in virtual time.
    cache_pages: the page cache, in pages. warm: the files whose pages it holds at the start. says: whether the machine
    can tell what is in the page cache and what the device was asked for. most_steps: calls of the seam after which a
    run counts as endless.
    """

    files: Map[str, bytes] = attrs.Factory(dict)
    page: int = 16384
    faults: Faults = attrs.field(factory=Faults)
    device: Device = attrs.field(factory=Device)
    cache_pages: int = PLENTY
    warm: tuple[str, ...] = ()
    says: bool = True
    most_steps: int = 200_000

    def cache(self) -> PageCache:
        """The page cache at the start."""
        cache = PageCache(self.cache_pages, self.page)
        places = [(name, page) for name in self.warm for page in range(-(-len(self.files[name]) // self.page))]
        cache.held.update(dict.fromkeys(places[: self.cache_pages]))
        return cache


class SimulatedMachine:
    """As `seam.Machine`. Every call of it, of its files, locks, conditions and threads is a decision of the scheduler.

    Files in folders are found by their whole path, as given to `open`.
    """

    name = "simulated"

    def __init__(self, simulation: Simulation, scheduler: Scheduler) -> None:
        self._simulation, self._scheduler = simulation, scheduler
        self.page, self.most_per_read = simulation.page, simulation.faults.most_per_read
        self.injector = Injector(simulation.faults)
        self.disk = Disk(scheduler, simulation.device, simulation.cache(), simulation.says)
        self._locks = self._conditions = 0

    def open(self, path: Path) -> seam.File:
        """As `seam.Machine.open`."""
        self._scheduler.switch("open", str(path))
        self.injector.opening(str(path))
        data = self._simulation.files.get(str(path))
        if data is None:
            self.injector.closed()
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return FaultyFile(SimulatedFile(str(path), data, self.disk), self.injector)

    def memory(self, size: int) -> memoryview:
        """As `seam.Machine.memory`; on a page of this machine, whatever that of the real one."""
        self._scheduler.switch("memory", size)
        if size < 0:
            raise self._scheduler.fail("arguments", f"asks for {size} bytes of memory")
        self.injector.remembering(size)
        if not size or self.page <= mmap.PAGESIZE:
            return anonymous(size)
        import numpy

        wide = anonymous(size + self.page)
        begin = -numpy.frombuffer(wide, numpy.uint8).ctypes.data % self.page
        return wide[begin : begin + size]

    def now(self) -> int:
        """As `seam.Machine.now`, of virtual time."""
        self._scheduler.switch("now")
        return self._scheduler.time

    def spend(self, nanoseconds: int) -> None:
        """Not of the seam: what a computation costs, in virtual time."""
        self._scheduler.sleep(nanoseconds, "spend", nanoseconds)

    def lock(self) -> seam.Lock:
        """As `seam.Machine.lock`."""
        self._locks += 1
        return SimulatedLock(self._scheduler, f"lock {self._locks}")

    def condition(self, lock: seam.Lock) -> seam.Condition:
        """As `seam.Machine.condition`."""
        self._conditions += 1
        every = self._simulation.faults.spurious_every
        return SimulatedCondition(
            self._scheduler, cast(SimulatedLock, lock), f"condition {self._conditions} of {lock}", every
        )

    def spawn(self, name: str, run: Callable[[], None], quality: Quality = "demand") -> seam.Thread:
        """As `seam.Machine.spawn`."""
        self.injector.spawning()
        return SimulatedThread(self._scheduler, self._scheduler.spawn(name, run))

    def usage(self) -> Usage:
        """As `seam.Machine.usage`: the device's bytes, and the memory that was given out."""
        self._scheduler.switch("usage")
        return Usage(self.disk.device_bytes if self.disk.says else None, self.injector.memory, None)
