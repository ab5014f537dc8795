"""Records: where each lies in the files, how it is read, and which of its bytes a stage of the work needs."""

from __future__ import annotations

from collections.abc import Hashable

from expertcache_reference.reader import Request, Stages
from expertcache_reference.slots import Slot
from expertcache_spec.errors import InvalidModel
from expertcache_spec.fanout import Chunk
from expertcache_spec.layout.placing import Layout
from expertcache_spec.model import Geometry, Key

DOWN = "down"
"""Parts whose name begins so are what the second stage of an expert reads; all others are the first stage's."""


class Records:
    """The records of a layout, as requests.

    staged: whether the bytes of the first stage are read before those of the second. Raises `InvalidModel` where the
    sizes that the cache would be charged for are not those that would be read.
    """

    def __init__(self, layout: Layout, geometry: Geometry, chunks: int, *, staged: bool) -> None:
        self.layout, self.chunks = layout, chunks
        self.sizes = {
            layer: layout.shape.record_bytes(layer) for layer in geometry.routed if layer in layout.shape.parts
        }
        for layer in geometry.routed:
            charged = None if geometry.record_bytes is None else geometry.record_bytes[layer]
            if self.sizes.get(layer) != charged or geometry.experts != layout.shape.experts:
                raise InvalidModel(
                    f"layer {layer} has records of {charged} bytes, the layout places {self.sizes.get(layer)}",
                    where="store",
                    cure="give the geometry of the layout's own model",
                )
        self._stages = {layer: self._stages_of(layer) if staged else () for layer in self.sizes}
        self._places = layout.extents
        for key, extents in self._places.items():
            if key.layer in self.sizes and sum(extent.length for extent in extents) != self.sizes[key.layer]:
                raise InvalidModel(f"the extents of {key} are not its record", where="store", cure="pack it again")

    def _stages_of(self, layer: int) -> Stages:
        """The runs of each stage, neighbours as one run."""
        runs: tuple[list[Chunk], list[Chunk]] = [], []
        start = 0
        for name, size in self.layout.shape.parts[layer].items():
            stage = runs[name.startswith(DOWN)]
            if stage and stage[-1].offset + stage[-1].length == start:
                stage[-1] = stage[-1]._replace(length=stage[-1].length + size)
            else:
                stage.append(Chunk(start, size))
            start += size
        return runs

    def request(self, key: Key, slot: Slot, name: Hashable | None = None) -> Request:
        """The request that reads the record into the slot, under its key unless it has another name."""
        known = key if name is None else name
        return Request(known, self._places[key], slot.view, self.chunks, self._stages[key.layer])
