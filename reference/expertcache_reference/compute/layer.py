"""One routed layer: rows to their experts, experts as their bytes come, the weighted sum in slot order."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from expertcache_reference.compute.backends import Backend
from expertcache_reference.compute.records import Array
from expertcache_reference.compute.serving import Serve
from expertcache_spec.errors import InvalidTrace
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


def rows_of(event: Event) -> dict[Key, list[int]]:
    """The rows that ask for each key, in rising order; keys in the order of the event."""
    found: dict[Key, list[int]] = {key: [] for key in event.keys}
    for number, row in enumerate(event.rows):
        for expert in row:
            found[Key(event.layer, expert)].append(number)
    return found


def mixture(event: Event, x: Array, serve: Serve, backend: Backend) -> Array:
    """The weighted sum of the event's experts for its (rows, width) inputs.

    Raises `InvalidTrace` for an event without weights, and what serving raises; the lease has ended either way.
    """
    rows, outputs = rows_of(event), dict[Key, Array]()
    with serve(event) as work:
        for batch in work.batches():
            for key in batch.keys:
                outputs[key] = backend.expert(work.record(key), x[rows[key]])
    return combine(event, rows, outputs, x.shape[1])


def combine(event: Event, rows: Mapping[Key, list[int]], outputs: Mapping[Key, Array], width: int) -> Array:
    """Each row's sum of weight times output, added up in the order of the row's experts, from zero, in float32."""
    if event.weights is None:
        raise InvalidTrace("an event without weights", where=f"layer {event.layer}", cure="give the router's weights")
    most = max(map(len, event.rows))
    terms = np.zeros((most, len(event.rows), width), np.float32)
    for key, numbers in rows.items():
        output = outputs[key]
        for place, number in enumerate(numbers):
            slot = event.rows[number].index(key.expert)
            terms[slot, number] = np.float32(event.weights[number][slot]) * output[place]
    total = np.zeros((len(event.rows), width), np.float32)
    for term in terms:
        total += term
    return total
