"""Stacked tensors: from the tensors that a header lists to where every record lies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd

from expertcache_reference.stores.names import order, role
from expertcache_reference.stores.store import Part
from expertcache_reference.stores.tensors import Tensor
from expertcache_spec.layout import Extent, Layout, Shape
from expertcache_spec.layout.files import WrongFile
from expertcache_spec.model import Key

_LARGEST = 2**20
"""The alignment that is stated where every offset is a multiple of more."""
_MOST = 2**20
"""Most records; the largest models have 23,424."""

Held = dict[int, dict[str, dict[int | None, Tensor]]]
"""Layer, part, and expert (None: all of them stacked) to the tensor that holds it."""


def held(tensors: Iterable[Tensor], where: str) -> Held:
    """The tensors of routed experts by what they hold; raises `WrongFile` where two hold the same, or none does."""
    found: Held = {}
    for tensor in tensors:
        of = role(tensor.name)
        if of is None:
            continue
        of_part = found.setdefault(of.layer, {}).setdefault(of.part, {})
        if of.expert in of_part or (of_part and (None in of_part or of.expert is None)):
            raise _wrong(f"{tensor.name} and {next(iter(of_part.values())).name} hold the same", where)
        of_part[of.expert] = tensor
    if not found:
        raise WrongFile("holds no tensors of routed experts", where=where, cure="name a mixture-of-experts model")
    return {layer: {part: found[layer][part] for part in sorted(found[layer], key=order)} for layer in sorted(found)}


def experts_of(tensors: Held, where: str) -> int:
    """How many experts the layers have; raises `WrongFile` unless all parts of all layers have as many."""
    counts: dict[int, str] = {}
    for layer, parts in tensors.items():
        for part, of in parts.items():
            stacked = of.get(None)
            count = len(of) if stacked is None else (stacked.shape or (0,))[0]
            if count < 1 or (stacked is None and set(of) != set(range(count))):
                raise _wrong(f"layer {layer} does not hold {part} of every expert", where)
            if stacked is not None and stacked.bytes % count:
                raise _wrong(f"{stacked.name}: {stacked.bytes} bytes are not {count} experts", where)
            counts.setdefault(count, f"layer {layer} {part}")
    if max(counts) * len(tensors) > _MOST:
        raise _wrong(f"{max(counts)} experts in {len(tensors)} layers", where)
    if len(counts) > 1:
        said = ", ".join(f"{count} in {place}" for count, place in counts.items())
        raise _wrong(f"layers of different numbers of experts: {said}", where)
    return next(iter(counts))


def parts_of(tensors: Held, experts: int, where: str) -> dict[int, tuple[Part, ...]]:
    """The parts of a record of each layer; raises `WrongFile` where experts of one layer differ in them."""
    return {
        layer: tuple(_part(name, of, experts, where) for name, of in parts.items()) for layer, parts in tensors.items()
    }


def _part(name: str, of: Mapping[int | None, Tensor], experts: int, where: str) -> Part:
    stacked = of.get(None)
    if stacked is not None:
        found = Part(name, stacked.dtype, stacked.shape[1:], stacked.bytes // experts)
    else:
        kinds = {Part(name, tensor.dtype, tensor.shape, tensor.bytes) for tensor in of.values()}
        if len(kinds) > 1:
            raise _wrong(f"{of[0].name}: not the dtype and shape of the other experts", where)
        found = kinds.pop()
    if found.bytes < 1:
        raise _wrong(f"{name} without bytes", where)
    return found


def layout_of(shape: Shape, tensors: Held, files: Mapping[str, int]) -> Layout:
    """The layout of records whose parts lie in these tensors; it states the alignment that the offsets have."""
    places = {key: tuple(_extents(key, tensors[key.layer], shape)) for key in shape.keys()}  # noqa: SIM118
    offsets = (extent.offset for found in places.values() for extent in found)
    name = "stacked-tensors" if any(None in of for parts in tensors.values() for of in parts.values()) else "tensors"
    used = {extent.file for found in places.values() for extent in found}
    sizes = {file: size for file, size in files.items() if file in used}
    return Layout(name, shape, places.__getitem__, sizes, gcd(_LARGEST, *offsets), blocks=places.__getitem__)


def _extents(key: Key, parts: Mapping[str, Mapping[int | None, Tensor]], shape: Shape) -> Iterable[Extent]:
    for part, size in shape.parts[key.layer].items():
        stacked = parts[part].get(None)
        if stacked is not None:
            yield Extent(stacked.file, stacked.offset + key.expert * size, size)
        else:
            yield Extent(parts[part][key.expert].file, parts[part][key.expert].offset, size)


def _wrong(what: str, where: str) -> WrongFile:
    return WrongFile(what, where=where, cure="the file is damaged, or of a model that is not supported")
