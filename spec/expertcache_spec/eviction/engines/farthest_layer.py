"""Farthest layer: evict from the layer that is farthest from the one that runs.

What it is: FLD, a baseline of SpecMD: position alone, whatever the use.
State: the layer that runs; the stamp of each resident's latest touch.
Order: distance of the key's layer from the running one, falling; then the stamp of the latest touch, rising.
Transitions: every event moves the running layer; hits and inserts stamp. A pass boundary changes nothing.
Laws: under scope `layer` all distances are 0 and it is `lru`. With distance `ahead` it keeps what is next to run and
gives up what has just run, so it has no cliff; recency within a layer never outweighs the layer. Under touch `router` a
stack policy.
Engines that differ: the paper says neither whether the distance is linear or goes round (`distance`), nor how ties
are broken, nor what a prefetch does; here it stamps as an insert does. rustane's plan evicts from the lowest layer:
`least-stale` with order `layer` and no generations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from expertcache_spec.eviction.base import Policy
from expertcache_spec.eviction.cards import Card, Parameter, Value
from expertcache_spec.eviction.engines.layers import ByLayer, Queue, nearness
from expertcache_spec.eviction.engines.scan import Scan
from expertcache_spec.model import Geometry, Key
from expertcache_spec.trace import Event


@attrs.define(slots=False)
class Declared(Scan):
    """The rule (XC-EVICT-210)."""

    distance: str = attrs.field(kw_only=True)
    layers: int = attrs.field(kw_only=True)
    here: int = 0
    reached: int = 1

    def rank(self, key: Key) -> tuple[Any, ...]:
        """The farthest layer first, the least recent of it."""
        return (*nearness(self.distance, key.layer, self.here, self.layers or self.reached), self.touched[key])

    def begin(self, event: Event) -> None:
        """That layer runs."""
        self.here, self.reached = event.layer, max(self.reached, event.layer + 1)

    def insert(self, key: Key, now: int) -> None:
        """Stamp the key; its layer exists."""
        super().insert(key, now)
        self.reached = max(self.reached, key.layer + 1)


@attrs.define(slots=False)
class FarthestLayer(Policy):
    """The indexed form: a queue for each layer, walked from the farthest."""

    name: ClassVar[str] = "farthest-layer"
    stamped: ClassVar[bool] = False
    distance: str = attrs.field(kw_only=True)
    layers: int = attrs.field(kw_only=True)
    index: ByLayer = attrs.field(init=False)
    touches: int = 0

    def __attrs_post_init__(self) -> None:
        self.index = ByLayer(Queue, self._place)

    def _place(self, queue: int, layer: int) -> tuple[int, ...]:
        return nearness(self.distance, layer, self.index.here, self.layers or self.index.layers)

    def begin(self, event: Event) -> None:
        """That layer runs."""
        self.index.move_to(event.layer)

    def insert(self, key: Key, now: int) -> None:
        """Append to its layer."""
        self.index.reach(key.layer)
        self.settle((key,))

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Nothing yet: `settle` appends."""

    inserts = hits

    def settle(self, keys: Sequence[Key]) -> None:
        """Append each to its layer, in touch order."""
        for key in keys:
            self.touches += 1
            self.index.part(0, key).file(key, self.touches)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least recent key of the farthest layer that has one."""
        return self.index.first(held)

    def evict(self, key: Key) -> None:
        """Leave its layer."""
        del self.index.part(0, key).filed[key]


def _objections(values: Mapping[str, Value], model: Geometry | None) -> Iterator[tuple[str, str]]:
    layers = int(values["layers"])
    if model is not None and 0 < layers <= model.routed[-1]:
        yield f"layers {layers}, and the model has a layer {model.routed[-1]}", f"0, or from {model.routed[-1] + 1}"


CARD = Card(
    "farthest-layer",
    "XC-EVICT-210",
    Declared,
    FarthestLayer,
    "in the farthest layer, the least recently touched",
    "SpecMD (arXiv 2602.03921), baseline FLD",
    "O(log resident), O(layers) for a victim",
    (
        Parameter("distance", "linear", "how far a layer is", ("linear", "circular", "ahead")),
        Parameter("layers", 0, "how many layers a pass walks; 0 is one more than the highest seen", least=0),
    ),
    objections=_objections,
)
