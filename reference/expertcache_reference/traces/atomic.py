"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from expertcache_spec.errors import ExpertCacheError


class CannotWrite(ExpertCacheError):
    """A file that may not or cannot be written; nothing was changed."""

    code = "cannot-write"


@contextmanager
def written(path: Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """A file to write bytes to, which takes the place of `path` when the block ends well.

    The bytes go to a temporary file in the same folder, are synced, and renamed; an error or an interrupt removes it.
    Raises `CannotWrite` when `path` exists (unless `force`) or the folder cannot be written.
    """
    _refuse_existing(path, force)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.partial")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _refuse_existing(path, force)
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise CannotWrite(
            f"cannot write the file: {error.strerror or error}",
            where=str(path),
            cure="choose a folder that can be written",
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def _refuse_existing(path: Path, force: bool) -> None:
    if path.is_dir():
        raise CannotWrite("is a directory", where=str(path), cure="name a file")
    if not force and os.path.lexists(path):
        raise CannotWrite("the file exists", where=str(path), cure="choose another name, or --force to replace it")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
