"""Variants: policies that differ from a known one in one sentence, as implementations get them wrong.

Each names the rule that it breaks. They are candidates when an implementation or a log must be identified
("sold as LFU, breaks ties by insertion"), never policies that anybody should choose.
"""

from __future__ import annotations

from typing import Any

import attrs

from expertcache_spec.eviction import POLICIES, fifo, lfu, lru
from expertcache_spec.eviction.base import Order, Past, by_order
from expertcache_spec.eviction.cards import Card
from expertcache_spec.model import Key


@attrs.frozen
class Variant:
    """A changed order: which policy it is sold as, the rule that it breaks, and what it does, after "it"."""

    policy: str
    rule: str
    words: str
    order: Order
    is_known: bool = False
    """Whether the changed order is another policy of the specification."""

    @property
    def card(self) -> Card:
        """The variant as a policy, in its declarative form only."""
        build = by_order(self.order)
        known = POLICIES[self.policy]
        return Card(
            f"{self.policy}, but {self.words}", self.rule, build, build, self.words, known.source, "O(resident)"
        )


def insert_at_the_old_end(past: Past, key: Key) -> tuple[Any, ...]:
    """LRU, but what was inserted and not touched since comes before everything else, the latest first."""
    fresh = past.uses[key] == 1
    return (not fresh, -past.touched[key] if fresh else past.touched[key])


VARIANTS: tuple[Variant, ...] = (
    Variant("fifo", "XC-EVICT-010", "is LRU", lru.order, is_known=True),
    Variant("lru", "XC-EVICT-021", "is FIFO: a hit does not refresh", fifo.order, is_known=True),
    Variant("lru", "XC-EVICT-022", "inserts at the least recent end", insert_at_the_old_end),
    Variant("lfu", "XC-EVICT-031", "drops the count at eviction", lfu.order_reset, is_known=True),
    Variant("lfu", "XC-EVICT-032", "breaks ties by insertion", lambda p, k: (p.requests[k], p.inserted[k])),
    Variant("lfu", "XC-EVICT-032", "breaks ties to the newest", lambda p, k: (p.requests[k], -p.touched[k])),
    Variant("lfu", "XC-EVICT-033", "stops counting at 15", lambda p, k: (min(15, p.requests[k]), p.touched[k])),
    Variant("lfu", "XC-EVICT-033", "counts hits only",
            lambda p, k: (p.requests[k] - p.inserts[k], p.touched[k])),
    Variant("lfu-reset", "XC-EVICT-041", "keeps the count across evictions", lfu.order, is_known=True),
    Variant("lfu-reset", "XC-EVICT-042", "breaks ties by insertion", lambda p, k: (p.uses[k], p.inserted[k])),
    Variant("lfu-reset", "XC-EVICT-042", "breaks ties to the newest", lambda p, k: (p.uses[k], -p.touched[k])),
)  # fmt: skip
"""Every variant, by the policy that it is mistaken for."""
