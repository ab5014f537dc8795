"""Temporary files that do not outlive who makes them, whatever becomes of it."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PLACES = 12
"""Characters that make the name of a temporary file its own."""


@contextmanager
def temporary(folder: Path, before: str, after: str) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file in the folder, called `before`, something of its own, `after`; an error, a signal, the end remove it.

    Whoever is killed cannot, so the next one does: such a file that nobody holds a lock on goes first. A file that
    was renamed by then stays. Raises `OSError`.
    """
    _forget_the_dead(folder, before, after)
    path, file = _create(folder, before, after)
    try:
        with file:
            yield path, file
    finally:
        path.unlink(missing_ok=True)


def _create(folder: Path, before: str, after: str) -> tuple[Path, BinaryIO]:
    while True:
        path = folder / f"{before}{uuid.uuid4().hex[:PLACES]}{after}"
        file = path.open("xb")
        try:
            with contextlib.suppress(OSError):  # where files cannot be locked, nobody forgets the dead
                fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_nlink:
                return path, file
        except BaseException:
            file.close()
            path.unlink(missing_ok=True)
            raise
        file.close()  # somebody took it for a dead one's before it was locked


def _forget_the_dead(folder: Path, before: str, after: str) -> None:
    for path in folder.glob(f"{glob.escape(before)}{'[0-9a-f]' * PLACES}{glob.escape(after)}"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while its maker lives
            path.unlink()
