"""What can come of a read that did not end well."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.layout.extents import Extent


class ReadFailed(ExpertCacheError):
    """Bytes that did not come: the file has ended, the system refused, there was no memory to put them.

    file, offset: where the request began; the file as its store names it, while `where` has the folder too. wanted,
    got: bytes asked for, and how many of them had come.
    """

    code: ClassVar[str] = "read-failed"

    def __init__(self, what: str, *, where: str = "", cure: str = "", at: tuple[str, int, int, int] = ("", 0, 0, 0)):
        super().__init__(what, where=where, cure=cure)
        self.file, self.offset, self.wanted, self.got = at

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.where, self.cure, (self.file, self.offset, self.wanted, self.got))

    def fresh(self) -> ReadFailed:
        """The same finding as an object of its own: one is raised in one thread only."""
        return _rebuild(type(self), self.what, self.where, self.cure, (self.file, self.offset, self.wanted, self.got))


class ReadCancelled(ReadFailed):
    """A read that nobody wanted any more, or whose reader was closed: nothing is known of its bytes."""

    code: ClassVar[str] = "read-cancelled"


def _rebuild(
    kind: type[ReadFailed], what: str, where: str, cure: str, at: tuple[str, int, int, int]
) -> ReadFailed:  # fmt: skip
    return kind(what, where=where, cure=cure, at=at)


def file_ended(path: Path, piece: Extent, got: int) -> ReadFailed:
    """The file ends before the bytes that were asked for."""
    file, offset, wanted = piece
    return ReadFailed(
        f"{wanted} bytes wanted from offset {offset}, {got} came: the file ends",
        where=str(path),
        cure="the file is cut off or was replaced: copy or pack it again",
        at=(file, offset, wanted, got),
    )


def refused(path: Path, piece: Extent, got: int, error: Exception) -> ReadFailed:
    """The system did not do what it was asked to."""
    file, offset, wanted = piece
    return ReadFailed(
        f"{wanted} bytes wanted from offset {offset}, {got} came: {type(error).__name__}: {error}",
        where=str(path),
        cure="look at the file and its device; the read may be tried again",
        at=(file, offset, wanted, got),
    )


def cancelled(key: object) -> ReadCancelled:
    """Nobody waits for the read any more."""
    return ReadCancelled(f"the read of {key} was cancelled", where="reader", cure="ask for the record again")
