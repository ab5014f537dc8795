"""`expertcache policies`: what can be named after --policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import attrs
import typer

from expertcache_reference.cli import options
from expertcache_reference.cli.console import print_json, print_table
from expertcache_spec.eviction import POLICIES, Card, Value
from expertcache_spec.eviction.spelling import Spelled, spell
from expertcache_spec.rules import RULES


def policies(
    name: Annotated[str | None, typer.Argument(metavar="[POLICY]", help="Only this one, with its parameters.")] = None,
    as_json: options.Json = False,
) -> None:
    """List every policy with its parameters, defaults, source and cost."""
    if name is not None:
        spelled = options.policy(name, None)
        if as_json:
            print_json({"policies": [as_data(spelled.card, spelled.parameters)]})
        else:
            _print(spelled)
    elif as_json:
        print_json({"policies": [as_data(card) for card in POLICIES.values()]})
    else:
        rows = ((card.name, _defaults(card), card.cost, card.summary) for card in POLICIES.values())
        print_table("", ("policy", "parameters and defaults", "cost of a lookup", "evicts"), rows, left=4)
        typer.echo("expertcache policies POLICY says more of one; --policy POLICY:parameter=value sets a parameter.")


def as_data(card: Card, given: Mapping[str, Value] | None = None) -> dict[str, Any]:
    """The card as plain data, each parameter with its value, given or default; a bound that there is not is null."""
    values = card.complete(given)
    return {
        "name": card.name,
        "summary": card.summary,
        "source": card.source,
        "cost": card.cost,
        "rule": card.rule,
        "offline": card.offline,
        "can_refuse": card.can_refuse,
        "parameters": [
            {**attrs.asdict(p), "value": values[p.name], "least": _finite(p.least), "most": _finite(p.most)}
            for p in card.parameters
        ],
        "readings": {name: dict(meant) for name, meant in card.readings.items()},
    }


def _finite(bound: float) -> float | None:
    return None if abs(bound) == float("inf") else bound


def _defaults(card: Card) -> str:
    return spell("", card.complete()).removeprefix(":").replace(":", " ") or "-"


def _print(spelled: Spelled) -> None:
    card, values = spelled.card, spelled.card.complete(spelled.parameters)
    rule = RULES.get(card.rule)
    for label, text in (
        ("policy", str(spelled)), ("evicts", card.summary), ("rule", f"{card.rule}: {rule.text if rule else ''}"),
        ("source", card.source), ("cost", card.cost), ("future", "needed" if card.offline else "not needed"),
        ("refusable", "defined" if card.can_refuse else "not defined"),
    ):  # fmt: skip
        typer.echo(f"{label:<10}{text}")
    rows = ((p.name, str(values[p.name]), str(p.default), p.legal, p.meaning) for p in card.parameters)
    if card.parameters:
        print_table("", ("parameter", "value", "default", "legal", "meaning"), rows, left=5)
    if card.readings:
        readings = ((name, spell("", meant)[1:].replace(":", " ") or "-") for name, meant in card.readings.items())
        print_table("", ("reading", "stands for, beside the defaults"), readings, left=2)
