"""Policies of expert-streaming engines and papers: route hotness, Least-Stale, farthest layer, gate score, FineMoE."""

from __future__ import annotations

from expertcache_spec.eviction.cards import Card

CARDS: tuple[Card, ...] = ()
