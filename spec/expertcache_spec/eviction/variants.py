"""Variants: policies that differ from a known one in one sentence, as implementations get them wrong.

Each names the rule that it breaks. They are candidates when an implementation or a log must be identified
("sold as LFU, breaks ties by insertion"), never policies that anybody should choose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from expertcache_spec.eviction import POLICIES, fifo, lfu, lru
from expertcache_spec.eviction.base import Past, Policy, by_order
from expertcache_spec.eviction.cards import Card
from expertcache_spec.model import Key


@attrs.frozen
class Variant:
    """A changed rule: which policy it is sold as, the rule that it breaks, what it does (after "it"), and its form.

    build: takes the parameters of the policy by name. is_known: the changed rule is another policy of the
    specification.
    """

    policy: str
    rule: str
    words: str
    build: Callable[..., Policy]
    is_known: bool = False

    @property
    def card(self) -> Card:
        """The variant as a policy, in its declarative form only."""
        sold_as = POLICIES[self.policy]
        return attrs.evolve(
            sold_as, name=f"{self.policy}, but {self.words}", rule=self.rule, declared=self.build, indexed=self.build,
            summary=self.words, cost="O(resident)",
        )  # fmt: skip


def _order(
    policy: str, rule: str, words: str, order: Callable[[Past, Key], tuple[Any, ...]], *, is_known: bool = False
) -> Variant:
    return Variant(policy, rule, words, by_order(order), is_known)


def insert_at_the_old_end(past: Past, key: Key) -> tuple[Any, ...]:
    """LRU, but what was inserted and not touched since comes before everything else, the latest first."""
    fresh = past.uses[key] == 1
    return (not fresh, -past.touched[key] if fresh else past.touched[key])


VARIANTS: tuple[Variant, ...] = (
    _order("fifo", "XC-EVICT-010", "is LRU", lru.order, is_known=True),
    _order("lru", "XC-EVICT-021", "is FIFO: a hit does not refresh", fifo.order, is_known=True),
    _order("lru", "XC-EVICT-022", "inserts at the least recent end", insert_at_the_old_end),
    _order("lfu", "XC-EVICT-031", "drops the count at eviction", lfu.order_reset, is_known=True),
    _order("lfu", "XC-EVICT-032", "breaks ties by insertion", lambda p, k: (p.requests[k], p.inserted[k])),
    _order("lfu", "XC-EVICT-032", "breaks ties to the newest", lambda p, k: (p.requests[k], -p.touched[k])),
    _order("lfu", "XC-EVICT-033", "stops counting at 15", lambda p, k: (min(15, p.requests[k]), p.touched[k])),
    _order("lfu", "XC-EVICT-033", "counts hits only",
            lambda p, k: (p.requests[k] - p.inserts[k], p.touched[k])),
    _order("lfu-reset", "XC-EVICT-041", "keeps the count across evictions", lfu.order, is_known=True),
    _order("lfu-reset", "XC-EVICT-042", "breaks ties by insertion", lambda p, k: (p.uses[k], p.inserted[k])),
    _order("lfu-reset", "XC-EVICT-042", "breaks ties to the newest", lambda p, k: (p.uses[k], -p.touched[k])),
)  # fmt: skip
"""Every variant, by the policy that it is mistaken for."""
