"""Gate weights in whole units, so that what is summed from them is the same on every machine and in every order."""

from __future__ import annotations

from expertcache_spec.model import Key
from expertcache_spec.trace import Event

UNIT = 1 << 30
"""The units of a weight of 1; a weight is rounded to the nearest unit, halves to even."""


def gate(event: Event) -> dict[Key, int]:
    """What the rows of the event give each of its keys, summed, in units; a row without weights shares 1 evenly."""
    found = dict.fromkeys(event.keys, 0)
    for number, row in enumerate(event.rows):
        weights = None if event.weights is None else event.weights[number]
        for rank, expert in enumerate(row):
            found[Key(event.layer, expert)] += UNIT // len(row) if weights is None else round(weights[rank] * UNIT)
    return found


def scores(event: Event) -> dict[Key, int]:
    """What the rows of the event score every expert of the layer, chosen or not; as `gate` where that is unknown."""
    if event.scores is None:
        return gate(event)
    return {
        Key(event.layer, expert): sum(round(value * UNIT) for value in column)
        for expert, column in enumerate(zip(*event.scores, strict=True))
    }
