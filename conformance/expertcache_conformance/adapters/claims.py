"""Claims about policies: names with parameters, and cards of one's own, as a profile spells them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from expertcache_spec.errors import UnknownName
from expertcache_spec.eviction import POLICIES, Card, Value
from expertcache_spec.eviction.spelling import parse

Parameters = Mapping[str, Value]


def card_of(policy: str) -> Card:
    """The card that a claimed policy names: one of the specification, or `module:ATTRIBUTE`; raises `UnknownName`."""
    return POLICIES[policy] if policy in POLICIES else parse(policy).card


def split(policies: Iterable[str]) -> tuple[dict[str, tuple[Parameters, ...]], list[str]]:
    """Claimed policy to every set of its parameters that is claimed, complete; and what cannot be read."""
    found: dict[str, tuple[Parameters, ...]] = {}
    wrong = []
    for text in policies:
        try:
            spelled = parse(text)
        except UnknownName as error:
            wrong.append(str(error))
            continue
        policy = spelled.card.name if spelled.card.name in POLICIES else ":".join(text.split(":")[:2])
        found[policy] = (*found.get(policy, ()), spelled.card.complete(spelled.parameters))
    return found, wrong
