"""Bounded: what an implementation answers may be of any size and without an end; what is made of it is not."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

MOST = 100_000
"""Values that one list of an answer may hold; no question of the suite has as many right ones."""
WIDEST = 64
"""Bits of a whole number in an answer, its sign left out."""
_LONGEST = 200


class TooMuch(Exception):
    """More values, or wider ones, than any right answer has."""


def taken(values: Iterable[Any]) -> list[Any]:
    """The values; raises `TooMuch` beyond `MOST`, so that an iterator without an end is an answer out of form."""
    found = list(islice(values, MOST + 1))
    if len(found) > MOST:
        raise TooMuch(f"more than {MOST} values")
    return found


def narrow(number: int) -> int:
    """The number; raises `TooMuch` where it is wider than any size or time."""
    if number.bit_length() > WIDEST:
        raise TooMuch(f"a whole number of {number.bit_length()} bits")
    return number


def brief(value: object) -> str:
    """The value as a message shows it: cut, and named by its type where it cannot be written down."""
    try:
        return repr(value)[:_LONGEST]
    except Exception:  # repr is the implementation's own; that of a very long number raises ValueError
        return f"a value of type {type(value).__name__} that cannot be shown"
