"""Plans: where the records of a model will lie in each format, before a byte is written."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from expertcache_reference.stores import gguf_writing, safetensors_header
from expertcache_reference.stores.assembling import RECORDS
from expertcache_reference.stores.folders import INDEX, index, laid
from expertcache_reference.stores.manifest import UNKNOWN, Manifest
from expertcache_reference.stores.names import gguf_name, mlx_name
from expertcache_reference.stores.reading import compact
from expertcache_reference.stores.stacked import held, layout_of
from expertcache_reference.stores.store import KINDS, Model
from expertcache_reference.stores.tensors import Tensor
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

    def probe_name(self, file: str) -> str:
        """What a file is called in the manifest: one that holds its own manifest may be renamed."""
        return file if self.is_folder else RECORDS


def plan(model: Model, kind: str, name: str, alignment: int = 16384) -> Plan:
    """The plan for a product called `name`; raises `UnknownName` for another kind or alignment than there are."""
    if kind not in KINDS:
        raise UnknownName(f"format {kind!r}", where="--to", cure=f"one of {', '.join(KINDS)}")
    if alignment not in ALIGNMENTS:
        raise UnknownName(f"alignment {alignment}", where="--align", cure=f"one of {', '.join(map(str, ALIGNMENTS))}")
    return _PLANS[kind](model, name, alignment)


def blank(kind: str, model: Model, alignment: int) -> Manifest:
    """A manifest as long as the real one will be."""
    records = dict.fromkeys(model.shape.keys(), UNKNOWN)
    return Manifest(kind, alignment, model, records, UNKNOWN, {RECORDS: UNKNOWN})


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


def _stacked(model: Model, file: str, tensors: list[Tensor], size: int, alignment: int, head: Head, kind: str) -> Plan:
    """One file of tensors in the order of the records, with its manifest in the head."""
    layout = layout_of(model.shape, held(tensors, file), {file: size})
    return Plan(kind, alignment, model, layout, file, head, False)


def _tensors(model: Model, file: str, name: Callable[[int, str], str], start: int, alignment: int) -> list[Tensor]:
    """One tensor for each layer and part, the experts stacked in it, each on the alignment."""
    found = []
    for layer, parts in model.parts.items():
        for part in parts:
            start = round_up(start, alignment)
            shape = (model.geometry.experts, *part.shape)
            found.append(
                Tensor(name(layer, part.name), part.dtype, shape, file, start, part.bytes * model.geometry.experts)
            )
            start += part.bytes * model.geometry.experts
    return found


def _safetensors(model: Model, name: str, alignment: int) -> Plan:
    """The tensors lie end to end, as the format asks; the first begins on the alignment.

    A record's parts are on pages where they are whole pages.
    """

    def head(manifest: Manifest) -> bytes:
        metadata = {**model.about, safetensors_header.MANIFEST: compact(manifest.as_json())}
        return safetensors_header.write(_tensors(model, name, mlx_name, 0, 1), metadata, alignment)

    tensors = _tensors(model, name, mlx_name, len(head(blank("safetensors", model, alignment))), 1)
    return _stacked(model, name, tensors, tensors[-1].end, alignment, head, "safetensors")


def _gguf(model: Model, name: str, alignment: int) -> Plan:
    """Every tensor begins on the alignment, as the header says, and is padded to it."""

    def head(manifest: Manifest) -> bytes:
        tensors = _tensors(model, name, gguf_name, 0, alignment)
        return gguf_writing.write(tensors, model, compact(manifest.as_json()), alignment)

    tensors = _tensors(model, name, gguf_name, len(head(blank("gguf", model, alignment))), alignment)
    return _stacked(model, name, tensors, round_up(tensors[-1].end, alignment), alignment, head, "gguf")


_PLANS: dict[str, Callable[[Model, str, int], Plan]] = {
    "layers": _layers,
    "blocks": _blocks,
    "safetensors": _safetensors,
    "gguf": _gguf,
}
