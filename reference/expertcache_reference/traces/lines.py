"""Lines of a trace file, plain or gzip: bounded in length, strict UTF-8, each with its place for errors."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import attrs

from expertcache_spec.errors import InvalidTrace

MAX_LINE = 64 * 2**20
"""Bytes of the longest line that is read; a longer one is refused after that many."""

Progress = Callable[[int, int], None]
"""Called now and then with the bytes of the file that were consumed, and the size of the file (0 if unknown)."""

_MARKS = {b"\xef\xbb\xbf": "UTF-8", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
"""Byte-order marks, with which some editors and shells begin a file."""

_EVERY = 1 << 16
_CUT = "copy or capture it again"


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The file, open for reading bytes; raises `InvalidTrace` where it is missing, a directory or not readable."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise InvalidTrace(
            f"cannot open the file: {error.strerror}", where=str(path), cure="give the path of a readable trace file"
        ) from error
    with file:
        yield file


@attrs.define
class Lines:
    """Iterates over (place, text) of the lines of one file; a place is `path:line`.

    Raises `InvalidTrace` for an empty file, a broken or truncated gzip, a byte-order mark, a line beyond `MAX_LINE`, an
    empty line, NUL bytes and anything that is not UTF-8.
    """

    name: str
    raw: BinaryIO
    progress: Progress | None = None
    number: int = 0
    _text: BinaryIO = attrs.field(init=False)
    _peeked: bytes | None = None
    _size: int = 0
    _reported: int = 0

    def __attrs_post_init__(self) -> None:
        self._size = os.fstat(self.raw.fileno()).st_size
        self._text = self.raw
        if self.magic(2) == b"\x1f\x8b":
            self._text = gzip.GzipFile(fileobj=self.raw)  # type: ignore[assignment]

    def magic(self, count: int) -> bytes:
        """The first bytes of the file, without consuming them."""
        with self._reading():
            return self.raw.peek(count)[:count]  # type: ignore[attr-defined, no-any-return]

    def peek(self) -> bytes:
        """The first line, without consuming it; empty for an empty file."""
        if self._peeked is None:
            self._peeked = self._read()
            if not self.number:
                _refuse_mark(self._peeked, f"{self.name}:1")
        return self._peeked

    def peek_text(self) -> str:
        """The first line as text, without consuming it."""
        return _text(self.peek(), f"{self.name}:1")

    def __iter__(self) -> Iterator[tuple[str, str]]:
        while line := self.peek():
            self._peeked = None
            self.number += 1
            place = f"{self.name}:{self.number}"
            if self.progress is not None:
                self._report(self.progress)
            yield place, _text(line, place)
        if not self.number:
            raise InvalidTrace("the file is empty", where=self.name, cure="check that the capture ran")

    def _report(self, progress: Progress) -> None:
        done = self.raw.tell() if self._size else 0
        if done >= self._reported + _EVERY:
            self._reported = done
            progress(done, self._size)

    def _read(self) -> bytes:
        with self._reading():
            line = self._text.readline(MAX_LINE + 1)
        if len(line) > MAX_LINE:
            raise InvalidTrace(
                f"no end of line within {MAX_LINE} bytes",
                where=f"{self.name}:{self.number + 1}",
                cure="is this a trace? Its lines hold one event or one request each",
            )
        return line

    @contextmanager
    def _reading(self) -> Iterator[None]:
        place = f"{self.name}:{self.number + 1}"
        try:
            yield
        except EOFError as error:
            raise InvalidTrace("the gzip data ends too early", where=place, cure=_CUT) from error
        except (zlib.error, gzip.BadGzipFile) as error:
            raise InvalidTrace(f"the gzip data is damaged ({error})", where=place, cure=_CUT) from error
        except OSError as error:
            raise InvalidTrace(f"cannot read: {error.strerror or error}", where=place, cure=_CUT) from error


def _refuse_mark(line: bytes, place: str) -> None:
    found = next((name for mark, name in _MARKS.items() if line.startswith(mark)), None)
    if found is not None:
        raise InvalidTrace(
            f"the file begins with a {found} byte-order mark", where=place, cure="save it as UTF-8 without that mark"
        )


def _text(line: bytes, place: str) -> str:
    if b"\0" in line:
        raise InvalidTrace("NUL bytes in a text file", where=place, cure="the file has a hole: " + _CUT)
    try:
        text = line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InvalidTrace(
            f"not UTF-8 at byte {error.start} of the line", where=place, cure="convert the file to UTF-8, " + _CUT
        ) from error
    if not text.strip():
        raise InvalidTrace("an empty line", where=place, cure="remove it, or restore the lost record")
    return text
