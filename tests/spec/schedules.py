"""Scenarios for the tests of chapter `schedule`: random ones, all tiny ones, and every schedule of a tiny plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from random import Random

import attrs

from expertcache_spec.model import Budget, Key
from expertcache_spec.replay import Replay
from expertcache_spec.residency import Settings
from expertcache_spec.schedule import (
    COMPUTE,
    Costs,
    Discipline,
    Load,
    Plan,
    Record,
    Scenario,
    Schedule,
    Span,
    Storage,
    TaskId,
    divided,
    evaluate,
    load_of,
    loads,
)  # fmt: skip
from expertcache_spec.schedule.disciplines import NAMES

from .strategies import random_geometry, random_trace

BYTE = 10**9
"""The bandwidth at which a byte takes a nanosecond."""
SMALL = divided([2], [1])
FREE_OF_OVERHEAD = {"dispatch": 0, "handoff": 0}


def scenario(
    all_loads: Sequence[Load], record: Record = SMALL, name: str = "sync", *, workers: int = 1,
    lanes: int = 1, latency: int = 0, threshold: int = 1, reads: str = "", **costs: int,
) -> Scenario:  # fmt: skip
    """A scenario in small numbers: one byte takes one nanosecond."""
    how = {"reads": reads} if reads else {}
    discipline = Discipline(name, threshold, **how)  # type: ignore[arg-type]
    return Scenario(tuple(all_loads), (record,), Costs(**costs), Storage(workers, lanes, BYTE, latency), discipline)


def under(case: Scenario, name: str, threshold: int = 1, reads: str = "record") -> Scenario:
    """The same scenario under that discipline, requests in that order, without guards."""
    return attrs.evolve(case, discipline=Discipline(name, threshold, reads=reads))  # type: ignore[arg-type]


def random_record(random: Random, largest: int = 4) -> Record:
    """One to three requests for gate and up, one or two for down."""
    sizes = [[random.randint(0, largest) for _ in range(random.randint(1, most))] for most in (3, 2)]
    return divided(*sizes)


def random_scenario(seed: int, *, streams: int = 3, speculation: bool = True, overhead: bool = True) -> Scenario:
    """The scenario of that seed: the loads of a replay, with small costs and any storage and discipline."""
    random = Random(seed)
    geometry = random_geometry(random, sized=False)
    trace = random_trace(random, geometry, streams=random.randint(1, streams), passes=random.randint(1, 3))
    slots = random.randint(0, geometry.experts * len(geometry.routed))
    found = [load for _, load in loads(Replay(trace, "lru", Budget(slots=slots), Settings(overflow="bypass")))][:8]
    if speculation:
        found = [guessing(random, load, geometry.layers, geometry.experts) for load in found]
    costs = {field.name: random.randint(0, 4) for field in attrs.fields(Costs)}
    costs |= {} if overhead else FREE_OF_OVERHEAD
    storage = Storage(random.randint(1, 4), random.randint(1, 3), BYTE, random.randint(0, 2))
    records = tuple(random_record(random) for _ in range(geometry.layers))
    discipline = Discipline(random.choice(NAMES), random.randint(1, 2), random.randint(0, 1))
    return Scenario(tuple(found), records, Costs(**costs), storage, discipline)


def guessing(random: Random, load: Load, layers: int, experts: int) -> Load:
    """The load with up to two guesses, most of them about the next layer."""
    layer = (load.layer + 1) % layers if random.random() < 0.8 else random.randrange(layers)
    guesses = {Key(layer, random.randrange(experts)) for _ in range(random.randint(0, 2))} - set(load.keys)
    return attrs.evolve(load, prefetches=tuple(sorted(guesses)))


def tiny_events(
    *, slots: int = 3, sizes: int = 2, costs: Sequence[int] = (0, 1, 2), overheads: Sequence[int] = (0, 1)
) -> Iterator[Scenario]:
    """Every event of up to `slots` slots, over all masks, sizes, costs, workers, lanes and latencies that small."""
    for width in range(1, slots + 1):
        for mask, gate_bytes, down_bytes in product(range(2**width), range(1, sizes + 1), range(1, sizes + 1)):
            load = load_of(width, [slot for slot in range(width) if mask >> slot & 1])
            for gate_up, down, dispatch, handoff in product(costs, costs, overheads, overheads):
                for workers, lanes, latency in product((1, 2), (1, 2), (0, 1)):
                    yield scenario(
                        [load], divided([gate_bytes], [down_bytes]), workers=workers, lanes=lanes, latency=latency,
                        gate_up=gate_up, down=down, dispatch=dispatch, handoff=handoff,
                    )  # fmt: skip


def every_schedule(plan: Plan, storage: Storage) -> Iterator[Schedule]:
    """Every schedule of the plan of one event that starts each task of the queue as early as its order allows.

    One for each order in which the dependencies let the compute queue work; the reads wait for nothing but the route.
    """
    reads = {task: span for task, span in evaluate(plan, storage).spans.items() if span.lane != COMPUTE}
    queue = {task.id: task for task in plan.tasks if not task.is_read}

    def extend(spans: dict[TaskId, Span], now: int) -> Iterator[Schedule]:
        if len(spans) == len(plan.tasks):
            yield Schedule(dict(spans), plan.sums)
        for name, task in queue.items():
            if name not in spans and task.after <= spans.keys():
                start = max([now, *(spans[before].end for before in task.after)])
                spans[name] = Span(start, start + task.duration, COMPUTE)
                yield from extend(spans, spans[name].end)
                del spans[name]

    return extend(dict(reads), 0)
