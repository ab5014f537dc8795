"""Event logs as files: plain or gzip, read in pieces."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from expertcache_spec.history import InvalidLog
from expertcache_spec.history.schema import FORMAT

_PIECE = 1 << 14


def is_log(source: str) -> bool:
    """Whether the file begins as an event log does; what cannot be read is none."""
    try:
        with pieces_of(Path(source)) as (pieces, _):
            return f'"{FORMAT}"'.encode() in next(pieces, b"").split(b"\n")[0]
    except InvalidLog:
        return False


@contextmanager
def pieces_of(path: Path) -> Iterator[tuple[Iterator[bytes], int | None]]:
    """The bytes of the file in pieces, and how many pieces there are where that is known."""
    try:
        with path.open("rb") as raw:
            packed = raw.peek(2)[:2] == b"\x1f\x8b"
            total = None if packed else -(-path.stat().st_size // _PIECE)
            with gzip.GzipFile(fileobj=raw) if packed else raw as file:
                yield _read(file, str(path)), total  # type: ignore[arg-type]
    except OSError as error:
        raise InvalidLog(
            f"cannot open the file: {error.strerror or error}", where=str(path), cure="give the path of a readable log"
        ) from error


def _read(file: BinaryIO, name: str) -> Iterator[bytes]:
    while True:
        try:
            piece = file.read(_PIECE)
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidLog(f"cannot read: {error}", where=name, cure="copy the log again") from error
        if not piece:
            return
        yield piece
