"""Every policy of the specification, by name: its rule, its indexed form, what it needs.

A policy module has a docstring in fixed order (what it is, state, order, transitions, laws, engines that differ), the
rule, the indexed form, and its `CARD`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, get_args

from expertcache_spec.errors import NeedsFuture, UnknownName
from expertcache_spec.eviction import belady, classical, counting, engines, fifo, lfu, lru, predictive
from expertcache_spec.eviction.base import Declarative, Past, Policy
from expertcache_spec.eviction.cards import Card, Future, Parameter, PolicyFactory, Value, factory
from expertcache_spec.trace import Event

Form = Literal["indexed", "declarative"]

_FAMILIES = (counting, classical, engines, predictive)

POLICIES: Mapping[str, Card] = MappingProxyType(
    {
        card.name: card
        for card in (
            fifo.CARD,
            lru.CARD,
            *lfu.CARDS,
            *(card for family in _FAMILIES for card in family.CARDS),
            belady.CARD,
        )
    }
)
"""Policy name to card."""


def card(policy: str | Card) -> Card:
    """The card of a policy, or the card itself; raises `UnknownName`, listing the known ones (XC-EVICT-001)."""
    if isinstance(policy, Card):
        return policy
    try:
        return POLICIES[policy]
    except KeyError:
        raise UnknownName(f"policy {policy!r}", where="policy", cure=f"one of {', '.join(POLICIES)}") from None


def make(
    policy: str | Card,
    form: Form = "indexed",
    future: Sequence[Event] | None = None,
    parameters: Mapping[str, Value] | None = None,
) -> PolicyFactory:
    """A factory of fresh policies, one for each partition of one machine.

    `policy` is a name or a card of one's own. `future` is every event of the replay in order; offline policies raise
    `NeedsFuture` without it. Raises `UnknownName` for a policy, form or parameter that does not exist.
    """
    found = card(policy)
    if form not in get_args(Form):
        raise UnknownName(f"form {form!r} of a policy", where="policy", cure=f"one of {', '.join(get_args(Form))}")
    if found.offline and future is None:
        raise NeedsFuture(
            f"policy {found.name} must know the future", where="policy", cure="replay a whole trace, not a stream"
        )
    build = found.indexed if form == "indexed" else found.declared
    return factory(found, build, found.complete(parameters), future or ())


__all__ = [
    "POLICIES",
    "Card",
    "Declarative",
    "Form",
    "Future",
    "Parameter",
    "Past",
    "Policy",
    "PolicyFactory",
    "Value",
    "card",
    "make",
]
