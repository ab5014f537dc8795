"""Policies of counts and of time: aged LFU, LFRU, heat-protected LRU, use classes, windows, static sets, chance."""

from __future__ import annotations

from expertcache_spec.eviction.cards import Card

CARDS: tuple[Card, ...] = ()
