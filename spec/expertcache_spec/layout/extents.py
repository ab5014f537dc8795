"""Extents: runs of bytes in files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from expertcache_spec.errors import InvalidModel


class Extent(NamedTuple):
    """`length` bytes of `file` from `offset`. Extents order by file, then offset."""

    file: str
    offset: int
    length: int

    @property
    def end(self) -> int:
        """The offset of the first byte after it."""
        return self.offset + self.length


def round_up(value: int, multiple: int) -> int:
    """The least multiple of `multiple` that is not below `value`."""
    return -(-value // multiple) * multiple


def window(extent: Extent, grain: int, file_size: int | None = None) -> tuple[Extent, int]:
    """The smallest read on a grain of `grain` bytes that holds the extent, and where the extent begins in it.

    Direct I/O asks for offset and length on the grain; both are rounded, the offset down. With `file_size` the read
    ends with the file (XC-LAYOUT-008). Raises `InvalidModel` for an extent beyond the file.
    """
    if grain < 1 or (file_size is not None and extent.end > file_size):
        raise InvalidModel(
            f"{extent} on a grain of {grain} in {file_size} bytes", where="window", cure="keep the extent in its file"
        )
    start = extent.offset - extent.offset % grain
    end = round_up(extent.end, grain)
    if file_size is not None:
        end = min(end, file_size)
    return Extent(extent.file, start, end - start), extent.offset - start


def pieces(extents: Iterable[Extent], start: int, length: int) -> Iterator[Extent]:
    """The parts of the extents, end to end, that hold bytes `start` to `start + length` of them together."""
    for file, offset, size in extents:
        first, last = max(start, 0), min(start + length, size)
        if first < last:
            yield Extent(file, offset + first, last - first)
        start -= size
