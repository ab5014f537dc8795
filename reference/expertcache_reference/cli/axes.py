"""Prefetch and misses in words: `previous-token:home=slot:latency=2`, `drop-weight:factor=0.5`."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import attrs
import typer

from expertcache_spec.errors import UnknownName
from expertcache_spec.eviction import Parameter, Value
from expertcache_spec.misses import Misses
from expertcache_spec.model import Budget, Key, parse_size
from expertcache_spec.prefetch import PREDICTORS, Prefetch, predictor
from expertcache_spec.prefetch.settings import Home
from expertcache_spec.wording import read, split

PrefetchWords = Annotated[
    str | None,
    typer.Option("--prefetch", metavar="PREDICTOR[:NAME=VALUE...]", rich_help_panel="Settings",
                 help=f"One of {', '.join(PREDICTORS)}; staging must be capped with slots or bytes, as in "
                 "oracle:slots=8:latency=2; home=slot has no cap."),
]  # fmt: skip
MissesWords = Annotated[
    str | None,
    typer.Option("--misses", metavar="MODE[:NAME=VALUE...]", rich_help_panel="Settings",
                 help="What is done about misses instead of fetch; lossy, e.g. drop-weight:factor=0.5."),
]  # fmt: skip


def prefetch(words: str | None, home: Home = "staging") -> Prefetch | None:
    """The prefetch of `--prefetch`, in that home unless it names one; raises `UnknownName` or `InvalidBudget`.

    Names are those of `Prefetch` and of the predictor's parameters; `slots` and `bytes` make the cap, `profile` names a
    JSON file that lists [layer, expert] pairs to seed.
    """
    if words is None:
        return None
    (name,), given = split(words, "--prefetch")
    own, known = _fields(Prefetch), {parameter.name: parameter for parameter in predictor(name).parameters}
    cap = {key: given.pop(key) for key in ("slots", "bytes") if key in given}
    profile = given.pop("profile", None)
    legal = sorted({*own, *known, "slots", "bytes", "profile"} - {"predictor"})
    _refuse_unknown(given, legal, "--prefetch")
    fields: dict[str, Any] = {key: read(own[key], given[key], "--prefetch") for key in given if key in own}
    fields.setdefault("home", home)
    fields["parameters"] = {key: read(known[key], given[key], "--prefetch") for key in given if key in known}
    if cap:
        slots = None if "slots" not in cap else read(Parameter("slots", 0, "", least=0), cap["slots"], "--prefetch")
        fields["cap"] = Budget(slots, None if "bytes" not in cap else parse_size(cap["bytes"]).bytes)  # type: ignore[arg-type]
    if profile is not None:
        fields["profile"] = _keys(Path(profile))
    return Prefetch(name, **fields)


def misses(words: str | None) -> Misses | None:
    """The misses of `--misses`; raises `UnknownName` or `ChangesTrace`, naming what and the cure."""
    if words is None:
        return None
    (mode,), given = split(words, "--misses")
    own = _fields(Misses)
    _refuse_unknown(given, [name for name in own if name != "mode"], "--misses")
    fields: dict[str, Any] = {key: read(own[key], value, "--misses") for key, value in given.items()}
    return Misses(mode, **fields)  # type: ignore[arg-type]


def _fields(kind: type[Prefetch | Misses]) -> dict[str, Parameter]:
    """The plain fields, as parameters; what they may be besides, they say themselves."""
    fields = attrs.fields(kind)
    return {each.name: Parameter(each.name, each.default, "") for each in fields if isinstance(each.default, Value)}


def _refuse_unknown(given: Iterable[str], legal: Sequence[str], where: str) -> None:
    for name in given:
        if name not in legal:
            raise UnknownName(f"{name!r}", where=where, cure=f"one of {', '.join(legal)}")


def _keys(path: Path) -> tuple[Key, ...]:
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
        return tuple(_key(entry) for entry in listed)
    except (OSError, ValueError, TypeError) as error:
        raise UnknownName(
            f"{path} is no profile: {error}", where="--prefetch",
            cure="a JSON file, [[layer, expert], ...]; with priorities replay takes a --hotlist",
        ) from error  # fmt: skip


def _key(entry: Any) -> Key:
    if not isinstance(entry, list) or [type(part) for part in entry] != [int, int]:
        raise ValueError(f"{reprlib.repr(entry)} is no pair of whole numbers")
    return Key(*entry)
