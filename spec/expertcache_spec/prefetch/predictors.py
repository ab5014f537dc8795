"""Predictors from what was routed: none, the previous token of the layer, pairs of adjacent layers, the oracle.

A predictor sees each event once it is routed, and answers for the routed layer that is `distance` layers on: the
experts it expects there, best first. `distance` 1 is the next layer; past the last layer it is the next pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import attrs

from expertcache_spec.model import Geometry
from expertcache_spec.trace import Event


class Target(NamedTuple):
    """The event that a prediction is for."""

    stream: int
    pass_index: int
    layer: int


def target_of(event: Event) -> Target:
    """What the event is, as a target."""
    return Target(event.stream, event.pass_index, event.layer)


def ahead(geometry: Geometry, event: Event, distance: int) -> Target:
    """The event of the same stream that comes `distance` routed layers after this one."""
    routed = geometry.routed
    passes, place = divmod(routed.index(event.layer) + distance, len(routed))
    return Target(event.stream, event.pass_index + passes, routed[place])


def fetched(top_k: int, overfetch: float) -> int:
    """How many experts a router's top-k becomes: k times the factor, halves rounded up (XC-PREFETCH-003)."""
    return int(top_k * overfetch + 0.5)


class Predictor:
    """Predictor `none`, and the base of the others: expects nothing."""

    def learn(self, event: Event) -> None:
        """The event was routed; called once for each, before it is predicted from."""

    def predict(self, event: Event, target: Target, distance: int) -> Sequence[int] | None:
        """Experts expected at the target, best first, without repeats; None where nothing is known."""
        return None


@attrs.define
class PreviousToken(Predictor):
    """Predictor `previous-token`: what the stream's latest pass asked of that layer (XC-PREFETCH-001).

    State: one event for each stream and layer.
    """

    geometry: Geometry
    latest: dict[tuple[int, int], Event] = attrs.field(factory=dict)

    def learn(self, event: Event) -> None:
        """Remember the event."""
        self.latest[event.stream, event.layer] = event

    def predict(self, event: Event, target: Target, distance: int) -> Sequence[int] | None:
        """Its experts, in the order of first appearance."""
        found = self.latest.get((target.stream, target.layer))
        return None if found is None else [key.expert for key in found.keys]


@attrs.define
class PairTable(Predictor):
    """Predictor `pair-table`: which expert of the next layer follows which, counted online (XC-PREFETCH-002).

    Tokens are paired within a stream and a pass. Each expert keeps the counts of at most `partners` followers; when one
    more appears, every count falls by one and those at zero leave (Misra and Gries), so the table is bounded by layers
    x experts x partners. A prediction sums the counts of a token's experts, the highest first, then the lowest id;
    several layers ahead it is made from the prediction before.
    """

    geometry: Geometry
    partners: int = 16
    overfetch: float = 1.0
    latest: dict[int, Event] = attrs.field(factory=dict)
    table: dict[tuple[int, int], dict[int, int]] = attrs.field(factory=dict)

    def learn(self, event: Event) -> None:
        """Pair each token's experts with those that it asked the layer before for."""
        before, self.latest[event.stream] = self.latest.get(event.stream), event
        if before is None or len(before.rows) != len(event.rows):
            return
        if ahead(self.geometry, before, 1) != target_of(event) or before.pass_index != event.pass_index:
            return
        for row, following in zip(before.rows, event.rows, strict=True):
            for expert in row:
                self._count(self.table.setdefault((before.layer, expert), {}), following)

    def _count(self, counts: dict[int, int], following: Sequence[int]) -> None:
        for expert in following:
            if expert in counts or len(counts) < self.partners:
                counts[expert] = counts.get(expert, 0) + 1
                continue
            for other in list(counts):
                counts[other] -= 1
                if not counts[other]:
                    del counts[other]

    def predict(self, event: Event, target: Target, distance: int) -> Sequence[int] | None:
        """The most counted followers, for each token; nothing beyond the last layer."""
        if target.pass_index != event.pass_index:
            return None
        routed = self.geometry.routed
        place = routed.index(event.layer)
        found: dict[int, None] = {}
        for row in event.rows:
            expected = list(row)
            for layer in routed[place : place + distance]:
                expected = self._followers(layer, expected)
            found.update(dict.fromkeys(expected))
        return list(found) or None

    def _followers(self, layer: int, experts: Sequence[int]) -> list[int]:
        sums: dict[int, int] = {}
        for expert in experts:
            for follower, count in self.table.get((layer, expert), {}).items():
                sums[follower] = sums.get(follower, 0) + count
        ranked = sorted(sums, key=lambda expert: (-sums[expert], expert))
        return ranked[: fetched(self.geometry.top_k, self.overfetch)]


@attrs.define
class Oracle(Predictor):
    """Predictor `oracle`: what the target will ask for. The upper bound; it needs the future (XC-PREFETCH-006)."""

    geometry: Geometry
    future: Mapping[Target, Event]

    def predict(self, event: Event, target: Target, distance: int) -> Sequence[int] | None:
        """The target's experts."""
        found = self.future.get(target)
        return None if found is None else [key.expert for key in found.keys]
