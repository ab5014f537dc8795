"""A file to measure on: written for the purpose, and gone afterwards."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy

from expertcache_reference.disk.places import CannotMeasure

NAME = ".expertcache-io-{}.scratch"
PIECE = 4 << 20


@contextmanager
def scratch(folder: Path, size: int, progress: Callable[[int, int], object] | None = None) -> Iterator[Path]:
    """A file of random bytes in the folder, synced; an error, a signal or the end of the block removes it.

    Whoever is killed cannot, so the next one does: a scratch file that nobody holds a lock on goes first. Random,
    because a device may compress what it stores, and no hole is ever read from it. Raises `CannotMeasure` where there
    is no room.
    """
    path = folder / NAME.format(uuid.uuid4().hex[:12])
    try:
        _forget_the_dead(folder)
        if shutil.disk_usage(folder).free < size + PIECE:
            raise CannotMeasure(f"no room for {size} bytes", where=str(folder), cure="ask for a smaller --scratch")
        try:
            with path.open("xb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                _fill(file.fileno(), size, progress)
                yield path
        finally:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise CannotMeasure(
            f"{error.strerror or error}", where=str(error.filename or folder), cure="name a folder that can be written"
        ) from error


def _forget_the_dead(folder: Path) -> None:
    for path in folder.glob(NAME.format("*")):
        with contextlib.suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while its maker lives
            path.unlink()


def _fill(descriptor: int, size: int, progress: Callable[[int, int], object] | None) -> None:
    random, done = numpy.random.default_rng(0), 0
    while done < size:
        piece = random.bytes(min(PIECE, size - done))
        while piece:
            written = os.write(descriptor, piece)
            done, piece = done + written, piece[written:]
        if progress is not None:
            progress(done, size)
    os.fsync(descriptor)
