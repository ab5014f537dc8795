"""Policies that predict the next use from the past: hazard, popularity, rank, streak, frequency, interval, reuse."""

from __future__ import annotations

from expertcache_spec.eviction.cards import Card
from expertcache_spec.eviction.predictive import (
    ewma_interval,
    hazard,
    last_rank,
    popularity,
    recent_frequency,
    semi_markov,
    streak,
)

CARDS: tuple[Card, ...] = (
    hazard.CARD,
    popularity.CARD,
    last_rank.CARD,
    streak.CARD,
    recent_frequency.CARD,
    ewma_interval.CARD,
    semi_markov.CARD,
)
