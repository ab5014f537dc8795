"""Names with parameters in words, `NAME:parameter=value:...`, and the values in them: one parser for all of them.

Policies, admissions, prefetches and misses are spelled so, in commands, profiles, settings and files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import takewhile

from expertcache_spec.errors import UnknownName
from expertcache_spec.eviction.cards import Parameter, Value

_DIGITS = 18
_WHOLE = re.compile(rf"-?[0-9]{{1,{_DIGITS}}}")
_LONG = re.compile(rf"-?[0-9]{{{_DIGITS + 1},}}")
_FRACTION = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,3})?")
_TRUTH = {"true": True, "false": False}


def split(text: str, where: str, names: int = 1) -> tuple[list[str], dict[str, str]]:
    """The parts of the name, one to `names` of them, and the text of each parameter.

    Raises `UnknownName`, naming `where`, for what is not of that form and for a parameter that is given twice.
    """
    parts = str(text).split(":")
    named = list(takewhile(lambda part: "=" not in part, parts))
    cure = f"{'module:ATTRIBUTE or ' if names > 1 else ''}NAME:parameter=value:parameter=value"
    if not 1 <= len(named) <= names or not all(named[1:]):
        raise UnknownName(f"{text!r}", where=where, cure=cure)
    given: dict[str, str] = {}
    for part in parts[len(named) :]:
        name, equals, value = part.partition("=")
        if not name or not equals:
            raise UnknownName(f"{part!r} in {text!r}", where=where, cure=cure)
        if name in given:
            raise UnknownName(f"{name} is given twice in {text!r}", where=where, cure="give it once")
        given[name] = value
    return named, given


def read(parameter: Parameter, text: str, where: str) -> Value:
    """The value that the text gives the parameter; raises `UnknownName` saying what is legal."""
    value: Value | None = text
    if isinstance(parameter.default, bool):
        value = _TRUTH.get(text)
    elif isinstance(parameter.default, int):
        value = whole(text)
    elif isinstance(parameter.default, float):
        value = fraction(text)
    if value is None and not isinstance(parameter.default, bool) and _LONG.fullmatch(text):
        cure = f"at most {_DIGITS} digits; {parameter.legal}; default {parameter.default!r}"
        raise UnknownName(f"{parameter.name} = {text[:40]!r}", where=where, cure=cure)
    return parameter.check(text if value is None else value, where)


def values(parameters: Iterable[Parameter], given: Mapping[str, str], where: str) -> dict[str, Value]:
    """Each text read as the parameter that it is given to; what is no parameter stays text, for `completed` to refuse.

    Raises as `read` does.
    """
    known = {parameter.name: parameter for parameter in parameters}
    return {name: read(known[name], text, where) if name in known else text for name, text in given.items()}


def whole(text: str) -> int | None:
    """The whole number that the text is, in ASCII digits with at most a minus before them; None where it is none."""
    return int(text) if _WHOLE.fullmatch(text) else None


def fraction(text: str) -> float | None:
    """The number that the text is, `0.5`, `3` or `1e-05`; None where it is none."""
    return float(text) if _FRACTION.fullmatch(text) else None


def spell(name: str, parameters: Mapping[str, Value]) -> str:
    """The words for a name with parameters: what `split` and `read` take apart."""
    return ":".join([name, *(f"{key}={_shown(value)}" for key, value in parameters.items())])


def _shown(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
