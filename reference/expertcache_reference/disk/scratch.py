"""A file to measure on: written for the purpose, and gone afterwards."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy

from expertcache_reference.disk.places import CannotMeasure
from expertcache_reference.temporary import temporary

PIECE = 4 << 20


@contextmanager
def scratch(folder: Path, size: int, progress: Callable[[int, int], object] | None = None) -> Iterator[Path]:
    """A file of random bytes in the folder, synced; an error, a signal or the end of the block removes it.

    What a kill leaves goes when the next one is made. Random, because a device may compress what it stores, and no
    hole is ever read from it. Raises `CannotMeasure` where there is no room.
    """
    try:
        if shutil.disk_usage(folder).free < size + PIECE:
            raise CannotMeasure(f"no room for {size} bytes", where=str(folder), cure="ask for a smaller --scratch")
        with temporary(folder, ".expertcache-io-", ".scratch") as (path, file):
            _fill(file.fileno(), size, progress)
            yield path
    except OSError as error:
        raise CannotMeasure(
            f"{error.strerror or error}", where=str(error.filename or folder), cure="name a folder that can be written"
        ) from error


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
