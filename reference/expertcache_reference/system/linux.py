"""Linux: RWF_NOWAIT and mincore say what is warm, /proc/self/io what the device was asked for."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import threading
from pathlib import Path
from typing import ClassVar, cast

from expertcache_reference.system.mapping import Mincore, mincore_by
from expertcache_reference.system.posix import PosixFile, PosixMachine
from expertcache_reference.system.seam import Advice, Quality

MOST_PER_READ = 0x7FFFF000
"""One read delivers no more than this on any Linux, whatever it is asked for (read(2), NOTES)."""
RWF_NOWAIT = 0x08
RWF_DONTCACHE = 0x80
"""Since 6.14, where the file system knows it: what a read brought in is dropped behind it (include/uapi/linux/fs.h)."""
UNKNOWN_FLAG = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
BACKGROUND_NICE = 10
HUGE_PAGE = 2 << 20
"""Of x86-64, and of arm64 with pages of 4 KiB; less memory than one has no room for it."""

ADVICE: dict[Advice, int] = {"random": 1, "sequential": 2, "will-need": 3, "dont-need": 4}
"""POSIX_FADV_* on every architecture but s390."""


def libc_mincore(address: int, length: int, pages: int) -> int:
    """mincore(2) of this process."""
    call = ctypes.CDLL(None, use_errno=True).mincore
    call.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    return int(call(address, length, pages))


class LinuxFile(PosixFile):
    """A file on Linux."""

    def __init__(self, path: Path, page: int) -> None:
        super().__init__(path, page)
        self._flags = 0

    def _read(self, views: list[memoryview], offset: int) -> int:
        return os.preadv(self.descriptor, views, offset, self._flags)

    def read_warm(self, view: memoryview, offset: int) -> int | None:
        """By RWF_NOWAIT; None on a file system that does not know it.

        Asking leaves a trace: 6.18 begins to read ahead where it answers 0. Ask `Mapping.resident` first, this second.
        """
        try:
            return os.preadv(self.descriptor, [view], offset, RWF_NOWAIT)
        except BlockingIOError:
            return 0
        except OSError as error:
            if error.errno in UNKNOWN_FLAG and offset >= 0:
                return None
            raise

    def advise(self, offset: int, length: int, advice: Advice) -> bool:
        """By posix_fadvise."""
        if length <= 0:
            return True  # to posix_fadvise a length of 0 is the rest of the file
        try:
            os.posix_fadvise(self.descriptor, offset, length, ADVICE[advice])
        except OSError:
            return False
        return True

    def uncached(self, on: bool) -> bool:
        """By RWF_DONTCACHE, where one byte read with it shows that kernel and file system know it."""
        if on:
            try:
                os.preadv(self.descriptor, [bytearray(1)], 0, RWF_DONTCACHE)
            except OSError:
                return False
        self._flags = RWF_DONTCACHE if on else 0
        return True

    def _sees(self) -> Mincore | None:
        """Since 5.2 mincore calls every page resident to who neither owns the file nor may write it (vmtouch#78)."""
        owns = os.fstat(self.descriptor).st_uid == os.geteuid()
        writes = os.access(
            f"/proc/self/fd/{self.descriptor}", os.W_OK, effective_ids=os.access in os.supports_effective_ids
        )
        return mincore_by(libc_mincore, self._page) if owns or writes else None


class LinuxMachine(PosixMachine[LinuxFile]):
    """The computer at hand, under Linux. `proc` is where its process file system shows the process."""

    name = "linux"
    most_per_read = MOST_PER_READ
    ru_maxrss_unit: ClassVar[int] = 1024

    def __init__(self, proc: Path = Path("/proc/self")) -> None:
        super().__init__()
        self._proc = proc

    def open(self, path: Path) -> LinuxFile:
        """As `seam.Machine.open`."""
        return LinuxFile(path, self.page)

    def memory(self, size: int) -> memoryview:
        """As `seam.Machine.memory`, in huge pages where they fit: the kernel fills them faster (MADV_HUGEPAGE)."""
        view = super().memory(size)
        if size >= HUGE_PAGE:
            with contextlib.suppress(OSError):  # a kernel without them, or told not to
                cast(mmap.mmap, view.obj).madvise(mmap.MADV_HUGEPAGE)
        return view

    def _prefer(self, quality: Quality) -> None:
        """To Linux the nice value belongs to the thread, whatever POSIX says; beyond 19 it stays 19."""
        if quality == "background":
            with contextlib.suppress(OSError):
                thread = threading.get_native_id()
                nice = os.getpriority(os.PRIO_PROCESS, thread) + BACKGROUND_NICE
                os.setpriority(os.PRIO_PROCESS, thread, nice)

    def _field(self, file: str, field: str) -> int | None:
        """A number that the kernel writes beside `field:`; None where it does not or may not be read."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in (self._proc / file).read_text(encoding="ascii", errors="replace").splitlines():
                name, _, rest = line.partition(":")
                if name == field:
                    return int(rest.split()[0])
        return None

    def device_bytes(self) -> int | None:
        """`read_bytes` of proc(5): what was asked of the block layer, reading ahead included."""
        return self._field("io", "read_bytes")

    def peak_memory(self) -> int | None:
        """VmHWM; ru_maxrss keeps what the process was before its exec, which may be a larger parent."""
        peak = self._field("status", "VmHWM")
        return super().peak_memory() if peak is None else peak * 1024
