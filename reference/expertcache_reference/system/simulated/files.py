"""Files in memory behind a page cache and a device, in virtual time."""

from __future__ import annotations

import errno
import weakref
from collections.abc import Iterable

import numpy

from expertcache_reference.system.seam import Advice
from expertcache_reference.system.simulated.disk import Disk
from expertcache_spec.layout.extents import Extent


class SimulatedFile:
    """A file without faults, as `seam.File`."""

    def __init__(self, name: str, data: bytes, disk: Disk) -> None:
        self._name, self._data, self._disk = name, data, disk
        self._uncached, self._open, self._under_way = False, True, 0
        disk.open_files.append(name)

    @property
    def name(self) -> str:
        """As `seam.File.name`."""
        return self._name

    def _call(self, what: str, offset: int = 0) -> None:
        self._disk.scheduler.switch(what, self._name)
        if not self._open:
            raise self._disk.scheduler.fail("open-file", f"uses {self._name} after closing it")
        if offset < 0:
            raise self._disk.scheduler.fail("arguments", f"goes to byte {offset} of {self._name}")

    def size(self) -> int:
        """As `seam.File.size`."""
        self._call("size")
        return len(self._data)

    def read_into(self, view: memoryview, offset: int) -> int:
        """As `seam.File.read_into`."""
        return self.readv_into([view], offset)

    def readv_into(self, views: list[memoryview], offset: int) -> int:
        """As `seam.File.readv_into`: the bytes arrive at the end, and until then the views hold none of theirs."""
        self._call("read", offset)
        size = max(0, min(sum(map(len, views)), len(self._data) - offset))
        parts = list(self._parts(views, offset, size))
        self._under_way += 1
        with self._disk.writing([view for view, _ in parts if len(view)]):
            self._disk.serve(Extent(self._name, offset, size), keep=not self._uncached)
        self._under_way -= 1
        for view, begin in parts:
            view[:] = self._data[begin : begin + len(view)]
        return size

    @staticmethod
    def _parts(views: list[memoryview], offset: int, size: int) -> Iterable[tuple[memoryview, int]]:
        """Where the bytes go: pieces of the views and the file offset of each."""
        for view in views:
            part = view[:size]
            yield part, offset
            offset, size = offset + len(part), size - len(part)

    def read_warm(self, view: memoryview, offset: int) -> int | None:
        """As `seam.File.read_warm`."""
        self._call("read warm", offset)
        if not self._disk.says:
            return None
        size, page = max(0, min(len(view), len(self._data) - offset)), self._disk.cache.page
        pages = [*self._disk.held(self._name, offset, size), False]
        warm = pages.index(False) * page - offset % page if pages[0] else 0
        size = max(0, min(size, warm))
        view[:size] = self._data[offset : offset + size]
        return size

    def advise(self, offset: int, length: int, advice: Advice) -> bool:
        """As `seam.File.advise`: will-need brings the pages in without anybody waiting."""
        self._call("advise", offset)
        size = min(length, len(self._data) - offset)
        if size > 0 and advice == "will-need":
            self._disk.device_bytes += self._disk.cache.advise(Extent(self._name, offset, size))
        if size > 0 and advice == "dont-need":
            page = self._disk.cache.page
            for each in range(-(-offset // page), -(-(offset + size) // page)):
                self._disk.cache.held.pop((self._name, each), None)
        return True

    def uncached(self, on: bool) -> bool:
        """As `seam.File.uncached`."""
        self._call("uncached")
        self._uncached = on
        return True

    def map(self) -> SimulatedMapping:
        """As `seam.File.map`."""
        self._call("map")
        if not self._data:
            raise OSError(errno.EINVAL, "an empty file cannot be mapped", self._name)
        return SimulatedMapping(self, self._data, self._disk)

    def close(self) -> None:
        """As `seam.File.close`."""
        self._call("close")
        if self._under_way:
            raise self._disk.scheduler.fail("open-file", f"closes {self._name} while a read of it is under way")
        self._open = False
        self._disk.open_files.remove(self._name)


class SimulatedMapping:
    """A file in memory, as `seam.Mapping`. Touching its bytes is no call of the seam, and costs no virtual time."""

    def __init__(self, file: SimulatedFile, data: bytes, disk: Disk) -> None:
        self._file, self._data, self._disk = file, data, disk
        self._pages: numpy.ndarray[tuple[int], numpy.dtype[numpy.uint8]] | None = numpy.frombuffer(data, numpy.uint8)
        disk.open_files.append(f"the mapping of {file.name}")

    @property
    def view(self) -> memoryview:
        """As `seam.Mapping.view`."""
        if self._pages is None:
            raise ValueError("the mapping is closed")
        return self._pages.data

    def advise(self, offset: int, length: int, advice: Advice) -> bool:
        """As `seam.Mapping.advise`."""
        return self._file.advise(offset, length, advice)

    def resident(self, offset: int, length: int) -> int | None:
        """As `seam.Mapping.resident`."""
        self._disk.scheduler.switch("resident", self._file.name)
        if offset < 0:
            raise self._disk.scheduler.fail("arguments", f"goes to byte {offset} of {self._file.name}")
        length = min(length, len(self._data) - offset)
        return (
            self._disk.cache.page * sum(self._disk.held(self._file.name, offset, length)) if self._disk.says else None
        )

    def close(self) -> None:
        """As `seam.Mapping.close`: each view keeps the pages alive."""
        self._disk.scheduler.switch("close", f"the mapping of {self._file.name}")
        pages, self._pages = self._pages, None
        if pages is None:
            return
        still = weakref.ref(pages)
        del pages
        if (pages := still()) is not None:
            self._pages = pages
            raise BufferError(f"a view of the mapping of {self._file.name} is in use")
        self._disk.open_files.remove(f"the mapping of {self._file.name}")
