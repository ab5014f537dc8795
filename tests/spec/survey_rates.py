"""The survey's tables of decode hits (its sections 9.2 and 9.2b), a row at a time; `python -m tests.spec.survey_rates`
measures every cell and writes tests/data/survey/decode-hits.json, which the book shows beside what was published.

How the survey replays was found by trying, and the machine does it where it can: hits are touched before misses under
equal slots and in router order under bytes, a repeat does not promote, a share of the records is rounded to the nearest
slot, and a layer's share of bytes is the whole budget divided by the layers.

A cache in each layer stays over its share after the prompt, of which it holds all, until its first decoded event: no
room of this specification does that. So each layer is a machine of its own here, resized during that event.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from expertcache_spec.eviction import Policy, Value, make
from expertcache_spec.metrics import Counters, Row
from expertcache_spec.model import Budget, Scope, parse_size, quotas
from expertcache_spec.replay import replay, run_event
from expertcache_spec.residency import Residency, Settings
from expertcache_spec.residency.settings import Repeats
from expertcache_spec.trace import Event, Trace

from . import recordings

FILE = recordings.DATA / "survey" / "decode-hits.json"
COLUMNS: dict[str, tuple[str, dict[str, Value]]] = {
    "lru": ("lru", {}),
    "clock": ("clock", {"initial": 1}),
    "lfu": ("lfu", {}),
    "lfu-reset": ("lfu-reset", {}),
    "lfru": ("lfru", {"clock": "lookups", "ties": "key"}),
    "class": ("class-lru", {}),
    "heat1": ("heat-lru", {"hot": 1}),
    "heat4": ("heat-lru", {"hot": 4}),
    "half16": ("lfu-aged", {"every": 16, "places": 40}),
    "half32": ("lfu-aged", {"every": 32, "places": 40}),
}
"""Column of 9.2b to the policy and its parameters: the aged LFU there does not round, its LFRU counts in lookups."""


class Place(NamedTuple):
    """One row of the tables: a trace, the room for it, and how it is replayed."""

    name: str
    room: str
    """Percent of all records, or MiB."""
    scope: Scope
    repeats: Repeats = "ignore"

    def __str__(self) -> str:
        return ", ".join(self)


def table(text: str, *columns: str) -> dict[Place, dict[str, str]]:
    """Lines of trace, amount, unit, scope, repeats and figures, as place to column to figure; - where there is none."""
    found = {}
    for line in text.strip().splitlines():
        name, amount, unit, scope, repeats, *figures = line.split()
        row = {column: figure for column, figure in zip(columns, figures, strict=True) if figure != "-"}
        found[Place(name, f"{amount} {unit}", scope, repeats)] = row  # type: ignore[arg-type]
    return found


def _of(trace: Trace, layer: int) -> list[Event]:
    return [event for event in trace.events if event.layer == layer]


def _layer(trace: Trace, layer: int, policy: Callable[[], Policy], share: Budget, how: Settings) -> Counters:
    """One layer's cache, which keeps all of the prompt until its first decoded event."""
    cache = Residency(trace.geometry, Budget(slots=trace.geometry.experts), policy, how)
    for event in _of(trace, layer):
        if event.phase == "prefill" or cache.budget == share:
            run_event(cache, event)
            continue
        selection = cache.select(event)
        for key in selection.reads:
            cache.complete(key)
        cache.resize(share)
        cache.release(selection.ticket)
    return cache.counters


def _counted(place: Place, trace: Trace, policy: str, parameters: dict[str, Value]) -> Sequence[Counters]:
    """What the caches count: one, or one a layer."""
    amount, unit = place.room.split()
    layers = trace.geometry.routed
    if unit == "%":
        slots, touch = round(len(layers) * trace.geometry.experts * int(amount) / 100), "hits_first"
        whole, shares = Budget(slots=slots), [Budget(slots=share) for share in quotas(slots, len(layers))]
    else:
        size, touch = parse_size(f"{amount}{unit}").bytes, "router"
        whole, shares = Budget(bytes=size), [Budget(bytes=size // len(layers))] * len(layers)
    how = Settings(room="trim", overflow="bypass", touch=touch, repeats=place.repeats)  # type: ignore[arg-type]
    if place.scope == "global":
        return [replay(trace, policy, whole, how, parameters=parameters).counters]
    parts = zip(layers, shares, strict=True)
    return [
        _layer(trace, layer, make(policy, "indexed", _of(trace, layer), parameters), share, how)
        for layer, share in parts
    ]


def measure(place: Place, column: str) -> dict[str, float]:
    """Decode hits of a cell and their percentage; under a byte budget also the MiB that a decoded token reads."""
    trace = recordings.bigmoe(place.name)
    policy, parameters = COLUMNS.get(column, (column, {}))
    total = Row()
    for counters in _counted(place, trace, policy, parameters):
        for key, row in counters.rows.items():
            if key.phase == "decode":
                total.add(row)
    found: dict[str, float] = {"hits": total.hits, "percent": round(100 * total.hits / total.lookups, 2)}
    if place.room.endswith("MiB"):
        tokens = len({event.pass_index for event in trace.events if event.phase == "decode"})
        found["MiB"] = round(total.bytes_read / tokens / 2**20, 1)
    return found


if __name__ == "__main__":
    from .test_survey_rates import HITS

    measured = {str(place): {column: measure(place, column) for column in row} for place, row in HITS.items()}
    FILE.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
