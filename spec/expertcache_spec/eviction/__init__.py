"""Every policy of the specification, by name: its rule, its indexed form, what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, get_args

import attrs

from expertcache_spec.errors import NeedsFuture, UnknownName
from expertcache_spec.eviction import belady, fifo, lfu, lru
from expertcache_spec.eviction.base import Declarative, Order, Past, Policy
from expertcache_spec.trace import Event

Form = Literal["indexed", "declarative"]


@attrs.frozen(slots=False)
class Card:
    """One named policy: the order function that states it and the class that indexes it.

    `rule` is the id of the rule that states the victim; `offline` policies need the future requests; `can_refuse`
    says whether admission `refusable` is defined for it.
    """

    name: str
    rule: str
    order: Order
    indexed: Callable[..., Policy]
    summary: str
    source: str
    cost: str
    offline: bool = False
    can_refuse: bool = False


POLICIES: Mapping[str, Card] = MappingProxyType(
    {
        card.name: card
        for card in (
            Card("fifo", "XC-EVICT-010", fifo.order, fifo.Fifo, "first inserted, first evicted",
                 "classical; what a broken LRU becomes", "O(1)"),
            Card("lru", "XC-EVICT-020", lru.order, lru.Lru, "least recently touched",
                 "BigMoeOnEdge, Mixtral-offloading, mlx-lm #1588, llama.cpp plan cache", "O(1)"),
            Card("lfu", "XC-EVICT-030", lfu.order, lfu.Lfu, "least often asked for, counts kept across evictions",
                 "BigMoeOnEdge; arXiv 2608.07911", "O(log resident)"),
            Card("lfu-reset", "XC-EVICT-040", lfu.order_reset, lfu.LfuReset, "least often used since its insert",
                 "MoE-Infinity, libCacheSim, cachetools", "O(log resident)"),
            Card("belady", "XC-EVICT-050", belady.order, belady.Belady, "latest next use: the offline bound",
                 "Belady 1966; batch form after BigMoeOnEdge and arXiv 2608.07911", "O(log resident)",
                 offline=True, can_refuse=True),
        )
    }
)  # fmt: skip
"""Policy name to card."""


def card(name: str) -> Card:
    """The card of a policy; raises `UnknownName`, listing the known ones (XC-EVICT-001)."""
    try:
        return POLICIES[name]
    except KeyError:
        raise UnknownName(f"policy {name!r}", where="policy", cure=f"one of {', '.join(POLICIES)}") from None


def make(name: str, form: Form = "indexed", future: Sequence[Event] | None = None) -> Callable[[], Policy]:
    """A factory of fresh policies, one for each partition of one machine.

    `future` is every event of the replay in order; offline policies raise `NeedsFuture` without it. Raises
    `UnknownName` for a policy or form that does not exist.
    """
    found = card(name)
    if form not in get_args(Form):
        raise UnknownName(f"form {form!r} of a policy", where="policy", cure=f"one of {', '.join(get_args(Form))}")
    if found.offline and future is None:
        raise NeedsFuture(
            f"policy {name} must know the future", where="policy", cure="replay a whole trace, not a stream"
        )
    if form == "declarative":
        ahead = list(future or ()) if found.offline else None
        return lambda: Declarative(found.order, Past(future=ahead), can_refuse=found.can_refuse)
    if found.offline:
        uses, coming = belady.next_uses(future or ()), belady.by_layer(future or ())
        return lambda: found.indexed(uses, coming)
    return found.indexed


__all__ = ["POLICIES", "Card", "Declarative", "Form", "Past", "Policy", "card", "make"]
