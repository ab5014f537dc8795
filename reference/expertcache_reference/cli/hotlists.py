"""`--hotlist` and what belongs to it: what ds4 holds at its start, and what it makes of a budget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args

import attrs
import typer

from expertcache_reference.cli import options
from expertcache_reference.cli.console import count
from expertcache_spec.engines_ds4 import (
    BUILT_IN,
    VERSIONS,
    Entry,
    Formula,
    Plan,
    Version,
    auto_whole_layers,
    common_size,
    hotlist,
    plan,
    preload_count,
    seeding_order,
    seeds,
)
from expertcache_spec.errors import InvalidTrace, UnknownName
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.starting import Start

_PANEL = "Start"
_LONGEST = 1 << 26
"""Bytes of a hotlist, a million lines and more."""

File = Annotated[
    str | None,
    typer.Option("--hotlist", metavar="FILE", rich_help_panel=_PANEL,
                 help="Seeds for the start, in ds4's order: layer expert hits a line, or built-in: layer expert."),
]  # fmt: skip
FormulaName = Annotated[
    str | None,
    typer.Option("--formula", rich_help_panel=_PANEL,
                 help=f"What seeds are lent: {', '.join(get_args(Formula))}; hits where the file has them, else that "
                 "of the profile, else scaled."),
]  # fmt: skip
Preload = Annotated[int | None, typer.Option(
    "--preload", parser=options.whole_number, metavar="N", rich_help_panel=_PANEL,
    help="How many seeds; up to 4096 where nobody says.",
)]  # fmt: skip
Cold = Annotated[bool, typer.Option("--cold", rich_help_panel=_PANEL, help="Seed nothing, whatever the hotlist.")]
FullLayers = Annotated[
    str | None,
    typer.Option("--full-layers", metavar="N|auto", rich_help_panel=_PANEL,
                 help="GLM under ds4: whole prefix layers that stay, out of --budget; auto as the profile's version."),
]  # fmt: skip


@attrs.frozen
class Asked:
    """The options of a start, as they were given; raises `BadParameter` for those that say nothing together."""

    hotlist: str | None = None
    formula: str | None = None
    preload: int | None = None
    cold: bool = False
    full_layers: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.hotlist is None and (self.formula is not None or self.preload is not None):
            raise typer.BadParameter("--formula and --preload are about a list of seeds: give --hotlist")
        if self.preload is not None and self.preload < 0:
            raise typer.BadParameter(f"--preload {self.preload}: a whole number from 0")
        if self.formula is not None and self.formula not in get_args(Formula):
            known = ", ".join(get_args(Formula))
            raise UnknownName(f"formula {self.formula!r}", where="--formula", cure=f"one of {known}")


@attrs.frozen
class Started:
    """What a replay begins with: its budget, the start, and how they came about."""

    budget: Budget
    start: Start | None = None
    plan: Plan | None = None
    formula: Formula | None = None
    listed: int = 0
    strange: int = 0
    """Entries of the list, and how many of them name records that the model does not have."""

    def described(self) -> dict[str, Any]:
        """As plain data; empty where nothing was asked for."""
        found: dict[str, Any] = {} if self.plan is None else {"plan": self.plan._asdict()}
        return found if self.formula is None else {**found, "formula": self.formula}

    def told(self) -> Iterator[str]:
        """As lines for people."""
        if self.plan is not None:
            headroom, layers, whole, slots = self.plan
            yield f"{count(slots, 'slot')} beside {headroom} bytes of prefill headroom" + (
                f" and {count(layers, 'whole layer')} of {whole} bytes" if layers else ""
            )
        if self.formula is not None:
            lent = [] if self.start is None else [priority for _, priority in self.start.seeds]
            hotness = f", lent {max(lent)} to {min(lent)} ({self.formula})" if lent else ""
            strange = f", {self.strange} of records that the model does not have" if self.strange else ""
            yield f"{count(len(lent), 'seed')} of {self.listed} listed{strange}{hotness}"


def started(asked: Asked, engine: str | None, budget: Budget, model: Geometry) -> Started:
    """The start that was asked for; under a profile of ds4 a budget in bytes is spent as ds4 does (XC-EVICT-194).

    Raises `InvalidTrace` for a hotlist that cannot be read, `InvalidBudget` for bytes that leave no slot,
    `BadParameter` for full layers without such a profile and budget.
    """
    version = _versions().get(str(engine))
    spent = _plan(asked, version, budget, model)
    whole = [] if spent is None else _common(model)[: spent.full_layers]
    if spent is not None:
        slots = spent.slots if budget.slots is None else min(budget.slots, spent.slots)
        budget = Budget(slots + len(whole) * model.experts)
    rest = [layer for layer in model.routed if layer not in whole]
    formula, listed, entries = None, [], list[Entry]()
    if asked.hotlist is not None and rest:
        formula, entries = _read(asked, version)
        dynamic = attrs.evolve(model, routed=tuple(rest))
        slots = _slots(budget, model) - len(whole) * model.experts
        number = preload_count(slots, dynamic, asked=asked.preload, cold=asked.cold)
        listed = seeding_order(seeds(entries, dynamic, number, formula))
    resident = tuple(Key(layer, expert) for layer in whole for expert in range(model.experts))
    start = Start(tuple(listed), resident) if listed or resident else None
    strange = sum(layer not in model.routed or expert >= model.experts for layer, expert, _ in entries)
    return Started(budget, start, spent, formula, len(entries), strange)


def _versions() -> dict[str, Version]:
    """Profile to version."""
    return {f"ds4-{letter.lower()}": version for letter, version in VERSIONS.items()}


def _common(model: Geometry) -> list[int]:
    """The layers whose records have the size of the cache."""
    common = common_size(map(model.size, model.routed))
    return [layer for layer in model.routed if model.size(layer) == common]


def _plan(asked: Asked, version: Version | None, budget: Budget, model: Geometry) -> Plan | None:
    if version is None or budget.bytes is None:
        if asked.full_layers is not None:
            raise typer.BadParameter(f"--full-layers: of a --budget, under --profile {' or '.join(_versions())}")
        return None
    if model.record_bytes is None or budget.is_zero:
        return None  # which the replay refuses, or serves without keeping anything
    layers = _common(model)
    shape = model.size(layers[0]), len(layers), model.experts
    if asked.full_layers == "auto":
        wanted = auto_whole_layers(budget.bytes, *shape) if version.auto_full_layers else 0
    else:
        wanted = options.whole_number(asked.full_layers or 0)
        if wanted < 0:
            raise typer.BadParameter(f"--full-layers {wanted}: a whole number from 0, or auto")
    return plan(budget.bytes, *shape, wanted)


def _slots(budget: Budget, model: Geometry) -> int:
    """Records that the budget has room for."""
    limits = [] if budget.slots is None else [budget.slots]
    if budget.bytes is not None and model.record_bytes is not None:
        limits.append(budget.bytes // common_size(map(model.size, model.routed)))
    return min(limits, default=0)


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            raw = file.read(_LONGEST + 1)
        if len(raw) > _LONGEST:
            raise InvalidTrace(f"longer than {_LONGEST} bytes", where=path.name, cure="name a hotlist")
        return raw.decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        what = (error.strerror if isinstance(error, OSError) else None) or "no text in UTF-8"
        raise InvalidTrace(
            what, where=path.name or str(path), cure="name a hotlist, layer expert hits a line"
        ) from error


def _read(asked: Asked, version: Version | None) -> tuple[Formula, list[Entry]]:
    """The formula and the entries of the list."""
    path = Path(str(asked.hotlist))
    lines = _lines(path)
    try:
        entries = list(hotlist(lines))
    except InvalidTrace as error:
        raise InvalidTrace(error.what, where=f"{path.name}, {error.where}", cure=error.cure) from error
    is_counted = not lines or lines[0].split() != BUILT_IN
    if asked.formula == "hits" and not is_counted:
        raise InvalidTrace("a list without hits", where=path.name, cure="--formula scaled or rank")
    usual: Formula = "hits" if is_counted else VERSIONS["B"].built_in if version is None else version.built_in
    return asked.formula or usual, entries  # type: ignore[return-value]
