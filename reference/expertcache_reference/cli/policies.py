"""`expertcache policies`: what can be named after --policy."""

from __future__ import annotations

from typing import Annotated, Any

import attrs
import typer

from expertcache_reference.cli import options
from expertcache_reference.cli.console import print_json, print_table
from expertcache_spec.eviction import POLICIES, Card
from expertcache_spec.eviction.spelling import spell
from expertcache_spec.rules import RULES


def policies(
    name: Annotated[str | None, typer.Argument(metavar="[POLICY]", help="Only this one, with its parameters.")] = None,
    as_json: options.Json = False,
) -> None:
    """List every policy with its parameters, defaults, source and cost."""
    cards = [options.policy(name, None).card] if name is not None else list(POLICIES.values())
    if as_json:
        print_json({"policies": [as_data(card) for card in cards]})
    elif name is not None:
        _print(cards[0])
    else:
        rows = ((card.name, _defaults(card), card.cost, card.summary) for card in cards)
        print_table("", ("policy", "parameters and defaults", "cost of a lookup", "evicts"), rows, left=4)
        typer.echo("expertcache policies POLICY says more of one; --policy POLICY:parameter=value sets a parameter.")


def as_data(card: Card) -> dict[str, Any]:
    """The card as plain data; a bound that there is not is null."""
    return {
        "name": card.name,
        "summary": card.summary,
        "source": card.source,
        "cost": card.cost,
        "rule": card.rule,
        "offline": card.offline,
        "can_refuse": card.can_refuse,
        "parameters": [
            {**attrs.asdict(p), "least": _finite(p.least), "most": _finite(p.most)} for p in card.parameters
        ],
    }


def _finite(bound: float) -> float | None:
    return None if abs(bound) == float("inf") else bound


def _defaults(card: Card) -> str:
    return spell("", card.complete()).removeprefix(":").replace(":", " ") or "-"


def _print(card: Card) -> None:
    rule = RULES.get(card.rule)
    for label, text in (
        ("policy", card.name), ("evicts", card.summary), ("rule", f"{card.rule}: {rule.text if rule else ''}"),
        ("source", card.source), ("cost", card.cost), ("future", "needed" if card.offline else "not needed"),
        ("refusable", "defined" if card.can_refuse else "not defined"),
    ):  # fmt: skip
        typer.echo(f"{label:<10}{text}")
    rows = ((p.name, str(p.default), _legal(p), p.meaning) for p in card.parameters)
    if card.parameters:
        print_table("", ("parameter", "default", "legal", "meaning"), rows, left=4)


def _legal(parameter: Any) -> str:
    if parameter.choices:
        return " | ".join(parameter.choices)
    if isinstance(parameter.default, bool):
        return "true | false"
    if isinstance(parameter.default, str):
        return "text"
    low, high = _finite(parameter.least), _finite(parameter.most)
    return f"from {low:g}" + ("" if high is None else f" to {high:g}") if low is not None else "any"
