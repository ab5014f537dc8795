"""Memory of a POSIX machine: anonymous, or a file's; and which pages of a file are in memory already."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from collections.abc import Callable

import numpy

from expertcache_reference.system.seam import Advice

Mincore = Callable[[int, int], bytes | None]
"""An address on a page and a length to one byte a page, its lowest bit set where the page is in memory."""


def mincore_by(call: Callable[[int, int, int], int], page: int) -> Mincore:
    """mincore(2) over a call of libc, which writes a byte a page to an address and answers 0."""

    def mincore(address: int, length: int) -> bytes | None:
        pages = ctypes.create_string_buffer(-(-length // page))
        return None if call(address, length, ctypes.addressof(pages)) else pages.raw

    return mincore


def anonymous(size: int) -> memoryview:
    """Writable zeroed memory on a page; raises `ValueError` for a negative size, `OSError` where there is no more."""
    if size < 0:
        raise ValueError(f"{size} bytes of memory")
    if not size:
        return memoryview(bytearray())
    return memoryview(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANON))


class PosixMapping:
    """A file in memory, read only, as `seam.Mapping`."""

    def __init__(self, descriptor: int, name: str, page: int, mincore: Mincore | None) -> None:
        size = os.fstat(descriptor).st_size
        if not size:
            raise OSError(errno.EINVAL, "an empty file cannot be mapped", name)
        self._page, self._mincore = page, mincore
        self._memory = mmap.mmap(descriptor, size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
        self._address = numpy.frombuffer(self._memory, numpy.uint8).ctypes.data

    @property
    def view(self) -> memoryview:
        """As `seam.Mapping.view`; each is its own, and `close` waits for all."""
        return memoryview(self._memory)

    def _pages(self, offset: int, length: int) -> tuple[int, int]:
        """The range out to whole pages, within the mapping: where it begins and how many bytes."""
        begin = max(0, offset) // self._page * self._page
        return begin, max(0, min(offset + length, len(self._memory)) - begin) if length > 0 else 0

    def advise(self, offset: int, length: int, advice: Advice) -> bool:
        """As `seam.Mapping.advise`, by madvise."""
        begin, size = self._pages(offset, length)
        if not size:
            return True
        numbers = {
            "will-need": mmap.MADV_WILLNEED,
            "dont-need": mmap.MADV_DONTNEED,
            "random": mmap.MADV_RANDOM,
            "sequential": mmap.MADV_SEQUENTIAL,
        }
        try:
            self._memory.madvise(numbers[advice], begin, size)
        except OSError:
            return False
        return True

    def resident(self, offset: int, length: int) -> int | None:
        """As `seam.Mapping.resident`, by mincore."""
        begin, size = self._pages(offset, length)
        if not size:
            return 0
        if self._mincore is None:
            return None
        seen = self._mincore(self._address + begin, size)
        return None if seen is None else self._page * sum(each & 1 for each in seen)

    def close(self) -> None:
        """As `seam.Mapping.close`."""
        self._memory.close()
