"""Values of a GGUF header, one after the other, without believing a count before its bytes are there."""

from __future__ import annotations

import struct
from collections.abc import Callable

from expertcache_reference.stores.reading import MAX_HEADER, Opened
from expertcache_reference.stores.tensors import DAMAGED
from expertcache_spec.layout.files import WrongFile

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Type numbers to their `struct` codes."""
_STRING, _ARRAY = 8, 9
_BUFFER = 2**20
_LONGEST_HEADER = 2**28
"""Vocabularies of 262,144 words with their merges take 20 MiB."""
_LONGEST_NAME = 2**12
_MOST_STRINGS = 1 << 22
_DEEPEST = 4


class Values:
    """A cursor over the header; raises `WrongFile` where it would pass the end of the file or of all reason."""

    def __init__(self, file: Opened) -> None:
        self.where, self.position = str(file.path), 0
        self._file, self._limit = file, min(file.size, _LONGEST_HEADER)
        self._buffer, self._start, self._strings = b"", 0, 0

    def wrong(self, what: str) -> WrongFile:
        """The refusal, with the place."""
        return WrongFile(what, where=f"{self.where}: byte {self.position}", cure=DAMAGED)

    def skip(self, length: int) -> None:
        """Step over bytes."""
        if length > self._limit - self.position:
            raise self.wrong(
                f"a header that goes on for {length} bytes, beyond the end of the file or {_LONGEST_HEADER}"
            )
        self.position += length

    def bytes(self, length: int) -> bytes:
        """The next bytes."""
        begin = self.position
        self.skip(length)
        if not self._start <= begin <= self.position <= self._start + len(self._buffer):
            self._buffer = self._file.read(begin, min(max(length, _BUFFER), self._limit - begin))
            self._start = begin
        return self._buffer[begin - self._start : self.position - self._start]

    def whole(self, code: str) -> int:
        """The next whole number: I of 4 bytes, Q of 8."""
        return int(struct.unpack(f"<{code}", self.bytes(struct.calcsize(f"<{code}")))[0])

    def text(self, longest: int = _LONGEST_NAME) -> str:
        """The next string."""
        length = self.whole("Q")
        if length > longest:
            raise self.wrong(f"a name of {length} bytes")
        try:
            return self.bytes(length).decode()
        except UnicodeDecodeError:
            raise self.wrong("a name that is no UTF-8") from None

    def pair(self, wanted: Callable[[str], bool]) -> tuple[str, object]:
        """The next key and its value, or None where it is a list or not wanted."""
        key, kind = self.text(), self.whole("I")
        if wanted(key) and kind == _STRING:
            return key, self.text(MAX_HEADER)
        if wanted(key) and kind in _SCALARS:
            code = f"<{_SCALARS[kind]}"
            return key, struct.unpack(code, self.bytes(struct.calcsize(code)))[0]
        self._step_over(kind, 0)
        return key, None

    def _step_over(self, kind: int, depth: int) -> None:
        if kind in _SCALARS:
            self.skip(struct.calcsize(f"<{_SCALARS[kind]}"))
        elif kind == _STRING:
            self.skip(self.whole("Q"))
        elif kind == _ARRAY and depth < _DEEPEST:
            self._step_over_list(self.whole("I"), self.whole("Q"), depth + 1)
        else:
            raise self.wrong(f"a value of type {kind}")

    def _step_over_list(self, kind: int, count: int, depth: int) -> None:
        if kind in _SCALARS:
            self.skip(struct.calcsize(f"<{_SCALARS[kind]}") * count)
            return
        self._strings += count
        if self._strings > _MOST_STRINGS:
            raise self.wrong(f"{self._strings} strings and lists")
        for _ in range(count):
            self._step_over(kind, depth)
