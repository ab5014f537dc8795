"""The bytes of a log file, plain or packed with gzip, in pieces of bounded size.

No file is opened here: whoever opens one hands over how to read from it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

from expertcache_spec.history.schema import InvalidLog

PIECE = 1 << 14
"""Bytes that are read, and at most given, at once."""
GZIP = b"\x1f\x8b"
"""How a packed file begins."""
_MEMBERS = 31
"""zlib's word for gzip: header, checksum and length are looked at."""


def unpacked(read: Callable[[int], bytes], name: str) -> Iterator[bytes]:
    """What `read` gives, until it gives nothing, unpacked where it begins as gzip; holds two pieces.

    Raises `InvalidLog`, naming the log, where it cannot be read, is damaged, or ends within the packed data.
    """
    pieces = _pieces(read, name)
    first = next(pieces, b"")
    if first[:2] != GZIP:
        if first:
            yield first
        yield from pieces
        return
    member: Any = zlib.decompressobj(_MEMBERS)
    held = first
    while held or (held := next(pieces, b"")):
        if member.eof:
            held = held.lstrip(b"\0")  # padding, as gzip takes it
            if not held:
                continue
            member = zlib.decompressobj(_MEMBERS)
        try:
            piece = member.decompress(held, PIECE)
        except zlib.error as error:
            raise _cannot_read(str(error), name) from error
        held = member.unused_data if member.eof else member.unconsumed_tail
        if piece:
            yield piece
    if not member.eof:
        raise _cannot_read("the packed data is cut off", name)


def _pieces(read: Callable[[int], bytes], name: str) -> Iterator[bytes]:
    while True:
        try:
            piece = read(PIECE)
        except OSError as error:
            raise _cannot_read(error.strerror or str(error), name) from error
        if not piece:
            return
        yield piece


def _cannot_read(why: str, name: str) -> InvalidLog:
    return InvalidLog(f"cannot read: {why}", where=name, cure="copy the log again")
