"""Decisions about one token's row: drop, substitute, lower precision, reroute, fewer experts.

A row lists a token's experts in router order with their weights; scores are one for each expert of the layer. Nothing
here knows a cache: `absent` and `resident` say what is missing and what is there. Each returns what is to be done, and
changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Literal

Precision = Literal["high", "low", "skip"]


def top(weights: Sequence[float] | None) -> int:
    """The place of the expert that is never given up: the highest weight, the first of equals (XC-MISS-003).

    Without weights (None) the first-ranked, 0. The functions below take it as `best`.
    """
    return 0 if weights is None else max(range(len(weights)), key=lambda place: (weights[place], -place))


def light(weights: Sequence[float], factor: float) -> list[bool]:
    """Which places weigh less than factor / k and may be dropped; the top one never (XC-MISS-004).

    Source: BigMoeOnEdge --drop-cold-experts (factor 0.5 to 1).
    """
    limit, first = factor / len(weights), top(weights)
    return [place != first and weight < limit for place, weight in enumerate(weights)]


def late_ranked(count: int, rank: int, best: int = 0) -> list[bool]:
    """Which places may be dropped by rank: those from `rank` on, counted from 1; the top one never (XC-MISS-004).

    Source: SpecMD, after arXiv 2412.00099 (rank 3).
    """
    return [place != best and place + 1 >= rank for place in range(count)]


def kept(absent: Sequence[bool], droppable: Sequence[bool]) -> list[bool]:
    """Which places are served: all but those that are absent and may be dropped."""
    return [not (missing and may) for missing, may in zip(absent, droppable, strict=True)]


def renormalised(weights: Sequence[float], served: Sequence[bool]) -> tuple[float, ...]:
    """The weights of the served places, scaled to sum to what all of them summed to (XC-MISS-005).

    Unchanged where all are served, or the served ones weigh nothing.
    """
    left = [weight for weight, serve in zip(weights, served, strict=True) if serve]
    whole, part = math.fsum(weights), math.fsum(left)
    if len(left) == len(weights) or part == 0:
        return tuple(left)
    return tuple(weight * whole / part for weight in left)


def substituted(
    row: Sequence[int],
    absent: Sequence[bool],
    scores: Sequence[float],
    resident: Collection[int],
    tolerance: float,
    best: int = 0,
) -> list[int]:
    """The row, each absent expert but the top one replaced where a resident scores nearly as much (XC-MISS-006).

    Nearly: no more than `tolerance` below. Of several the highest score is taken, then the lowest id; none twice, none
    that the row asks for itself. It takes the place and the weight of the one that it replaces. Source: SpecMD, after
    arXiv 2508.18983, where it fails: GSM8K .008 to .073.
    """
    found, free = list(row), {expert for expert in resident if expert not in row}
    for place, expert in enumerate(row):
        if place == best or not absent[place]:
            continue
        near = [other for other in free if scores[other] >= scores[expert] - tolerance]
        if near:
            found[place] = min(near, key=lambda other: (-scores[other], other))
            free.discard(found[place])
    return found


def precisions(weights: Sequence[float], high: float, low: float) -> list[Precision]:
    """In which precision each place is worth reading, by the weight of the places before it (XC-MISS-007).

    Up to `high` in full, up to `low` in low precision, beyond it not at all; the top one always in full. Source: HOBBIT
    (0.6 and 0.9), arXiv 2411.01433.
    """
    found: list[Precision] = []
    best = top(weights)
    for place in range(len(weights)):
        before = math.fsum(weights[:place])
        found.append("high" if place == best or before <= high else "low" if before <= low else "skip")
    return found


def low_bytes(size: int, bits: int, low_bits: int) -> int:
    """Bytes of a record in low precision: its share of the bits, rounded up."""
    return -(-size * low_bits // bits)


def rerouted(scores: Sequence[float], resident: Collection[int], k: int, bonus: float) -> list[int]:
    """The k experts with the highest biased score, z + bonus for residents; equal ones by id (XC-MISS-008).

    Source: arXiv 2412.00099, SpecMD; bonus = lambda x delta, see `spread`.
    """
    biased = [score + (bonus if expert in resident else 0.0) for expert, score in enumerate(scores)]
    return sorted(range(len(scores)), key=lambda expert: (-biased[expert], expert))[:k]


def original_weights(scores: Sequence[float], chosen: Sequence[int]) -> tuple[float, ...]:
    """The weights of the chosen experts: the softmax of their original scores, whatever chose them (XC-MISS-008)."""
    peak = max(scores[expert] for expert in chosen)
    powers = [math.exp(scores[expert] - peak) for expert in chosen]
    return tuple(power / math.fsum(powers) for power in powers)


def spread(scores: Sequence[float], delta: str) -> float:
    """One token's delta: the mean of its scores (`mean`), or their range (`range`, `own_range`)."""
    return math.fsum(scores) / len(scores) if delta == "mean" else max(scores) - min(scores)


def fewer(row: Sequence[int], k: int, best: int = 0) -> list[bool]:
    """Which places are served when k experts are asked for at run time: the top one, then the first (XC-MISS-009).

    Source: MoE-PHDS.
    """
    before = min(k, len(row)) - (best >= k)
    return [place < before or place == best for place in range(len(row))]
