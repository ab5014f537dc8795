"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from expertcache_reference.temporary import temporary
from expertcache_spec.errors import ExpertCacheError


class CannotWrite(ExpertCacheError):
    """A file that may not or cannot be written; nothing was changed."""

    code = "cannot-write"


@contextmanager
def written(path: Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """A file to write bytes to, which takes the place of `path` when the block ends well.

    The bytes go to a temporary file in the same folder, are synced, and renamed; an error or an interrupt removes it,
    and what a kill leaves goes when the same file is next written.
    Of a symbolic link to a regular file the link stays and the file is replaced. Raises `CannotWrite` when `path`
    exists (unless `force`), is anything but a regular file, or cannot be written.
    """
    try:
        target = _target(path, force)
        with temporary(target.parent, f".{target.name}.", ".partial") as (partial, file):
            yield file
            file.flush()
            os.fsync(file.fileno())
            _target(path, force)
            partial.replace(target)
            _sync_folder(target.parent)
    except OSError as error:
        raise CannotWrite(
            f"cannot write the file: {error.strerror or error}",
            where=str(path),
            cure="choose a folder that can be written",
        ) from error


@contextmanager
def all_written(paths: Sequence[Path], *, force: bool = False) -> Iterator[list[BinaryIO]]:
    """As `written`, of several files: each may be written before the block begins, and none is unless it ends well.

    Raises `CannotWrite` also for a file that is named twice.
    """
    places = [os.path.realpath(path) for path in paths]
    for path, place in zip(paths, places, strict=True):
        if places.count(place) > 1:
            raise CannotWrite("the file is named twice", where=str(path), cure="name each file once")
    with ExitStack() as stack:
        yield [stack.enter_context(written(path, force=force)) for path in paths]


def _target(path: Path, force: bool) -> Path:
    """Where to write: the path, or where it leads as a symbolic link."""
    target = Path(os.path.realpath(path))
    try:
        kind = stat.S_IFMT(target.lstat().st_mode)
    except FileNotFoundError:
        if path.is_symlink():
            said = "a link to no regular file" if path.exists() else "a symbolic link to nothing"
            raise CannotWrite(said, where=str(path), cure="name a file, not a link") from None
        return target
    if kind == stat.S_IFDIR:
        raise CannotWrite("is a directory", where=str(path), cure="name a file")
    if kind != stat.S_IFREG:  # a rename would put a file in the place of the device itself
        raise CannotWrite(
            "is no regular file, but a device, pipe or socket", where=str(path), cure="name a file, and copy it there"
        )
    if not force:
        raise CannotWrite("the file exists", where=str(path), cure="choose another name, or --force to replace it")
    return target


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
