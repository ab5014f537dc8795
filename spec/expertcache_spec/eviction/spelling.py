"""Policies in words: a name with parameters, or a card of one's own, as people write them in commands and files.

`lru`, `lfu-aged:every=100`, `random:seed=7`, `mypackage.policies:CARD`, `mypackage.policies:CARD:window=8`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import attrs

from expertcache_spec.errors import UnknownName
from expertcache_spec.eviction import POLICIES, card
from expertcache_spec.eviction.cards import Card, Parameter, Value

_TRUTH = {"true": True, "false": False}


@attrs.frozen
class Spelled:
    """A card with the parameters that were spelled beside it."""

    card: Card
    parameters: dict[str, Value]

    def __str__(self) -> str:
        return spell(self.card.name, self.parameters)


def spell(name: str, parameters: Mapping[str, Value]) -> str:
    """The words for a policy with parameters; `parse` reads them back when the policy is one of the specification."""
    return ":".join([name, *(f"{key}={_shown(value)}" for key, value in parameters.items())])


def parse(text: str) -> Spelled:
    """Read `NAME[:parameter=value...]` or `module:ATTRIBUTE[:parameter=value...]`.

    Raises `UnknownName` for a policy, module, attribute, parameter or value that does not exist, with the known ones.
    """
    parts = text.split(":")
    named = [part for part in parts if "=" not in part]
    if parts[: len(named)] != named or len(named) > 2 or (len(named) == 2 and named[0] in POLICIES):
        raise UnknownName(f"policy {text!r}", where="policy", cure="NAME:parameter=value:parameter=value")
    found = card(named[0]) if len(named) == 1 else load(*named)
    given: dict[str, Value] = {}
    for name, _, value in (part.partition("=") for part in parts[len(named) :]):
        if name in given:
            raise UnknownName(f"{name} is given twice", where=f"policy {found.name}", cure="give it once")
        known = next((parameter for parameter in found.parameters if parameter.name == name), None)
        given[name] = value if known is None else _read(known, value, found.name)
    found.complete(given)
    return Spelled(found, given)


def load(module: str, attribute: str) -> Card:
    """The card that a module of one's own offers; raises `UnknownName` when there is none, or it takes a known name."""
    where = f"policy {module}:{attribute}"
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except Exception as error:
        raise UnknownName(
            f"{module} cannot be imported: {type(error).__name__}: {error}", where=where,
            cure="name an importable module; the current directory must be on PYTHONPATH",
        ) from error  # fmt: skip
    if not isinstance(found, Card):
        raise UnknownName(f"{attribute} is no Card", where=where, cure="offer an expertcache_spec.eviction.Card")
    if found.name in POLICIES and POLICIES[found.name] is not found:
        raise UnknownName(f"{found.name!r} is a policy of the specification", where=where, cure="give it another name")
    return found


def _read(parameter: Parameter, text: str, policy: str) -> Value:
    kind = type(parameter.default)
    try:
        return _TRUTH[text] if kind is bool else kind(text)
    except (ValueError, KeyError):
        return parameter.check(text, f"policy {policy}")


def _shown(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
