"""Placing: what a record is made of, what a layout is, and the laws that every layout obeys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType

import attrs

from expertcache_spec.errors import InvalidModel
from expertcache_spec.layout.extents import Extent
from expertcache_spec.model import Key


@attrs.frozen(slots=False)
class Shape:
    """What there is to place: for every routed layer the parts of one of its records, in order, with their bytes.

    experts: records a layer has. parts: for each routed layer, part name to bytes: gate, up, down, scales, biases.
    Raises `InvalidModel` where a layer has no part, or a part no bytes.
    """

    experts: int
    parts: Mapping[int, Mapping[str, int]]

    def __attrs_post_init__(self) -> None:
        counts = [self.experts, *(size for parts in self.parts.values() for size in parts.values())]
        if not self.parts or not all(self.parts.values()) or any(type(n) is not int or n < 1 for n in counts):
            raise InvalidModel("a record without bytes", where="shape", cure="give every layer parts of 1 byte or more")

    def keys(self) -> list[Key]:
        """Every record, in order."""
        return [Key(layer, expert) for layer in self.parts for expert in range(self.experts)]

    def checked(self, key: Key) -> Key:
        """The key; raises `InvalidModel` for a record that there is not (XC-MODEL-001)."""
        layer, expert = key
        if layer not in self.parts or type(expert) is not int or not 0 <= expert < self.experts:
            cure = f"experts are 0 to {self.experts - 1} of layers {', '.join(map(str, self.parts))}"[:200]
            raise InvalidModel(f"no expert {expert!r} of layer {layer!r}"[:200], where="shape", cure=cure)
        return key

    def record_bytes(self, layer: int) -> int:
        """Bytes of one record of the layer; raises `InvalidModel` for one without experts."""
        return sum(self.parts[self.checked(Key(layer, 0)).layer].values())


@attrs.frozen(slots=False)
class SideTable:
    """Rows of one size that are read one by one, in every mode: `base` is the whole table's extent."""

    base: Extent
    row_bytes: int

    def row(self, number: int) -> Extent:
        """The extent of one row; raises `InvalidModel` for a row that the table does not have."""
        if not 0 <= number < self.base.length // self.row_bytes:
            raise InvalidModel(f"row {number}", where="side table", cure="rows are numbered from 0 to the last one")
        return Extent(self.base.file, self.base.offset + number * self.row_bytes, self.row_bytes)


@attrs.frozen(slots=False)
class Layout:
    """A map from records to extents.

    name, version: of the layout's format. shape: what is placed. place: the extents of one record in the order of its
    bytes, part by part. files: every file with its bytes. alignment: what every block offset is a multiple of. blocks:
    what of a record begins on the alignment, its first extent unless stated. resident: layers that are loaded at the
    start and not streamed. tables: side tables by name.
    """

    name: str
    shape: Shape
    place: Callable[[Key], tuple[Extent, ...]]
    files: Mapping[str, int]
    alignment: int = 1
    resident: frozenset[int] = frozenset()
    tables: Mapping[str, SideTable] = MappingProxyType({})
    version: int = 1
    blocks: Callable[[Key], tuple[Extent, ...]] | None = None

    @cached_property
    def extents(self) -> Mapping[Key, tuple[Extent, ...]]:
        """Every record with its extents."""
        return {key: self.place(key) for key in self.shape.keys()}  # noqa: SIM118

    def part(self, key: Key, name: str) -> tuple[int, int]:
        """Where a part of the record begins in the record's bytes, and its length."""
        start = 0
        for part, size in self.shape.parts[self.shape.checked(key).layer].items():
            if part == name:
                return start, size
            start += size
        raise InvalidModel(f"part {name!r}", where=f"layer {key.layer}", cure="name a part of the layer's records")

    def streamed(self) -> list[Key]:
        """The records that are read on demand."""
        return [key for key in self.shape.keys() if key.layer not in self.resident]  # noqa: SIM118

    def is_aligned(self, key: Key) -> bool:
        """Whether the record's blocks begin on the declared alignment."""
        found = self.blocks(key) if self.blocks else self.extents[key][:1]
        return all(block.offset % self.alignment == 0 for block in found)


def broken_laws(layout: Layout) -> list[str]:
    """The ids of the layout rules that this layout breaks; empty for a lawful one. O(n log n) in its extents.

    Of XC-LAYOUT-004 it judges the bytes in all. That the parts stand in the record's order no extent says: `gather`
    them from files whose content is known.
    """
    broken = []
    placed = [extent for extents in layout.extents.values() for extent in extents]
    everything = sorted(placed + [table.base for table in layout.tables.values()])
    if any(
        extent.file not in layout.files
        or extent.offset < 0
        or extent.length < 1
        or extent.end > layout.files[extent.file]
        for extent in everything
    ):
        broken.append("XC-LAYOUT-001")
    if any(one.file == next_.file and one.end > next_.offset for one, next_ in pairwise(everything)):
        broken.append("XC-LAYOUT-002")
    if not all(map(layout.is_aligned, layout.extents)):
        broken.append("XC-LAYOUT-003")
    if any(
        sum(e.length for e in layout.extents[key]) != layout.shape.record_bytes(key.layer) for key in layout.extents
    ):
        broken.append("XC-LAYOUT-004")
    return broken


Content = Callable[[Key], bytes]
"""The bytes of a record, parts in order, wherever they lie."""


def written(layout: Layout, content: Content) -> dict[str, bytearray]:
    """The files of a layout with every record written into them; for small models. What is no record stays zero."""
    files = {name: bytearray(size) for name, size in layout.files.items()}
    for key, extents in layout.extents.items():
        data, start = content(key), 0
        for file, offset, length in extents:
            files[file][offset : offset + length] = data[start : start + length]
            start += length
    return files


def gather(extents: tuple[Extent, ...], files: Mapping[str, bytes | bytearray]) -> bytes:
    """The bytes of the extents, end to end."""
    return b"".join(bytes(files[extent.file][extent.offset : extent.end]) for extent in extents)
