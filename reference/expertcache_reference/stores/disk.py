"""The few ways in which `pack` changes a disk, each one call, so that tests can fail or kill at every one."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import sys
from pathlib import Path

NO_REPLACE, EXCLUSIVE, HERE = 1, 4, -100
"""RENAME_NOREPLACE and AT_FDCWD of Linux, RENAME_EXCL of Darwin between them."""
CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""What a system or a file system answers that cannot rename so."""


class Disk:
    """Real files. Every method raises `OSError`."""

    def free(self, folder: Path) -> int:
        """Bytes that may still be written where the folder lies."""
        return shutil.disk_usage(folder).free

    def make_folder(self, path: Path) -> None:
        """Make the folder unless it is there."""
        path.mkdir(exist_ok=True)

    def open(self, path: Path) -> int:
        """A descriptor of the file for reading and writing, made empty unless it is there; no link is followed."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)

    def close(self, file: int) -> None:
        """Close it."""
        os.close(file)

    def lock(self, file: int) -> bool:
        """Whether this process alone holds the file from now on; the system lets go when the process ends, however."""
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    def resize(self, file: int, size: int) -> None:
        """Cut or extend with zeros."""
        os.ftruncate(file, size)

    def write(self, file: int, data: bytes | memoryview, offset: int) -> int:
        """Write at the offset; how many bytes went."""
        return os.pwrite(file, data, offset)

    def sync(self, file: int) -> None:
        """Wait until the file is on the device; Darwin's fsync stops at the device's own cache."""
        full: int | None = getattr(fcntl, "F_FULLFSYNC", None)
        try:
            if full is not None:
                fcntl.fcntl(file, full)
                return
        except OSError:  # a file system that cannot
            pass
        os.fsync(file)

    def sync_folder(self, path: Path) -> None:
        """Wait until the names in the folder are on the device."""
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def rename(self, path: Path, target: Path) -> None:
        """Give the file or folder its final name, at once; raises `FileExistsError` where the name is taken.

        By renameat2(2) or renamex_np(2), which look and rename in one step; where there is no such call, or the file
        system has it not, in two.
        """
        if not rename_exclusively(path, target):
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
            path.rename(target)

    def remove_empty(self, path: Path) -> None:
        """Remove the folder if nothing is in it."""
        with contextlib.suppress(OSError):
            path.rmdir()

    def remove(self, path: Path) -> None:
        """Remove the file, or the folder with all that is in it."""
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def write_all(disk: Disk, file: int, data: bytes, offset: int) -> None:
    """Write all of the data, in as many calls as it takes."""
    view = memoryview(data)
    while view:
        done = disk.write(file, view, offset)
        view, offset = view[done:], offset + done


def rename_exclusively(path: Path, target: Path) -> bool:
    """Rename unless the name is taken, which is `FileExistsError`; whether system and file system can do that."""
    libc, names = ctypes.CDLL(None, use_errno=True), (os.fsencode(path), os.fsencode(target))
    try:
        if sys.platform == "darwin":
            failed = libc.renamex_np(*names, ctypes.c_uint(EXCLUSIVE))
        else:
            failed = libc.renameat2(HERE, names[0], HERE, names[1], ctypes.c_uint(NO_REPLACE))
    except AttributeError:  # a libc without it
        return False
    number = ctypes.get_errno() if failed else 0
    if number and number not in CANNOT:
        raise OSError(number, os.strerror(number), str(path), None, str(target))
    return not number
