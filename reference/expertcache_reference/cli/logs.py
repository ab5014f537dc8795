"""Event logs as files: plain or gzip, read in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from expertcache_spec.history import InvalidLog
from expertcache_spec.history.schema import FORMAT
from expertcache_spec.history.unpacking import GZIP, PIECE, unpacked


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
        with path.open("rb") as file:
            packed = file.peek(2)[:2] == GZIP
            yield unpacked(file.read, str(path)), None if packed else -(-path.stat().st_size // PIECE)
    except OSError as error:
        raise InvalidLog(
            f"cannot open the file: {error.strerror or error}", where=str(path), cure="give the path of a readable log"
        ) from error
