"""Log files, plain and packed: whole in pieces of bounded size, or an error that names the log."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from random import Random

import pytest

from expertcache_spec.history import InvalidLog
from expertcache_spec.history.unpacking import PIECE, unpacked

DATA = Random(1).randbytes(3 * PIECE) + b"line\n" * PIECE


def read(data: bytes) -> bytes:
    """What comes out of a file with those bytes; every piece is bounded."""
    pieces = list(unpacked(io.BytesIO(data).read, "run.jsonl"))
    assert all(0 < len(piece) <= PIECE for piece in pieces)
    return b"".join(pieces)


@pytest.mark.rule("XC-HIST-002")
@pytest.mark.parametrize(
    "packed",
    [
        lambda data: data,
        gzip.compress,
        lambda data: gzip.compress(data[:100]) + gzip.compress(b"") + gzip.compress(data[100:]),
        lambda data: gzip.compress(data) + b"\0" * 600,
    ],
)
def test_what_was_written_is_read(packed: Callable[[bytes], bytes]) -> None:
    for data in (DATA, b"", b"x", DATA[: PIECE + 1]):
        assert read(packed(data)) == data


@pytest.mark.rule("XC-HIST-002")
def test_damage_to_packed_data_is_an_error_that_names_the_log() -> None:
    packed, random = gzip.compress(DATA), Random(2)
    for cut in (3, 12, len(packed) // 2, len(packed) - 1):
        with pytest.raises(InvalidLog, match=r"run\.jsonl: cannot read: .*cut off"):
            read(packed[:cut])
    with pytest.raises(InvalidLog, match="cannot read"):
        read(packed + b"something else")
    for _ in range(50):
        place = random.randrange(10, len(packed))
        with pytest.raises(InvalidLog, match="cannot read"):
            read(packed[:place] + bytes([packed[place] ^ 0x10]) + packed[place + 1 :])


def test_a_file_that_fails_is_an_error_that_names_the_log() -> None:
    def fail(_: int) -> bytes:
        raise OSError(5, "Input/output error")

    with pytest.raises(InvalidLog, match=r"run\.jsonl: cannot read: Input/output error"):
        list(unpacked(fail, "run.jsonl"))
