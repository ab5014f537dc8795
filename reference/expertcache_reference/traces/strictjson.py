"""JSON without the liberties: no duplicate keys, no NaN, no integers beyond 64 bits, no bombs."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NoReturn

from expertcache_spec.errors import InvalidTrace

MAX_VALUES = 1 << 22
"""Most values that one line may hold: a prompt of 260,000 rows of 8 experts with weights."""


def parse(text: str, place: str) -> object:
    """The value of one line; raises `InvalidTrace` naming the place for everything that is not strict JSON."""
    if text.count(",") + text.count("[") + text.count("{") > MAX_VALUES:
        raise InvalidTrace(
            f"more than {MAX_VALUES} values in one line", where=place, cure="split the prompt into several passes"
        )
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        raise InvalidTrace("nested too deeply", where=place, cure="is this a trace?") from error
    except ValueError as error:
        raise InvalidTrace(
            f"not strict JSON: {error}",
            where=place,
            cure="write one JSON object a line, each key once, numbers finite and within 64 bits",
        ) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"key {name!r} stands twice in one object")
    return record


def _integer(text: str) -> int:
    if len(text) > 18 and not -(2**63) <= int(text) < 2**63:
        raise ValueError(f"a whole number of {len(text)} digits")
    return int(text)


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_constant=_constant)
