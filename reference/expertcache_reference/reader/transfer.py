"""Bytes from files into memory, all of them or an error: by `pread`, or out of a mapping, under one contract.

fill(hand, ...)  the extents' bytes `start` to `start + length`, into the same place of the view
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import numpy

from expertcache_reference.reader.errors import ReadFailed, file_ended, refused
from expertcache_reference.reader.files import Hand, Opened
from expertcache_spec.layout.extents import Extent, pieces

Way = Literal["pread", "mmap"]
WAYS: tuple[Way, ...] = ("pread", "mmap")

Count = Callable[[int], None]
"""Takes the bytes of one request that has delivered: each byte is counted once, when it comes."""


def fill(
    hand: Hand, way: Way, most: int, extents: Sequence[Extent], view: memoryview, start: int, length: int,
    count: Count,
) -> None:  # fmt: skip
    """Read a run of a record to its end. `most` is the largest request; raises `ReadFailed`."""
    mapped, at = way == "mmap", start
    for piece in _pieces(extents, start, length):
        into = view[at : at + piece.length]
        try:
            opened = hand.take(piece.file, mapped=mapped)
        except OSError as error:
            raise refused(hand.path(piece.file), piece, 0, error) from error
        if mapped:
            _copy(opened, piece, into, count)
        else:
            _read(opened, piece, into, most, count)
        at += piece.length


def _pieces(extents: Sequence[Extent], start: int, length: int) -> Iterable[Extent]:
    """As `layout.pieces`; most records are one extent, and then there is nothing to walk."""
    if len(extents) == 1 and length:
        file, offset, _ = extents[0]
        return (Extent(file, offset + start, length),)
    return pieces(extents, start, length)


def _read(opened: Opened, piece: Extent, into: memoryview, most: int, count: Count) -> None:
    """Ask until all is there: a request may bring less, a signal may come first, Darwin refuses what is too much."""
    file, got = opened.file, 0
    while got < piece.length:
        try:
            view = into[got : got + most] if got or piece.length > most else into
            came = file.read_into(view, piece.offset + got)
        except InterruptedError:
            continue
        except OSError as error:
            raise refused(opened.path, piece, got, error) from error
        if came < 1:
            raise file_ended(opened.path, piece, got)
        count(came)
        got += came


def _copy(opened: Opened, piece: Extent, into: memoryview, count: Count) -> None:
    """Copy out of the mapping, if the file still has the bytes: to touch a page that is gone kills the process.

    The check is as good as there is; a file cut off between it and the copy is beyond any reader's help.
    """
    assert opened.mapping is not None, "taken as mapped"
    try:
        size = opened.file.size()
    except OSError as error:
        raise refused(opened.path, piece, 0, error) from error
    view = opened.mapping.view
    have = min(size, len(view)) - piece.offset
    if have < piece.length:
        raise file_ended(opened.path, piece, max(0, have))
    # numpy lets go of the interpreter while it copies and faults pages in; a slice of a memoryview does not.
    source = numpy.frombuffer(view, numpy.uint8, piece.length, piece.offset)
    numpy.copyto(numpy.frombuffer(into, numpy.uint8), source)
    count(piece.length)


def unexpected(error: BaseException, key: object) -> ReadFailed:
    """What a worker makes of an error that is none of the above, so that whoever waits hears of it."""
    return ReadFailed(f"the read of {key}: {type(error).__name__}: {error}", where="reader", cure="report this")
