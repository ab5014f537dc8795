"""The layouts that engines use, from a shape to extents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd

import attrs

from expertcache_spec.errors import InvalidModel
from expertcache_spec.layout.extents import Extent, pieces, round_up
from expertcache_spec.layout.placing import Layout, Shape, SideTable
from expertcache_spec.model import Key


def _parts(shape: Shape, layer: int, file: str, start: int) -> tuple[Extent, ...]:
    """The parts of a record that lie end to end from `start`."""
    found = []
    for size in shape.parts[layer].values():
        found.append(Extent(file, start, size))
        start += size
    return tuple(found)


def _check(alignment: int, header: int) -> None:
    """Raise `InvalidModel` unless blocks can begin on the alignment, behind the header."""
    if type(alignment) is not int or type(header) is not int or alignment < 1 or header < 0:
        said = f"alignment {alignment!r} and header {header!r}"
        raise InvalidModel(said, where="layout", cure="give whole numbers of bytes, the alignment from 1")


def stacked_tensors(shape: Shape, alignment: int = 32, file: str = "model.gguf", header: int = 0) -> Layout:
    """One tensor a layer and part, the experts stacked in it: one extent a part (GGUF, safetensors).

    The tensors begin on the alignment (GGUF: 32 bytes), so a record's parts begin on what divides it and their size.
    """
    _check(alignment, header)
    bases: dict[tuple[int, str], int] = {}
    end = header
    for layer, parts in shape.parts.items():
        for name, size in parts.items():
            bases[layer, name] = end = round_up(end, alignment)
            end += size * shape.experts
    grain = gcd(alignment, *(size for parts in shape.parts.values() for size in parts.values()))

    def place(key: Key) -> tuple[Extent, ...]:
        parts = shape.parts[shape.checked(key).layer].items()
        return tuple(Extent(file, bases[key.layer, name] + key.expert * size, size) for name, size in parts)

    return Layout("stacked-tensors", shape, place, {file: end}, grain, blocks=place)


def packed_layers(shape: Shape, name: Callable[[int], str] = "layer_{:02d}.bin".format) -> Layout:
    """One file a layer; record e begins at e times the record, its parts end to end (Flash-MoE's packed experts)."""
    sizes = {layer: shape.record_bytes(layer) for layer in shape.parts}

    def place(key: Key) -> tuple[Extent, ...]:
        layer, expert = shape.checked(key)
        return _parts(shape, layer, name(layer), expert * sizes[layer])

    files = {name(layer): size * shape.experts for layer, size in sizes.items()}
    return Layout("packed-layers", shape, place, files, gcd(*sizes.values()))


def record_blocks(shape: Shape, alignment: int = 4096, file: str = "experts.bin", header: int = 0) -> Layout:
    """One block an expert, gate, up and down interleaved, each block on the alignment (ds4's sidecar, mbolt)."""
    return _blobs("record-blocks", shape, shape.keys(), alignment, lambda _: file, header, None)


def flat_blobs(
    shape: Shape, alignment: int = 4096, roll: int = 4 * 10**9, order: Sequence[Key] | None = None
) -> Layout:
    """Blobs on the alignment in any order, in numbered files that roll at a size; an index says where (jangspec).

    `order` is every key once: by number, by heat, by co-activation. Raises `InvalidModel` where it is not, or where a
    record is larger than a file may be.
    """
    keys = shape.keys() if order is None else list(order)
    if sorted(keys) != sorted(shape.keys()) or max(map(shape.record_bytes, shape.parts)) > roll:
        raise InvalidModel("an order that is not every key once, or files too small", where="blobs", cure="list all")
    return _blobs("flat-blobs", shape, keys, alignment, "experts-{:05d}.bin".format, 0, roll)


def _blobs(
    kind: str, shape: Shape, keys: Sequence[Key], alignment: int, name: Callable[[int], str], start: int,
    roll: int | None,
) -> Layout:  # fmt: skip
    _check(alignment, start)
    found: dict[Key, tuple[Extent, ...]] = {}
    files: dict[str, int] = {}
    number, end = 1, start
    for key in keys:
        size = shape.record_bytes(key.layer)
        begin = round_up(end, alignment)
        if roll is not None and begin + size > roll:
            number, begin = number + 1, 0
        found[key] = _parts(shape, key.layer, name(number), begin)
        files[name(number)] = end = begin + size
    return Layout(kind, shape, lambda key: found[shape.checked(key)], files, alignment)


def bundled_rows(shape: Shape, rows: int, file: str = "bundles.bin") -> Layout:
    """Row i of every part side by side, so that a neuron is one extent (row-column bundling, LLM in a Flash).

    Every part is `rows` rows of equal size: rows of gate and up, columns of down. A record is then `rows` bundles, end
    to end, and each of its parts is scattered over them. Raises `InvalidModel` where a part is not whole rows.
    """
    if rows < 1 or any(size % rows for parts in shape.parts.values() for size in parts.values()):
        raise InvalidModel(
            f"parts that are not {rows} equal rows", where="bundles", cure="give the neurons of an expert"
        )
    base, end = {}, 0
    for layer in shape.parts:
        base[layer] = end
        end += shape.record_bytes(layer) * shape.experts

    def place(key: Key) -> tuple[Extent, ...]:
        shape.checked(key)
        start, bundle = (
            base[key.layer] + key.expert * shape.record_bytes(key.layer),
            shape.record_bytes(key.layer) // rows,
        )
        found = []
        for part in _parts(shape, key.layer, file, 0):
            within, row = part.offset // rows, part.length // rows
            found += [Extent(file, start + number * bundle + within, row) for number in range(rows)]
        return tuple(found)

    return Layout("bundled-rows", shape, place, {file: end})


def overlay(layout: Layout, layer: int, part: str) -> tuple[Extent, ...]:
    """The stacked tensor of one layer and part, as extents of another layout's files, expert after expert.

    The shape that a device wants over tiles that lie as they lie (JANG's prestack): it owns no bytes, copies none and
    makes nothing resident.
    """
    found: list[Extent] = []
    for expert in range(layout.shape.experts):
        key = Key(layer, expert)
        found += pieces(layout.place(key), *layout.part(key, part))
    return tuple(found)


def resident_prefix(layout: Layout, layers: int) -> Layout:
    """The layout with its first `layers` routed layers loaded whole at the start and never streamed (ds4).

    More than there are is all of them. Raises `InvalidModel` for what is no number of layers.
    """
    if type(layers) is not int or layers < 0:
        raise InvalidModel(f"{layers!r} layers", where="resident prefix", cure="give a whole number from 0")
    return attrs.evolve(layout, resident=frozenset(list(layout.shape.parts)[:layers]))


def with_side_table(
    layout: Layout, name: str, rows: int, row_bytes: int, page: int = 16384, file: str | None = None
) -> Layout:
    """The layout with a table after the weights of a file, on a page: n-gram or Engram rows, read in every mode.

    Nothing that was placed moves (XC-LAYOUT-007). `file` is the layout's last one unless named. Raises `InvalidModel`
    for a name that is taken, and for rows, bytes of a row or a page that are no whole number from 1.
    """
    if any(type(count) is not int or count < 1 for count in (rows, row_bytes, page)) or name in layout.tables:
        said = f"table {name!r} of {rows!r} rows of {row_bytes!r} bytes on pages of {page!r}"
        raise InvalidModel(said, where="side table", cure="give a new name, and rows, bytes and pages from 1")
    target = file if file is not None else list(layout.files)[-1]
    start = round_up(layout.files.get(target, 0), page)
    table = SideTable(Extent(target, start, rows * row_bytes), row_bytes)
    files = {**layout.files, target: table.base.end}
    return attrs.evolve(layout, files=files, tables={**layout.tables, name: table})
