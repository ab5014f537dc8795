"""Darwin: F_NOCACHE and F_RDADVISE, mincore, proc_pid_rusage and thread QoS, through calls that tests put fakes for.

The numbers and layouts are those of Apple's headers (sys/fcntl.h, sys/mman.h, sys/resource.h, sys/qos.h), where no
release has changed them.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, NamedTuple, cast

from expertcache_reference.system.mapping import Mincore, PosixMapping, mincore_by
from expertcache_reference.system.posix import PosixFile, PosixMachine
from expertcache_reference.system.seam import Advice, Quality

MOST = 2**31 - 1
"""INT_MAX: a read that asks for more, or whose views do in sum, is EINVAL (openzim/libzim#1053, ziglang/zig#25827)."""
F_RDADVISE, F_NOCACHE = 44, 48
MS_INVALIDATE = 2
RADVISORY = struct.Struct("=qi4x")
"""struct radvisory: off_t ra_offset, int ra_count, and what the compiler pads to 16 bytes."""
RUSAGE_INFO_V2, RUSAGE_INFO_V2_SIZE, DISKIO_BYTESREAD = 2, 160, 144
"""struct rusage_info_v2: a uuid of 16 bytes and 18 numbers of 8, of which ri_diskio_bytesread is the last but one."""
QOS_CLASS: dict[Quality, int] = {"demand": 0x19, "background": 0x11}
"""QOS_CLASS_USER_INITIATED and QOS_CLASS_UTILITY."""


class Calls(NamedTuple):
    """What of the system this module calls beyond POSIX; each answers 0 for success but for the first two.

    preadv: as `os.preadv`. fcntl: as `fcntl.fcntl`. mincore: address, length, address of a byte a page. msync:
    address, length, flags.
    proc_pid_rusage: process, flavour, a buffer. pthread_set_qos_class_self_np: class, priority within it.
    """

    preadv: Callable[[int, list[memoryview], int], int]
    fcntl: Callable[[int, int, int | bytes], object]
    mincore: Callable[[int, int, int], int]
    msync: Callable[[int, int, int], int]
    proc_pid_rusage: Callable[[int, int, ctypes.Array[ctypes.c_char]], int]
    pthread_set_qos_class_self_np: Callable[[int, int], int]


def system_calls() -> Calls:
    """Those of libSystem. Raises `AttributeError` where this is no Darwin."""
    system = ctypes.CDLL(None, use_errno=True)
    system.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    system.msync.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    system.proc_pid_rusage.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
    system.pthread_set_qos_class_self_np.argtypes = (ctypes.c_uint, ctypes.c_int)
    own = (system.mincore, system.msync, system.proc_pid_rusage, system.pthread_set_qos_class_self_np)
    return Calls(os.preadv, cast(Callable[[int, int, int | bytes], object], fcntl.fcntl), *own)


class DarwinMapping(PosixMapping):
    """A mapping that advises by other means than madvise.

    Its will-need is suspected of SIGBUS (erigontech/erigon#23867), and its dont-need drops no page of a file, as msync
    does (axboe/fio#1883).
    """

    def __init__(self, file: DarwinFile, page: int, mincore: Mincore, calls: Calls) -> None:
        super().__init__(file.descriptor, file.name, page, mincore)
        self._file, self._msync = file, calls.msync

    def advise(self, offset: int, length: int, advice: Advice) -> bool:
        """As `seam.Mapping.advise`; while the file is open."""
        if advice == "will-need":
            return self._file.advise(offset, length, advice)
        if advice == "dont-need":
            begin, size = self._pages(offset, length)
            return not size or self._msync(self._address + begin, size, MS_INVALIDATE) == 0
        return super().advise(offset, length, advice)


class DarwinFile(PosixFile):
    """A file on Darwin. Nothing says which bytes of a read were warm but `Mapping.resident` before it."""

    def __init__(self, path: Path, page: int, calls: Calls) -> None:
        super().__init__(path, page)
        self._calls = calls

    def _read(self, views: list[memoryview], offset: int) -> int:
        return self._calls.preadv(self.descriptor, views, offset)

    def _tell(self, command: int, argument: int | bytes) -> bool:
        try:
            self._calls.fcntl(self.descriptor, command, argument)
        except OSError:
            return False
        return True

    def advise(self, offset: int, length: int, advice: Advice) -> bool:
        """By F_RDADVISE; there is no way to tell anything but will-need. Each call names up to INT_MAX bytes."""
        if advice != "will-need":
            return False
        pieces = range(offset, offset + length, MOST)
        return all(
            self._tell(F_RDADVISE, RADVISORY.pack(begin, min(MOST, offset + length - begin))) for begin in pieces
        )

    def uncached(self, on: bool) -> bool:
        """By F_NOCACHE, of this descriptor."""
        return self._tell(F_NOCACHE, int(on))

    def map(self) -> DarwinMapping:
        """As `seam.File.map`; the lowest bit of mincore is MINCORE_INCORE, and tells the truth to everybody."""
        return DarwinMapping(self, self._page, mincore_by(self._calls.mincore, self._page), self._calls)


class DarwinMachine(PosixMachine[DarwinFile]):
    """The computer at hand, under Darwin: pages of 16 KiB on Apple silicon, of 4 KiB on Intel and under Rosetta."""

    name = "darwin"
    ru_maxrss_unit: ClassVar[int] = 1

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls
        self.most_per_read = MOST // self.page * self.page

    def open(self, path: Path) -> DarwinFile:
        """As `seam.Machine.open`."""
        return DarwinFile(path, self.page, self._calls)

    def _prefer(self, quality: Quality) -> None:
        """A class that the system refuses leaves the thread as it is."""
        self._calls.pthread_set_qos_class_self_np(QOS_CLASS[quality], 0)

    def device_bytes(self) -> int | None:
        """ri_diskio_bytesread: what the device was asked for, reading ahead included."""
        buffer = ctypes.create_string_buffer(RUSAGE_INFO_V2_SIZE)
        if self._calls.proc_pid_rusage(os.getpid(), RUSAGE_INFO_V2, buffer):
            return None
        return int.from_bytes(buffer.raw[DISKIO_BYTESREAD : DISKIO_BYTESREAD + 8], "little")


def darwin_machine() -> DarwinMachine:
    """The machine over the calls of this system."""
    return DarwinMachine(system_calls())
