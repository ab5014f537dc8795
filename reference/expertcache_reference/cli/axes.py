"""Prefetch and misses in words: `previous-token:home=slot:latency=2`, `drop-weight:factor=0.5`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import attrs
import typer

from expertcache_spec.errors import UnknownName
from expertcache_spec.misses import Misses
from expertcache_spec.model import Budget, Key, parse_size
from expertcache_spec.prefetch import PREDICTORS, Prefetch, predictor

PrefetchWords = Annotated[
    str | None,
    typer.Option("--prefetch", metavar="PREDICTOR[:NAME=VALUE...]", rich_help_panel="Settings",
                 help=f"One of {', '.join(PREDICTORS)}; slots or bytes cap staging, e.g. oracle:slots=8:latency=2."),
]  # fmt: skip
MissesWords = Annotated[
    str | None,
    typer.Option("--misses", metavar="MODE[:NAME=VALUE...]", rich_help_panel="Settings",
                 help="What is done about misses instead of fetch; lossy, e.g. drop-weight:factor=0.5."),
]  # fmt: skip

_TRUTH = {"true": True, "false": False}


def prefetch(words: str | None) -> Prefetch | None:
    """The prefetch of `--prefetch`; raises `UnknownName` or `InvalidBudget`, naming what and the cure.

    Names are those of `Prefetch` and of the predictor's parameters; `slots` and `bytes` make the cap, `profile` names a
    JSON file that lists [layer, expert] pairs to seed.
    """
    if words is None:
        return None
    name, given = _split(words, "--prefetch")
    own = {field.name: field.default for field in attrs.fields(Prefetch) if isinstance(field.default, int | str | bool)}
    known = {parameter.name: parameter.default for parameter in predictor(name).parameters}
    cap = {key: given.pop(key) for key in ("slots", "bytes") if key in given}
    profile = given.pop("profile", None)
    unknown = sorted(set(given) - set(own) - set(known))
    if unknown:
        legal = ", ".join(sorted({*own, *known, "slots", "bytes", "profile"} - {"predictor"}))
        raise UnknownName(f"{unknown[0]!r}", where="--prefetch", cure=f"one of {legal}")
    fields: dict[str, Any] = {key: _typed(given[key], own[key], "--prefetch", key) for key in given if key in own}
    fields["parameters"] = {key: _typed(given[key], known[key], "--prefetch", key) for key in given if key in known}
    if cap:
        slots = None if "slots" not in cap else _typed(cap["slots"], 0, "--prefetch", "slots")
        fields["cap"] = Budget(slots, None if "bytes" not in cap else parse_size(cap["bytes"]).bytes)
    if profile is not None:
        fields["profile"] = _keys(Path(profile))
    return Prefetch(name, **fields)


def misses(words: str | None) -> Misses | None:
    """The misses of `--misses`; raises `UnknownName` or `ChangesTrace`, naming what and the cure."""
    if words is None:
        return None
    mode, given = _split(words, "--misses")
    own = {field.name: field.default for field in attrs.fields(Misses) if field.name != "mode"}
    for key in given:
        if key not in own:
            raise UnknownName(f"{key!r}", where="--misses", cure=f"one of {', '.join(own)}")
    fields: dict[str, Any] = {key: _typed(value, own[key], "--misses", key) for key, value in given.items()}
    return Misses(mode, **fields)  # type: ignore[arg-type]


def _split(words: str, where: str) -> tuple[str, dict[str, str]]:
    name, *pairs = words.split(":")
    given: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or key in given:
            raise UnknownName(f"{pair!r}", where=where, cure="NAME=VALUE, each name once, with colons between")
        given[key] = value
    return name, given


def _typed(text: str, default: Any, where: str, name: str) -> Any:
    kind = type(default)
    read: Callable[[str], Any] | Mapping[str, bool] = _TRUTH if kind is bool else kind
    try:
        return read[text] if isinstance(read, Mapping) else read(text)
    except (KeyError, ValueError):
        legal = "true or false" if kind is bool else f"a value as {default!r}"
        raise UnknownName(f"{name} = {text!r}", where=where, cure=legal) from None


def _keys(path: Path) -> tuple[Key, ...]:
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
        return tuple(Key(layer, expert) for layer, expert in listed if type(layer) is type(expert) is int)
    except (OSError, ValueError, TypeError) as error:
        raise UnknownName(
            f"{path} is no profile: {error}", where="--prefetch", cure="a JSON file, [[layer, expert], ...]"
        ) from error
