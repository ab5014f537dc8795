"""Policies that predict the next use from the past: hazard, popularity, rank, streak, frequency, interval, reuse."""

from __future__ import annotations

from expertcache_spec.eviction.cards import Card

CARDS: tuple[Card, ...] = ()
