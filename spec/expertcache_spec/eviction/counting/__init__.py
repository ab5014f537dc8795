"""Policies of counts and of time: aged LFU, LFRU, heat-protected LRU, use classes, windows, static sets, chance."""

from __future__ import annotations

from expertcache_spec.eviction.cards import Card
from expertcache_spec.eviction.counting import class_lru, heat_lru, lfru, lfru_heat, lfu_aged, random, static, window

CARDS: tuple[Card, ...] = (
    lfu_aged.CARD,
    lfru.CARD,
    lfru_heat.CARD,
    heat_lru.CARD,
    class_lru.CARD,
    window.CARD,
    static.CARD,
    random.CARD,
)
