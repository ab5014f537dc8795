"""Exponential decay in whole numbers: the same on every machine."""

from __future__ import annotations

from math import isqrt

import attrs

BITS = 32
ONE = 1 << BITS
"""One use, in the units that decayed counts are kept in (XC-EVICT-077)."""

_FINE = 64


def _roots() -> list[int]:
    """2 to the power of -1/2, -1/4, -1/8 ... in units of 2**-64."""
    roots, root = [], 1 << (_FINE - 1)
    for _ in range(_FINE):
        root = isqrt(root << _FINE)
        roots.append(root)
    return roots


ROOTS = _roots()


def power(numerator: int, denominator: int) -> int:
    """2 ** -(numerator / denominator), a fraction below 1, in units of 2**-64: its binary digits choose the roots."""
    product = 1 << _FINE
    for root in ROOTS:
        numerator *= 2
        if numerator >= denominator:
            numerator -= denominator
            product = product * root >> _FINE
    return product


@attrs.define(slots=False)
class Decay:
    """Halves a count every `half_life` units of time, smoothly; each result is rounded down."""

    half_life: int
    _factors: dict[int, int] = attrs.field(factory=dict, repr=False, eq=False)

    def after(self, count: int, elapsed: int) -> int:
        """What is left of `count` after that time."""
        if not elapsed or not count:
            return count
        whole, part = divmod(elapsed, self.half_life)
        factor = self._factors.get(part)
        if factor is None:
            factor = self._factors[part] = power(part, self.half_life)
        return count * factor >> (_FINE + whole)
