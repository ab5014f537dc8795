"""Plans: where the records of a model will lie in each format, before a byte is written."""

from __future__ import annotations

import json
from collections.abc import Callable

import attrs

from expertcache_reference.stores.folders import INDEX, index, laid
from expertcache_reference.stores.manifest import Manifest
from expertcache_reference.stores.store import KINDS, Model
from expertcache_spec.errors import UnknownName
from expertcache_spec.layout import Layout, record_blocks
from expertcache_spec.layout.extents import round_up
from expertcache_spec.model import Key

ALIGNMENTS = (4096, 16384, 65536)
"""Pages of the machines there are: most Linux, Apple Silicon, some arm64 Linux."""

Head = Callable[[Manifest], bytes]
"""The bytes that begin the file which says what the store is; as many for every manifest of one plan."""


@attrs.frozen(slots=False)
class Plan:
    """What is to be written: the layout, and last the head, at the beginning of the file `index`.

    is_folder: whether the product is a folder of files, or the one file `index`.
    """

    kind: str
    alignment: int
    model: Model
    layout: Layout
    index: str
    head: Head
    is_folder: bool


def plan(model: Model, kind: str, name: str, alignment: int = 16384) -> Plan:
    """The plan for a product called `name`; raises `UnknownName` for another kind or alignment than there are."""
    if kind not in KINDS:
        raise UnknownName(f"format {kind!r}", where="--to", cure=f"one of {', '.join(KINDS)}")
    if alignment not in ALIGNMENTS:
        raise UnknownName(f"alignment {alignment}", where="--align", cure=f"one of {', '.join(map(str, ALIGNMENTS))}")
    return _PLANS[kind](model, name, alignment)


def compact(value: object) -> str:
    """JSON in one line without spaces."""
    return json.dumps(value, separators=(",", ":"))


def _folder(kind: str, model: Model, layout: Layout) -> Plan:
    def head(manifest: Manifest) -> bytes:
        return compact(index(manifest, layout)).encode() + b"\n"

    return Plan(kind, layout.alignment, model, layout, INDEX, head, True)


def _layers(model: Model, name: str, alignment: int) -> Plan:
    """Record e of a layer begins at e times the record, which is padded to whole pages.

    Where the record is whole pages anyway this is `expertcache_spec.layout.packed_layers` (Flash-MoE).
    """
    shape = model.shape
    strides = {layer: round_up(shape.record_bytes(layer), alignment) for layer in shape.parts}
    offsets = {
        layer: (f"layer_{layer:02d}.bin", [expert * stride for expert in range(shape.experts)])
        for layer, stride in strides.items()
    }
    sizes = {offsets[layer][0]: stride * shape.experts for layer, stride in strides.items()}
    return _folder("layers", model, laid("layers", shape, offsets, sizes, alignment))


def _blocks(model: Model, name: str, alignment: int) -> Plan:
    """`expertcache_spec.layout.record_blocks` (ds4's sidecar, mbolt)."""
    shape = model.shape
    layout = record_blocks(shape, alignment)
    file, experts = next(iter(layout.files)), range(shape.experts)
    offsets = {
        layer: (file, [layout.place(Key(layer, expert))[0].offset for expert in experts]) for layer in shape.parts
    }
    return _folder("blocks", model, laid("blocks", shape, offsets, layout.files, alignment))


_PLANS: dict[str, Callable[[Model, str, int], Plan]] = {"layers": _layers, "blocks": _blocks}
