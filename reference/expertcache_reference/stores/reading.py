"""Exact reads of files that may be hostile: in full, within bounds, or not at all."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from expertcache_reference.system import this_machine
from expertcache_reference.traces import strictjson
from expertcache_spec.errors import InvalidTrace
from expertcache_spec.layout.files import WrongFile

MAX_HEADER = 32 * 2**20
"""Most bytes of a header or manifest; the largest in use (one tensor an expert, 94 layers of 128) takes 6 MiB."""
MAX_VALUES = 1 << 21
"""Most values in one."""


class Readable(Protocol):
    """What is asked of an open file; a `system.seam.File` is one."""

    def size(self) -> int:
        """Its bytes, now."""
        ...

    def read_into(self, view: memoryview, offset: int) -> int:
        """Read up to `len(view)` bytes from `offset`; how many came."""
        ...

    def close(self) -> object:
        """Close it; once."""
        ...


class Opener(Protocol):
    """What is asked of a machine; a `system.seam.Machine` is one."""

    most_per_read: int

    def open(self, path: Path) -> Readable:
        """Open a file for reading; raises `OSError`."""
        ...


class Here:
    """The machine at hand, for regular files alone: a pipe would be waited for, a device has no end."""

    def __init__(self) -> None:
        self._machine = this_machine()
        self.most_per_read = self._machine.most_per_read

    def open(self, path: Path) -> Readable:
        """As `Opener`."""
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
            raise OSError(number, os.strerror(number) if number == errno.EISDIR else "no regular file")
        return self._machine.open(path)


class Opened:
    """An open file that is read exactly; a context manager.

    Raises `WrongFile` where the file cannot be opened or read, or ends early.
    """

    def __init__(self, path: Path, machine: Opener) -> None:
        self.path, self._most = path, machine.most_per_read
        try:
            self._file = machine.open(path)
        except OSError as error:
            raise _unreadable(path, error) from error
        try:
            self.size = self._asked(self._file.size)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self, offset: int, length: int) -> bytes:
        """The `length` bytes from `offset`."""
        data = bytearray(length)
        self.read_into(memoryview(data), offset)
        return bytes(data)

    def read_into(self, view: memoryview, offset: int) -> None:
        """Fill the view from `offset` on."""
        done = 0
        while done < len(view):
            got = self._once(view[done : done + self._most], offset + done)
            if not got:
                raise WrongFile(
                    f"ends at byte {offset + done}, wanted {len(view)} bytes from {offset}",
                    where=str(self.path),
                    cure="the file is cut off: copy or pack it again",
                )
            done += got

    def _once(self, view: memoryview, offset: int) -> int:
        while True:
            try:
                return self._file.read_into(view, offset)
            except InterruptedError:
                continue
            except OSError as error:
                raise _unreadable(self.path, error) from error

    def _asked(self, question: Callable[[], int]) -> int:
        try:
            return question()
        except OSError as error:
            raise _unreadable(self.path, error) from error


def _unreadable(path: Path, error: OSError) -> WrongFile:
    return WrongFile(
        f"cannot be read: {error.strerror or error}", where=str(path), cure="name a model's file or folder"
    )


def parsed(data: bytes, where: str) -> dict[str, Any]:
    """The JSON object of a header or manifest; raises `WrongFile` for anything else, and for a bomb."""
    cure = "the file is damaged or of another format: copy or pack it again"
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MAX_VALUES:
        raise WrongFile(f"more than {MAX_VALUES} values in its header", where=where, cure=cure)
    try:
        value = strictjson.parse(data.decode(), where)
    except UnicodeDecodeError as error:
        raise WrongFile("its header is no UTF-8 text", where=where, cure=cure) from error
    except InvalidTrace as error:
        raise WrongFile(f"its header is {error.what}", where=where, cure=cure) from error
    if not isinstance(value, dict):
        raise WrongFile("its header is no JSON object", where=where, cure=cure)
    return value


def compact(value: object) -> str:
    """JSON in one line without spaces."""
    return json.dumps(value, separators=(",", ":"))
