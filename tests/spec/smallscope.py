"""All small traces, replayed in both forms of every policy; run as a module, without contracts for speed.

`python -m tests.spec.smallscope POLICIES KIND KEYS EVENTS CAPACITY ROW` takes every sequence of that many events that
each ask for up to ROW keys, in every router order. KIND is `single` (ROW is 1), `sets` (under both touch orders) or
`rooms` (under every room as well), all of one layer; or, under touch `router`, `layers` (one stream walks two layers)
or `streams` (two streams walk them side by side). Prints how many cases, steps and victims were compared, and the first
differences.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import Any

from expertcache_spec.eviction import Form, make
from expertcache_spec.model import Budget, Geometry
from expertcache_spec.replay import run_event
from expertcache_spec.residency import Residency, Settings, Step
from expertcache_spec.trace import Event

from .settings_of_policies import SUBJECTS

Row = tuple[int, ...]


def replay(
    geometry: Geometry, policy: str, events: Sequence[Event], slots: int, chosen: Settings, form: Form
) -> list[Step]:
    """The steps of one form."""
    machine = Residency(geometry, Budget(slots=slots), make(SUBJECTS[policy], form, events), chosen)
    return [run_event(machine, event) for event in events]


STREAMS = {"layers": 1, "streams": 2}
"""Kind to how many streams walk its two layers."""


def place(kind: str, number: int) -> tuple[int, int, int]:
    """Layer, stream and pass of an event: streams take turns in a layer, and layers in a pass."""
    if kind not in STREAMS:
        return 0, 0, number
    visit, stream = divmod(number, STREAMS[kind])
    return visit % 2, stream, visit // 2


def traces(kind: str, rows: Sequence[Row], events: int) -> Iterator[tuple[Event, ...]]:
    """Every sequence of exactly `events` of the rows; their beginnings are all the shorter ones."""
    places = (place(kind, number) for number in range(events))
    return product(*([Event(layer, (row,), stream, index) for row in rows] for layer, stream, index in places))


def settings(policy: str, kind: str) -> list[Settings]:
    """What to run a policy under: everything that tells whole events apart, and refusal where it is defined."""
    indifferent = policy == "fifo" or SUBJECTS[policy].offline
    chosen = [
        Settings(room=room, touch=touch, overflow="waves")
        for room in (("reserve", "trim", "retain") if kind == "rooms" else ("reserve",))
        for touch in (("router",) if kind == "single" or kind in STREAMS or indifferent else ("router", "hits_first"))
    ]
    return chosen + ([Settings(admission="refusable", overflow="waves")] if SUBJECTS[policy].can_refuse else [])


def lengths(policy: str, events: int) -> range:
    """A shorter trace is the beginning of a longer one, except to a policy that knows the future."""
    return range(1 if SUBJECTS[policy].offline else events, events + 1)


def every_row(keys: int, widest: int) -> list[Row]:
    """What one event may ask for: up to `widest` of the keys, in every router order."""
    return [ids for size in range(1, widest + 1) for ids in permutations(range(keys), size)]


def compare(policies: Sequence[str], kind: str, keys: int, events: int, capacity: int, widest: int) -> dict[str, Any]:
    """Both forms of the policies over every trace at every capacity."""
    geometry, rows = Geometry(2 if kind in STREAMS else 1, keys, widest), every_row(keys, widest)
    cases = steps = victims = 0
    differences: list[str] = []
    for policy in policies:
        for length in lengths(policy, events):
            for trace, slots, chosen in product(
                traces(kind, rows, length), range(1, capacity + 1), settings(policy, kind)
            ):
                indexed, declarative = (
                    replay(geometry, policy, trace, slots, chosen, form) for form in ("indexed", "declarative")
                )
                cases, steps = cases + 1, steps + length
                victims += sum(len(step.victims) for step in indexed)
                if indexed != declarative and len(differences) < 5:
                    differences.append(f"{policy} {slots} {chosen} {[(event.layer, *event.rows) for event in trace]}")
    return {"cases": cases, "steps": steps, "victims": victims, "differences": differences}


if __name__ == "__main__":
    names, kind, *bounds = sys.argv[1:]
    print(json.dumps(compare(names.split(","), kind, *map(int, bounds))))
