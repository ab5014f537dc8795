"""Policies of expert-streaming engines and papers: route hotness, Least-Stale, farthest layer, gate score, FineMoE."""

from __future__ import annotations

from expertcache_spec.eviction.cards import Card
from expertcache_spec.eviction.engines import farthest_layer, least_stale, probability_visits, route_hotness, score

CARDS: tuple[Card, ...] = (
    route_hotness.CARD,
    least_stale.CARD,
    farthest_layer.CARD,
    score.CARD,
    probability_visits.CARD,
)
