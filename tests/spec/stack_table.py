"""Which policies are stack policies, under which touch order: the answers, the counterexamples, and the search.

A stack policy holds, after every event, all in a larger cache that it holds in a smaller one. `python -m
tests.spec.stack_table POLICY TOUCH WIDEST EVENTS SELECTIONS` replays every trace of one layer up to those bounds, keys
numbered as they come, at every capacity, and prints how many cases there were and the first one that breaks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import product

import attrs

from expertcache_spec.eviction import POLICIES, Card, make
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import run_event
from expertcache_spec.residency import Residency, Settings
from expertcache_spec.trace import Event, Trace

Row = tuple[int, ...]


@attrs.frozen
class Broken:
    """A trace after which `slots` hold what one slot more does not; `streams`: see `interleaved`."""

    slots: int
    rows: tuple[Row, ...]
    streams: bool = False

    @property
    def trace(self) -> Trace:
        """The events: decode of one stream and layer, or of many streams."""
        return interleaved(self.rows) if self.streams else decode(self.rows)


def decode(rows: Sequence[Row]) -> Trace:
    """One layer, one stream, an event for each row."""
    geometry = Geometry(1, 1 + max(key for row in rows for key in row), max(map(len, rows)))
    return Trace(geometry, tuple(Event(0, (row,), pass_index=number) for number, row in enumerate(rows)))


def interleaved(rows: Sequence[Row]) -> Trace:
    """A stream for each row: every one runs layer 0, asking for expert 0, and then every one layer 1, for its row."""
    geometry = Geometry(2, 1 + max(key for row in rows for key in row), max(map(len, rows)))
    first = (Event(0, ((0,),), stream) for stream in range(len(rows)))
    return Trace(geometry, (*first, *(Event(1, (row,), stream) for stream, row in enumerate(rows))))


def singles(*ids: int) -> tuple[Row, ...]:
    """One key an event."""
    return tuple((expert,) for expert in ids)


def contents(trace: Trace, policy: str | Card, slots: int, settings: Settings) -> list[frozenset[Key]]:
    """Who is resident after each event."""
    machine = Residency(trace.geometry, Budget(slots=slots), make(policy, future=trace.events), settings)
    found = []
    for event in trace.events:
        run_event(machine, event)
        found.append(machine.residents())
    return found


def is_included(trace: Trace, policy: str | Card, slots: int, settings: Settings) -> bool:
    """Whether `slots` always hold a part of what one more holds."""
    smaller, larger = (contents(trace, policy, size, settings) for size in (slots, slots + 1))
    return all(small <= large for small, large in zip(smaller, larger, strict=True))


FIFO = Broken(2, singles(0, 1, 2, 0, 3))
COUNTED_ANEW = Broken(2, singles(0, 0, 1, 2, 1, 2, 3))
MARKED = Broken(2, singles(0, 0, 1, 1, 2, 3))
BY_INSERT = Broken(3, ((0,), (1, 2, 3), (0, 1, 2), (3, 4)))
HOT = Broken(2, singles(0, 1, 2, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 3, 4))

NEVER: dict[str, Broken] = {
    "fifo": FIFO, "s3-fifo": FIFO, "lfu-reset": COUNTED_ANEW, "slru": COUNTED_ANEW, "clock": MARKED, "sieve": MARKED,
    "arc": Broken(2, singles(0, 0, 1, 2, 1, 3)), "two-q": Broken(3, singles(0, 1, 2, 3, 0, 4)),
    "clock-lru-k": Broken(2, singles(0, 0, 1, 1, 2, 3, 4, 0, 1, 3, 4)), "heat-lru": HOT, "lfru-heat": BY_INSERT,
    "random": Broken(2, singles(0, 1, 2, 3)), "least-stale": Broken(2, ((0,), (1, 2), (0,), (3,)), streams=True),
}  # fmt: skip
"""Policies that are none under either touch order, with a trace that breaks under both."""

ROUTER_ONLY: dict[str, Broken] = {
    **dict.fromkeys(("lru", "lfu", "lfu-aged", "lfru", "class-lru", "window", "static"), BY_INSERT),
    **dict.fromkeys(("route-hotness", "farthest-layer"), BY_INSERT),
    "score": Broken(3, ((0, 1, 2), (3,), (0, 1, 2), (4,))),
    "probability-visits": Broken(2, ((0,), (1, 2), (3, 0), (1,))),
}  # fmt: skip
"""Policies that are one under touch `router`, with a trace that breaks under `hits_first`."""

EITHER = tuple(name for name in POLICIES if name not in NEVER and name not in ROUTER_ONLY)
"""Policies that are one under either: they look at nothing that the cache does."""


def answer(policy: str, touch: str) -> bool:
    """Whether the policy is a stack policy under that touch order."""
    return policy in EITHER or (policy in ROUTER_ONLY and touch == "router")


# ---------------------------------------------------------------------------------------------- the search


def following(used: int, widest: int) -> Iterator[Row]:
    """Every row of up to `widest` of the keys used so far and of new ones, which are numbered as they come."""

    def longer(row: Row, fresh: int) -> Iterator[Row]:
        if row:
            yield row
        if len(row) < widest:
            for key in [*(key for key in range(used) if key not in row), used + fresh]:
                yield from longer((*row, key), fresh + (key == used + fresh))

    yield from longer((), 0)


def small_traces(widest: int, events: int, selections: int) -> Iterator[tuple[Row, ...]]:
    """Every trace within the bounds that is no beginning of a longer one."""

    def longer(rows: tuple[Row, ...], left: int) -> Iterator[tuple[Row, ...]]:
        if len(rows) == events or not left:
            yield rows
            return
        used = 1 + max((key for row in rows for key in row), default=-1)
        for row in following(used, min(widest, left)):
            yield from longer((*rows, row), left - len(row))

    yield from longer((), selections)


def search(policy: str, touch: str, widest: int, events: int, selections: int) -> tuple[int, str]:
    """How many cases there are up to the first that breaks, and that one; a case is a trace at a capacity."""
    cases, settings = 0, Settings(touch=touch)  # type: ignore[arg-type]
    for rows in small_traces(widest, events, selections):
        trace = decode(rows)
        for slots in range(trace.geometry.top_k, trace.geometry.experts):
            cases += 1
            if not is_included(trace, policy, slots, settings):
                return cases, f"{slots} {rows}"
    return cases, ""


if __name__ == "__main__":
    policies, touches, *bounds = sys.argv[1:]
    for each, order in product(policies.split(","), touches.split(",")):
        print(json.dumps([each, order, *search(each, order, *map(int, bounds))]), flush=True)
