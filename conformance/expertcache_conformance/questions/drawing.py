"""Questions drawn: every small chunk plan, every small layout, seeded schedules of replays."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import attrs

from expertcache_conformance.questions.chunks import ChunkQuestion
from expertcache_conformance.questions.layouts import LayoutQuestion
from expertcache_conformance.questions.schedules import ScheduleQuestion
from expertcache_conformance.scenarios import Choose, layer_ordered_events
from expertcache_spec.fanout import MOST_CHUNKS, PAGES
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import Replay
from expertcache_spec.residency import Settings
from expertcache_spec.schedule import Costs, Discipline, Load, Request, Scenario, Storage, divided, loads
from expertcache_spec.schedule.disciplines import ORDERS
from expertcache_spec.trace import Trace

WANTED = (-1, *range(MOST_CHUNKS + 3), 100)
"""Chunks asked for: none, too few, each legal number, too many."""
REAL_SIZES = (7_077_888, 5_439_488, 9_953_280, 12_533_760)
"""Records of published models; the third is no whole number of pages of 16 and 64 KiB."""
PARTS = (("gate", 3), ("up", 3), ("down", 5)), (("gate", 4), ("up", 4), ("down", 4)), (("weights", 7),)
"""Small records whose layers differ in size."""
NANOSECOND = 10**9
"""The bandwidth at which a byte takes a nanosecond."""


def chunk_questions() -> Iterator[ChunkQuestion]:
    """Every number of pages up to 26, the sizes around them, and published records, in pages of every system."""
    for page, pages, wanted in product(PAGES, range(27), WANTED):
        for size in {pages * page, max(0, pages * page - 1), pages * page + 512}:
            yield ChunkQuestion(size, page, wanted, size)
    for page, size, wanted in product(PAGES, REAL_SIZES, WANTED):
        yield ChunkQuestion(size, page, wanted, size)


def tiered_questions() -> Iterator[ChunkQuestion]:
    """Records of two sizes in turn, each the larger one once."""
    for page, before, pages, wanted in product(PAGES, (1, 3, 8, 17), (1, 2, 5, 8, 16), range(1, MOST_CHUNKS + 1)):
        yield ChunkQuestion(pages * page, page, wanted, before * page)
        yield ChunkQuestion(pages * page, page, wanted, before * page + 512)


def layout_questions(kind: str) -> Iterator[LayoutQuestion]:
    """Small models of one to three layers, each alignment and header beside them, and one of real proportions."""
    rows = 1
    for experts, layers, alignment, header in product((1, 2, 5), (1, 2, 3), (1, 4, 16), (0, 24)):
        parts: tuple[Any, ...] = PARTS[:layers]
        if kind == "bundled-rows":
            rows = 3
            parts = tuple(tuple((name, size * rows) for name, size in each) for each in parts)
        roll = 2 * max(sum(size for _, size in each) for each in parts) if kind == "flat-blobs" else 0
        yield LayoutQuestion(kind, experts, parts, alignment, header, rows, roll)
    real = (("gate", 1_769_472), ("up", 1_769_472), ("down", 1_769_472), ("scales", 512))
    yield LayoutQuestion(kind, 8, (real, real), 4096, 0, 64, 32 * 10**6 if kind == "flat-blobs" else 0)


def schedule_questions(discipline: str, count: int, *, exact: bool = False) -> Iterator[ScheduleQuestion]:
    """`count` seeded scenarios under the discipline; the n-th is the same everywhere."""
    for number in range(count):
        choose = random.Random(f"schedule {discipline} {number}").randrange
        yield ScheduleQuestion(scenario(discipline, choose), exact)


def scenario(name: str, choose: Choose) -> Scenario:
    """A few events of a replay with small costs, any storage, guards and guesses; small numbers mean simple ones."""
    layers = 1 + choose(2)
    model = Geometry(layers, 4 + choose(3), 1 + choose(3), (1,) * layers)
    events = layer_ordered_events(model, choose, 1 + choose(4), rows=1)
    budget, settings = Budget(slots=model.top_k + choose(4)), Settings(overflow="bypass")
    found = [load for _, load in loads(Replay(Trace(model, events, "drawn"), "lru", budget, settings))][-4:]
    if choose(2):
        found = [attrs.evolve(load, stream=number % 2) for number, load in enumerate(found)]
    if choose(2):
        found = [_guessing(load, model, choose) for load in found]
    costs = Costs(**{field.name: choose(5) for field in attrs.fields(Costs)})
    storage = Storage(1 + choose(3), 1 + choose(3), NANOSECOND, choose(3))
    records = [_record(choose)]
    guards: dict[str, Any] = {}
    if choose(2):
        guards |= {"threshold": 1 + choose(2), "tokens": choose(3), "entries": choose(3)}
    if choose(2):
        records += [_record(choose) for _ in range(layers - 1)]
    if not choose(3):
        warm = {"warm_bandwidth": (2 + choose(3)) * NANOSECOND, "warm_latency": choose(2)}
        storage = attrs.evolve(storage, warm_percent=(100, 50, 25)[choose(3)], **warm)
    if choose(2):
        guards["reads"] = ORDERS[choose(len(ORDERS))]
    return Scenario(tuple(found), tuple(records), costs, storage, Discipline(name, **guards))  # type: ignore[arg-type]


def _record(choose: Choose) -> tuple[Request, ...]:
    return divided(*([1 + choose(4) for _ in range(1 + choose(most))] for most in (3, 2)))


def _guessing(load: Load, model: Geometry, choose: Choose) -> Load:
    guesses = {Key(choose(model.layers), choose(model.experts)) for _ in range(choose(3))}
    return attrs.evolve(load, prefetches=tuple(sorted(guesses - set(load.keys) - set(load.victims))))
