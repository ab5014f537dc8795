"""Every fault that a system below may show, as knobs: over files in memory, or over those of a real machine."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Mapping as Map
from typing import Literal

import attrs

BEYOND = 0xDB
"""What a mapping shows where its file has been cut off: the real one kills the process there."""


@attrs.frozen
class Faults:
    """The faults of one run. Calls count from 1 over all files; only the ones named go wrong.

    most_per_read, over_limit: bytes of one request (of the sum of its views), and whether more are refused with EINVAL
    as Darwin does or cut as Linux does. bytes_per_call: the most that one request delivers. interrupt_every: each
    n-th read is interrupted before a byte came. errors: the number of a read to its errno; bytes may have come.
    end_at: the name of a file to the byte where its reads end, whatever its size says. cut: the name of a file to
    (number of a call of any kind, size): from that call on the file is that long. flip: the name of a file to the byte
    that comes wrong in uncached reads. open_errors, size_errors, map_errors, memory_errors: the number of an open, of a
    question for a size, of a mapping, of a request for memory to its errno. most_open: descriptors. most_memory: bytes.
    most_threads: ever started. advice: whether there is a way to advise. uncached: whether there is a way past the page
    cache. spurious_every: each n-th wait returns without cause, on a simulated machine alone.
    """

    most_per_read: int = 0x7FFFF000
    over_limit: Literal["refuse", "cut"] = "cut"
    bytes_per_call: int | None = None
    interrupt_every: int | None = None
    errors: Map[int, int] = attrs.Factory(dict)
    end_at: Map[str, int] = attrs.Factory(dict)
    cut: Map[str, tuple[int, int]] = attrs.Factory(dict)
    flip: Map[str, int] = attrs.Factory(dict)
    open_errors: Map[int, int] = attrs.Factory(dict)
    size_errors: Map[int, int] = attrs.Factory(dict)
    map_errors: Map[int, int] = attrs.Factory(dict)
    memory_errors: Map[int, int] = attrs.Factory(dict)
    most_open: int | None = None
    most_memory: int | None = None
    most_threads: int | None = None
    advice: bool = True
    uncached: bool = True
    spurious_every: int | None = None


DARWIN = Faults(most_per_read=2**31 - 1, over_limit="refuse")
"""No fault but the limit of Darwin; `Faults()` has that of Linux."""


class Injector:
    """The faults of one run and what has been counted of it; over a real machine, by many threads at once."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.reads = self.calls = self.opens = self.open_files = self.memory = self.threads = 0
        self.sizes = self.maps = self.memories = 0
        self.cut: dict[str, list[bytearray]] = {name: [] for name in faults.cut}
        self._counting = threading.Lock()  # real, never held across a call of the seam: no decision of a schedule

    def opening(self, name: str) -> None:
        """Raises `OSError` where this open fails; else the file is open until `closed`."""
        with self._counting:
            self.opens += 1
            number = self.faults.open_errors.get(self.opens)
            if self.faults.most_open is not None and self.open_files >= self.faults.most_open:
                number = errno.EMFILE
            _refuse(number, name)
            self.open_files += 1

    def closed(self) -> None:
        """A file is open no more."""
        with self._counting:
            self.open_files -= 1

    def sizing(self, name: str) -> None:
        """Raises `OSError` where this question for a file's size fails."""
        with self._counting:
            self.sizes += 1
            _refuse(self.faults.size_errors.get(self.sizes), name)

    def mapping(self, name: str) -> None:
        """Raises `OSError` where this mapping fails."""
        with self._counting:
            self.maps += 1
            _refuse(self.faults.map_errors.get(self.maps), name)

    def remembering(self, size: int) -> None:
        """Raises `OSError` where this request fails, or where there is no such memory left."""
        with self._counting:
            self.memories += 1
            _refuse(self.faults.memory_errors.get(self.memories))
            if self.faults.most_memory is not None and self.memory + size > self.faults.most_memory:
                raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
            self.memory += size

    def spawning(self) -> None:
        """Raises `RuntimeError`, as Python does, where no thread can be started."""
        with self._counting:
            if self.faults.most_threads is not None and self.threads >= self.faults.most_threads:
                raise RuntimeError("can't start new thread")
            self.threads += 1

    def size(self, name: str, size: int) -> int:
        """The size of a file at this call, which it counts."""
        with self._counting:
            self.calls += 1
            at, least = self.faults.cut.get(name, (0, 0))
            if not at or self.calls < at:
                return size
            for memory in self.cut[name]:
                memory[least:] = bytes([BEYOND]) * (len(memory) - least)
            return min(size, least)

    def interruption(self) -> int | None:
        """The errno of this read, which it counts; EINTR before a byte came."""
        with self._counting:
            self.reads += 1
            every = self.faults.interrupt_every
            return errno.EINTR if every and self.reads % every == 0 else self.faults.errors.get(self.reads)


def _refuse(number: int | None, *name: str) -> None:
    """Raise the error of that errno; None is none."""
    if number is not None:
        raise OSError(number, os.strerror(number), *name)
