"""Policies in words: a name with parameters, or a card of one's own, as people write them in commands and files.

`lru`, `lfu-aged:every=100`, `random:seed=7`, `mypackage.policies:CARD`, `mypackage.policies:CARD:window=8`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import attrs

from expertcache_spec import wording
from expertcache_spec.errors import InvalidPolicy, UnknownName
from expertcache_spec.eviction import POLICIES, card
from expertcache_spec.eviction.cards import Card, Value


@attrs.frozen
class Spelled:
    """A card with the parameters that were spelled beside it; `text` is how."""

    card: Card
    parameters: dict[str, Value]
    text: str = attrs.field(default="", eq=False)

    def __str__(self) -> str:
        return spell(self.card.name, self.parameters)


def spell(name: str, parameters: Mapping[str, Value]) -> str:
    """The words for a policy with parameters; `parse` reads them back when the policy is one of the specification."""
    return wording.spell(name, parameters)


def parse(text: str) -> Spelled:
    """Read `NAME[:parameter=value...]` or `module:ATTRIBUTE[:parameter=value...]`.

    Raises `UnknownName` for a policy, module, attribute, parameter or value that does not exist, with the known ones.
    """
    named, said = wording.split(text, "policy", names=2)
    if len(named) == 2 and named[0] in POLICIES:
        raise UnknownName(f"policy {text!r}", where="policy", cure="NAME:parameter=value:parameter=value")
    found = card(named[0]) if len(named) == 1 else load(*named)
    given = wording.values(found.parameters, said, f"policy {found.name}")
    found.complete(given)
    return Spelled(found, given, text)


def load(module: str, attribute: str) -> Card:
    """The card that a module of one's own offers; raises `UnknownName` when there is none, or it takes a known name.

    Raises `InvalidPolicy` for a card that is none.
    """
    where = f"policy {module}:{attribute}"
    try:
        offered = importlib.import_module(module)
    except InvalidPolicy:
        raise  # it says which card, and the cure
    except Exception as error:
        raise UnknownName(
            f"{module} cannot be imported: {type(error).__name__}: {error}", where=where,
            cure="name a module that Python can import from here, or set PYTHONPATH to where it lies",
        ) from error  # fmt: skip
    cards = ", ".join(name for name, value in vars(offered).items() if isinstance(value, Card)) or "none"
    if not hasattr(offered, attribute):
        raise UnknownName(f"{module} has no attribute {attribute!r}", where=where, cure=f"its cards are {cards}")
    found = getattr(offered, attribute)
    if not isinstance(found, Card):
        raise UnknownName(
            f"{attribute} is no Card",
            where=where,
            cure=f"an expertcache_spec.eviction.Card; those of {module}: {cards}",
        )
    if found.name in POLICIES and POLICIES[found.name] is not found:
        raise UnknownName(f"{found.name!r} is a policy of the specification", where=where, cure="give it another name")
    return found
