"""Predictors from gate scores: a later layer's gate, applied to the present hidden state.

The scores are the trace's (`Event.lookahead`): a replay has no hidden state to apply a gate to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import attrs
from sortedcontainers import SortedList

from expertcache_spec.errors import InvalidTrace
from expertcache_spec.model import Geometry
from expertcache_spec.prefetch.predictors import Predictor, Target, fetched
from expertcache_spec.trace import Event, Matrix


def scores_of(event: Event, distance: int) -> Matrix | None:
    """The scores for the layer `distance` ahead, rows x experts; None for a layer that the trace does not look to.

    Raises `InvalidTrace` for an event that looks ahead nowhere.
    """
    if event.lookahead is None:
        raise InvalidTrace(
            "no lookahead scores, which a gate predictor reads",
            where=f"stream {event.stream} pass {event.pass_index} layer {event.layer}",
            cure="record the next layers' gates on this hidden state, or choose another predictor",
        )
    return event.lookahead[distance - 1] if distance <= len(event.lookahead) else None


def ranked(scores: Sequence[float]) -> list[int]:
    """Experts by score, the highest first; equal scores by id."""
    return sorted(range(len(scores)), key=lambda expert: (-scores[expert], expert))


@attrs.define
class GateTopK(Predictor):
    """Predictor `gate-top-k`: the k times `overfetch` highest scores of each token (XC-PREFETCH-003)."""

    geometry: Geometry
    overfetch: float = 1.0

    def predict(self, event: Event, target: Target, distance: int) -> Sequence[int] | None:
        """The union over tokens, in token order."""
        scores = scores_of(event, distance)
        if scores is None:
            return None
        count = fetched(self.geometry.top_k, self.overfetch)
        return list(dict.fromkeys(expert for row in scores for expert in ranked(row)[:count]))


@attrs.define
class GatePercentile(Predictor):
    """Predictor `gate-percentile`: every expert whose score exceeds a threshold (XC-PREFETCH-004).

    pool `own_layer`: the percentile of the token's own scores, a constant count. `running_global`: that of the last
    `history` scores of all layers and streams, these included, so that the count adapts. `fixed`: `threshold`. The
    percentile p of n scores is number p * (n - 1) // 100 of them, counted from 0 upwards. Where layers share a pool,
    their scores must be comparable: record them after the softmax.
    """

    geometry: Geometry
    percentile: int = 80
    pool: str = "own_layer"
    threshold: float = 0.0
    history: int = 65_536
    order: deque[float] = attrs.field(factory=deque)
    pooled: SortedList = attrs.field(factory=SortedList)

    def predict(self, event: Event, target: Target, distance: int) -> Sequence[int] | None:
        """The union over tokens, each token's experts by falling score."""
        scores = scores_of(event, distance)
        if scores is None:
            return None
        if self.pool == "running_global":
            for row in scores:
                self._remember(row)
        above = {
            expert: None
            for row in scores
            for limit in (self._limit(row),)
            for expert in ranked(row)
            if row[expert] > limit
        }
        return list(above)

    def _remember(self, row: Sequence[float]) -> None:
        self.order.extend(row)
        self.pooled.update(row)
        while len(self.order) > self.history:
            self.pooled.remove(self.order.popleft())

    def _limit(self, row: Sequence[float]) -> float:
        if self.pool == "fixed":
            return self.threshold
        values = self.pooled if self.pool == "running_global" else sorted(row)
        return float(values[self.percentile * (len(values) - 1) // 100])
