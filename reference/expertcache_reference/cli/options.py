"""Options that several commands share, and what becomes of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import attrs
import typer

from expertcache_spec.engines import PROFILES, profile
from expertcache_spec.errors import UnknownName
from expertcache_spec.eviction import POLICIES
from expertcache_spec.eviction.spelling import Spelled, parse
from expertcache_spec.model import Budget, Geometry, parse_size
from expertcache_spec.replay import MODES
from expertcache_spec.residency import SETTINGS, Settings
from expertcache_spec.wording import whole


def whole_number(text: Any) -> int:
    """The whole number of an option; raises `BadParameter` for anything but ASCII digits, with at most a minus."""
    number = whole(str(text))
    if number is None:
        raise typer.BadParameter(f"{text!r} is no whole number")
    return number


def number(name: str, meaning: str) -> Any:
    """An option that takes a whole number."""
    return typer.Option(name, parser=whole_number, metavar="N", help=meaning)


Source = Annotated[str, typer.Argument(metavar="FILE", help="A trace file, or builtin:NAME.")]
RecordBytes = Annotated[
    str | None,
    typer.Option("--record-bytes", metavar="N[,N...]|SIZE", help="Bytes of a record: one for all layers, or each."),
]
DropWeights = Annotated[bool, typer.Option("--drop-weights", help="Read the file without its router weights.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Mode = Annotated[str, typer.Option("--replay", help=f"One of {', '.join(MODES)}.")]
ProfileName = Annotated[
    str | None, typer.Option("--profile", help=f"Policy and settings of an engine: {', '.join(PROFILES)}.")
]


def _setting(name: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        f"--{name.replace('_', '-')}", help=f"One of {', '.join(SETTINGS[name])}.", rich_help_panel="Settings"
    )
    return option


Scope = Annotated[str | None, _setting("scope")]
Room = Annotated[str | None, _setting("room")]
Touch = Annotated[str | None, _setting("touch")]
Repeats = Annotated[str | None, _setting("repeats")]
Overflow = Annotated[str | None, _setting("overflow")]
NoVictim = Annotated[str | None, _setting("no_victim")]
Admission = Annotated[str | None, _setting("admission")]


def settings(engine: str | None, **given: str | None) -> Settings:
    """The settings of the engine profile, or the defaults, with what was given explicitly put over them."""
    base = profile(engine).settings if engine is not None else Settings()
    explicit: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return attrs.evolve(base, **explicit)


SizeBudget = Annotated[str | None, typer.Option("--budget", metavar="SIZE", help="Bytes, as 4000MiB or 4GB.")]
Slots = Annotated[int | None, number("--slots", "Records; with --budget the tighter wins.")]
PolicyName = Annotated[
    str | None,
    typer.Option("--policy", metavar="POLICY", help="NAME, NAME:parameter=value:..., or your own as module:CARD."),
]


def policy(name: str | None, engine: str | None) -> Spelled:
    """The policy given, or the profile's; raises `UnknownName` for neither and for what does not exist."""
    if name is None and engine is None:
        raise UnknownName(
            "no policy", where="--policy", cure=f"one of {', '.join(POLICIES)}; or an engine with --profile"
        )
    with _own_modules():
        return parse(name if name is not None else profile(str(engine)).policy)


@contextmanager
def _own_modules() -> Iterator[None]:
    """A card of one's own may lie in the current directory, as it may under `python -m`."""
    sys.path.insert(0, "")
    try:
        yield
    finally:
        sys.path.remove("")


def budget(slots: int | None, size: str | None) -> tuple[Budget, str]:
    """The budget of --slots and --budget, and the unit to print it in (XC-MODEL-005).

    Raises `InvalidBudget` where neither says one, and for a size without a unit.
    """
    parsed = None if size is None else parse_size(size)
    return (Budget(slots), "") if parsed is None else (Budget(slots, parsed.bytes), parsed.unit)


def for_model(spelled: Spelled, model: Geometry) -> Spelled:
    """The policy, if the model has what its parameters name; raises `UnknownName` where it has not."""
    spelled.card.complete(spelled.parameters, model)
    return spelled


def labels(policies: Sequence[Spelled]) -> list[str]:
    """What to call each of them side by side: its name, or its whole spelling where another has the same name."""
    names = [str(policy) for policy in policies]
    return [policy.text if names.count(name) > 1 else name for policy, name in zip(policies, names, strict=True)]


def record_bytes(text: str | None) -> int | list[int] | None:
    """The value of --record-bytes: one size, one for each layer, or None."""
    if text is None:
        return None
    sizes = [whole(part) for part in text.split(",")]
    if None in sizes or "-" in text:
        return parse_size(text).bytes
    found = [size for size in sizes if size is not None]
    return found[0] if len(found) == 1 else found


def listed(text: str, option: str) -> list[str]:
    """The items of a comma-separated list, each once; raises `BadParameter`, naming the option, where one is empty."""
    items = [item.strip() for item in text.split(",")]
    if not all(items):
        said = f"{text!r} has an empty item" if len(items) > 1 else "the list is empty"
        raise typer.BadParameter(f"{option}: {said}; write items with commas between")
    return list(dict.fromkeys(items))


def shown(path: str) -> str:
    """The last part of a path, for a progress bar."""
    return Path(path).name
