"""How the cost of a lookup grows with capacity: arithmetic on measured seconds."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import NamedTuple

BASELINE = "lru"
"""O(1) by construction: what its cost grows by is what larger tables cost the processor's caches."""


class Growth(NamedTuple):
    """One policy: microseconds a lookup by capacity, and what they say."""

    costs: dict[int, float]
    """Capacity to microseconds of CPU time a lookup."""
    factor: float
    """Cost at the largest capacity by cost at the smallest."""
    exponent: float
    """p of the least-squares fit cost ~ capacity ** p."""
    beside_baseline: float | None
    """`factor` by that of the baseline; None where it was not measured."""


def logarithm(capacities: Mapping[int, float]) -> float:
    """What log(capacity) grows by over the same range: the floor for `beside_baseline`."""
    return log(max(capacities)) / log(min(capacities))


def growth(costs: Mapping[str, Mapping[int, float]]) -> dict[str, Growth]:
    """Policy to what its costs say; every policy has been measured at the same capacities, two at least."""
    factors = {policy: found[max(found)] / found[min(found)] for policy, found in costs.items()}
    base = factors.get(BASELINE)
    return {
        policy: Growth(dict(found), factors[policy], exponent(found), None if base is None else factors[policy] / base)
        for policy, found in costs.items()
    }


def exponent(costs: Mapping[int, float]) -> float:
    """The slope of log cost over log capacity."""
    points = [(log(capacity), log(cost)) for capacity, cost in costs.items()]
    middle_x, middle_y = (sum(axis) / len(points) for axis in zip(*points, strict=True))
    rise = sum((x - middle_x) * (y - middle_y) for x, y in points)
    return rise / sum((x - middle_x) ** 2 for x, _ in points)
