"""Layers: how far a layer is from the one that runs, and residents filed by layer so that the farthest is at hand."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Any

import attrs

from expertcache_spec.eviction.base import first_free
from expertcache_spec.eviction.index import Heap
from expertcache_spec.model import Key


def nearness(distance: str, layer: int, here: int, layers: int) -> tuple[int, ...]:
    """A rank of `layer` while `here` runs, the farthest least (XC-EVICT-211). `layers`: how many a pass walks.

    linear: how many layers away, either way. circular: the shorter way round. ahead: how long until the layer runs
    again, 0 for the one that runs. first: the lowest layer is the farthest. none: all are alike.
    """
    around = (layer - here) % layers
    ranks: dict[str, tuple[int, ...]] = {
        "linear": (-abs(layer - here),),
        "circular": (-min(around, layers - around),),
        "ahead": (-around,),
        "first": (layer,),
        "none": (),
    }
    return ranks[distance]


@attrs.define(slots=False)
class Queue:
    """Keys in the order in which they were filed, for ranks that only grow; `index.Heap` is for the others.

    newest: whether the last filed goes first.
    """

    newest: bool = False
    filed: OrderedDict[Key, Any] = attrs.field(factory=OrderedDict)
    """Key to its rank."""

    def file(self, key: Key, rank: Any) -> None:
        """Put the key at the end."""
        self.filed[key] = rank
        self.filed.move_to_end(key)

    def first(self, held: Collection[Key]) -> Key | None:
        """The key that goes first of those that nothing holds."""
        return first_free(reversed(self.filed) if self.newest else self.filed, held)


@attrs.define(slots=False)
class ByLayer:
    """Queues of residents, each in parts by layer; `first` walks the parts in the order that `place` ranks them.

    make: an empty part. place: (queue, layer) to its rank while a layer runs; it may depend on nothing else but `here`
    and `layers`. apart: whether layers are told apart at all.
    """

    make: Callable[[], Queue | Heap]
    place: Callable[[int, int], tuple[int, ...]]
    apart: bool = True
    here: int = 0
    layers: int = 1
    parts: tuple[dict[int, Queue | Heap], ...] = attrs.field(factory=lambda: ({}, {}))
    """For each queue, its parts by layer."""
    order: dict[int, list[list[Queue | Heap]]] = attrs.field(factory=dict)
    """Running layer to the groups of parts of equal rank, in order; computed when first needed."""

    @property
    def filed(self) -> dict[Key, Any]:
        """Every key that is filed, with its rank."""
        return {key: rank for parts in self.parts for part in parts.values() for key, rank in part.filed.items()}

    def part(self, queue: int, key: Key) -> Queue | Heap:
        """The part of the queue that the key belongs to."""
        layer = key[0] if self.apart else 0
        found = self.parts[queue].get(layer)
        if found is None:
            found = self.parts[queue][layer] = self.make()
            self.order.clear()
        return found

    def append(self, source: int, target: int) -> None:
        """Put all of one queue behind the other, layer by layer, in its order."""
        for layer, part in self.parts[source].items():
            behind = self.part(target, Key(layer, 0))
            if isinstance(behind, Queue):
                behind.filed.update(part.filed)
            else:
                for key, rank in part.filed.items():
                    behind.file(key, rank)
            part.filed.clear()

    def move_to(self, layer: int) -> None:
        """That layer runs."""
        self.here = layer
        self.reach(layer)

    def reach(self, layer: int) -> None:
        """There is such a layer."""
        if layer >= self.layers:
            self.layers = layer + 1
            self.order.clear()

    def first(self, held: Collection[Key]) -> Key | None:
        """The least key that nothing holds."""
        for group in self.order.get(self.here) or self._groups():
            heads = [(part.filed[key], key) for part in group if part.filed and (key := part.first(held)) is not None]
            if heads:
                return min(heads)[1]
        return None

    def _groups(self) -> list[list[Queue | Heap]]:
        ranked: dict[tuple[int, ...], list[Queue | Heap]] = {}
        for queue, parts in enumerate(self.parts):
            for layer, part in parts.items():
                ranked.setdefault(self.place(queue, layer), []).append(part)
        found = self.order[self.here] = [ranked[rank] for rank in sorted(ranked)]
        return found
