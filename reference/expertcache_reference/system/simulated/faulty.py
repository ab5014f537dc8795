"""Files with faults over files without: those in memory, or those of a real machine."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from expertcache_reference.system import seam
from expertcache_reference.system.seam import Advice, Quality
from expertcache_reference.system.simulated.faults import Faults, Injector


def head(views: list[memoryview], size: int) -> list[memoryview]:
    """The first `size` bytes of the views, none of them empty."""
    kept = []
    for view in views:
        if size > 0 and len(view):
            kept.append(view[:size])
            size -= len(kept[-1])
    return kept


class FaultyFile:
    """A file with faults over one without, as `seam.File`."""

    def __init__(self, inner: seam.File, injector: Injector) -> None:
        self._inner, self._injector, self._past = inner, injector, False

    @property
    def name(self) -> str:
        """As `seam.File.name`."""
        return self._inner.name

    def size(self) -> int:
        """As `seam.File.size`."""
        self._injector.sizing(self.name)
        return self._injector.size(self.name, self._inner.size())

    def read_into(self, view: memoryview, offset: int) -> int:
        """As `seam.File.read_into`."""
        return self.readv_into([view], offset)

    def readv_into(self, views: list[memoryview], offset: int) -> int:
        """As `seam.File.readv_into`."""
        faults, wanted = self._injector.faults, sum(map(len, views))
        number = self._injector.interruption()
        end = min(faults.end_at.get(self.name, 1 << 63), self._injector.size(self.name, 1 << 63))
        if wanted > faults.most_per_read and faults.over_limit == "refuse":
            number = errno.EINVAL
        room = min(faults.most_per_read, wanted, faults.bytes_per_call or wanted, max(0, end - offset))
        if number in (errno.EINTR, errno.EINVAL):
            room = 0
        came = self._inner.readv_into(head(views, room), offset)
        if number is not None:
            raise OSError(number, os.strerror(number), self.name)
        if self._past and offset <= faults.flip.get(self.name, -1) < offset + came:
            self._flip(views, faults.flip[self.name] - offset)
        return came

    @staticmethod
    def _flip(views: list[memoryview], at: int) -> None:
        for view in views:
            if at < len(view):
                view[at] ^= 0xFF
                return
            at -= len(view)

    def read_warm(self, view: memoryview, offset: int) -> int | None:
        """As `seam.File.read_warm`; of the faults only the ends of the file."""
        faults = self._injector.faults
        end = min(faults.end_at.get(self.name, 1 << 63), self._injector.size(self.name, 1 << 63))
        return self._inner.read_warm(view[: max(0, end - offset)], offset)

    def advise(self, offset: int, length: int, advice: Advice) -> bool:
        """As `seam.File.advise`."""
        return self._injector.faults.advice and self._inner.advise(offset, length, advice)

    def uncached(self, on: bool) -> bool:
        """As `seam.File.uncached`."""
        self._past = on and self._injector.faults.uncached and self._inner.uncached(on)
        return self._past or not on

    def map(self) -> seam.Mapping:
        """As `seam.File.map`."""
        self._injector.mapping(self.name)
        memory, inner = None, self._inner.map()
        if self.name in self._injector.cut:
            memory = bytearray(inner.view)
            self._injector.cut[self.name].append(memory)
            self._injector.size(self.name, 0)
        return FaultyMapping(inner, self._injector.faults.advice, memory)

    def close(self) -> None:
        """As `seam.File.close`."""
        self._inner.close()
        self._injector.closed()


class FaultyMapping:
    """A mapping with faults; of a file that is to be cut off it has `memory` of its own, which shows `BEYOND`."""

    def __init__(self, inner: seam.Mapping, advice: bool, memory: bytearray | None) -> None:
        self._inner, self._advice, self._memory = inner, advice, memory
        self.resident = inner.resident

    @property
    def view(self) -> memoryview:
        """As `seam.Mapping.view`."""
        return self._inner.view if self._memory is None else memoryview(self._memory).toreadonly()

    def advise(self, offset: int, length: int, advice: Advice) -> bool:
        """As `seam.Mapping.advise`."""
        return self._advice and self._inner.advise(offset, length, advice)

    def close(self) -> None:
        """As `seam.Mapping.close`."""
        if self._memory is not None:
            self._memory.append(0)  # raises BufferError while somebody looks
            self._memory.pop()
        self._inner.close()


class FaultyMachine:
    """A machine with faults over one without, as `seam.Machine`; `injector` counts what was asked."""

    def __init__(self, inner: seam.Machine, faults: Faults) -> None:
        self._inner, self.injector = inner, Injector(faults)
        self.name, self.page, self.most_per_read = f"faulty {inner.name}", inner.page, faults.most_per_read
        self.now, self.lock, self.condition, self.usage = inner.now, inner.lock, inner.condition, inner.usage

    def open(self, path: Path) -> seam.File:
        """As `seam.Machine.open`."""
        self.injector.opening(str(path))
        try:
            return FaultyFile(self._inner.open(path), self.injector)
        except OSError:
            self.injector.closed()
            raise

    def memory(self, size: int) -> memoryview:
        """As `seam.Machine.memory`."""
        self.injector.remembering(size)
        return self._inner.memory(size)

    def spawn(self, name: str, run: Callable[[], None], quality: Quality = "demand") -> seam.Thread:
        """As `seam.Machine.spawn`."""
        self.injector.spawning()
        return self._inner.spawn(name, run, quality)
