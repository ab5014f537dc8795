"""Policies of the caching literature: CLOCK and CLOCK-LRU-K, SLRU, ARC, 2Q, S3-FIFO, SIEVE."""

from __future__ import annotations

from expertcache_spec.eviction.cards import Card

CARDS: tuple[Card, ...] = ()
