"""What every POSIX machine answers alike: descriptors, anonymous memory, threads; a subclass a system adds the rest."""

from __future__ import annotations

import mmap
import os
import resource
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Generic, TypeVar, cast

from expertcache_reference.system.mapping import Mincore, PosixMapping, anonymous
from expertcache_reference.system.seam import Advice, Condition, Lock, Quality, Thread, Usage

MOST_VIEWS = 1024
"""IOV_MAX of Linux and of Darwin: more views in one request are EINVAL."""

AnyFile = TypeVar("AnyFile", bound="PosixFile")


class PosixFile:
    """An open descriptor, as `seam.File`; what only one system can do answers that there is no way."""

    def __init__(self, path: Path, page: int) -> None:
        self._name, self._page = str(path), page
        self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    @property
    def name(self) -> str:
        """As `seam.File.name`."""
        return self._name

    def size(self) -> int:
        """As `seam.File.size`."""
        return os.fstat(self.descriptor).st_size

    def read_into(self, view: memoryview, offset: int) -> int:
        """As `seam.File.read_into`."""
        return self._read([view], offset)

    def readv_into(self, views: list[memoryview], offset: int) -> int:
        """As `seam.File.readv_into`; of more views than one request takes, the first ones."""
        return self._read(views[:MOST_VIEWS], offset) if views else 0

    def _read(self, views: list[memoryview], offset: int) -> int:
        return os.preadv(self.descriptor, views, offset)

    def read_warm(self, view: memoryview, offset: int) -> int | None:
        """Unknown."""
        return None

    def advise(self, offset: int, length: int, advice: Advice) -> bool:
        """No way."""
        return False

    def uncached(self, on: bool) -> bool:
        """No way."""
        return False

    def _sees(self) -> Mincore | None:
        """What mincore answers about this file; None where it does not say the truth."""
        return None

    def map(self) -> PosixMapping:
        """As `seam.File.map`."""
        return PosixMapping(self.descriptor, self._name, self._page, self._sees())

    def close(self) -> None:
        """As `seam.File.close`; raises `OSError` (EBADF) the second time."""
        descriptor, self.descriptor = self.descriptor, -1
        os.close(descriptor)


class PosixMachine(ABC, Generic[AnyFile]):
    """A machine with POSIX threads and descriptors, as `seam.Machine`."""

    name: str = "posix"
    most_per_read: int
    ru_maxrss_unit: ClassVar[int] = 1024

    def __init__(self) -> None:
        self.page = mmap.PAGESIZE

    @abstractmethod
    def open(self, path: Path) -> AnyFile:
        """As `seam.Machine.open`."""

    def memory(self, size: int) -> memoryview:
        """As `seam.Machine.memory`."""
        return anonymous(size)

    def now(self) -> int:
        """As `seam.Machine.now`."""
        return time.monotonic_ns()

    def lock(self) -> Lock:
        """As `seam.Machine.lock`."""
        return threading.Lock()

    def condition(self, lock: Lock) -> Condition:
        """As `seam.Machine.condition`."""
        return threading.Condition(cast(threading.Lock, lock))

    def spawn(self, name: str, run: Callable[[], None], quality: Quality = "demand") -> Thread:
        """As `seam.Machine.spawn`; a thread that nobody joined does not keep the process alive."""

        def work() -> None:
            self._prefer(quality)
            run()

        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread

    def _prefer(self, quality: Quality) -> None:
        """Tell the system what the calling thread works for, where that can be told."""

    def device_bytes(self) -> int | None:
        """Bytes that the device was asked for on behalf of this process; None where the system does not say."""
        return None

    def peak_memory(self) -> int | None:
        """The largest resident set so far, in bytes."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * self.ru_maxrss_unit

    def usage(self) -> Usage:
        """As `seam.Machine.usage`."""
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
        return Usage(self.device_bytes(), self.peak_memory(), faults)
