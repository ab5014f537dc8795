"""Forecast: tokens a second of a replayed trace on stated hardware, under each discipline, and where the time goes.

One event runs at a time, in the order of the replay, without speculation. The time of a stream is then the sum of the
times of its events (XC-SCHED-023), and that of an event depends on how many records it has and misses: each kind of
event is scheduled once, and counted. Only decode is timed; prefill is replayed, because it fills the cache.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import attrs

from expertcache_reference.timeline.hardware import Hardware
from expertcache_spec.errors import InvalidTrace
from expertcache_spec.model import Geometry
from expertcache_spec.schedule import Breakdown, Discipline, Load, Scenario, breakdown, load_of, schedule
from expertcache_spec.schedule.measures import NOTHING
from expertcache_spec.trace import Event


class Kind(NamedTuple):
    """What decides how long an event takes, apart from the discipline: bytes of a record, records, missing ones."""

    bytes: int
    experts: int
    missing: int


@attrs.frozen
class Forecast:
    """The decode of a trace under one discipline.

    events: how many events there are. overlapped: how many of them miss something and are let through by the guards.
    total: the breakdown of all tokens. tokens: decode passes.
    """

    discipline: Discipline
    tokens: int
    events: int
    overlapped: int
    total: Breakdown

    @property
    def speed(self) -> float:
        """Tokens a second."""
        return self.tokens * 1e9 / self.total.makespan if self.total.makespan else float("inf")


@attrs.define
class Tally:
    """Counts the decode events of a replay, by kind, and by the discipline that each is taken under."""

    geometry: Geometry
    disciplines: Sequence[Discipline]
    tokens: int = 0
    counts: list[Counter[tuple[Kind, bool]]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.counts = [Counter() for _ in self.disciplines]

    def add(self, event: Event, load: Load) -> None:
        """Count one event; other phases than decode are left out."""
        if event.phase != "decode":
            return
        self.tokens += event.layer == self.geometry.routed[-1]
        kind = Kind(self.geometry.size(event.layer), len(load.keys), len(load.missing))
        for discipline, counts in zip(self.disciplines, self.counts, strict=True):
            counts[kind, discipline.taken(load) == discipline.name] += 1


def tallied(pairs: Iterable[tuple[Event, Load]], geometry: Geometry, disciplines: Sequence[Discipline]) -> Tally:
    """The tally of all pairs; raises `InvalidTrace` where nothing decodes."""
    tally = Tally(geometry, disciplines)
    for event, load in pairs:
        tally.add(event, load)
    if not tally.tokens:
        raise InvalidTrace("no decode pass", where="trace", cure="tokens a second need decode; take another trace")
    return tally


def forecasts(tally: Tally, hardware: Hardware) -> list[Forecast]:
    """One forecast for each discipline of the tally."""
    return [
        forecast(counts, tally.tokens, hardware, discipline)
        for discipline, counts in zip(tally.disciplines, tally.counts, strict=True)
    ]


def forecast(
    counts: Mapping[tuple[Kind, bool], int], tokens: int, hardware: Hardware, discipline: Discipline
) -> Forecast:
    """The forecast of that many events of each kind, those with False under sync."""
    total = NOTHING
    for (kind, taken), count in counts.items():
        total = total + event_time(kind, hardware, discipline if taken else sync_like(discipline)).times(count)
    apart = discipline.name != "sync"
    overlapped = sum(count for (kind, taken), count in counts.items() if taken and apart and kind.missing)
    return Forecast(discipline, tokens, sum(counts.values()), overlapped, total)


def sync_like(discipline: Discipline) -> Discipline:
    """Sync with its requests in the order of that discipline: what an event runs under whose guards fail."""
    return Discipline("sync", reads=discipline.reads)


def event_time(kind: Kind, hardware: Hardware, discipline: Discipline) -> Breakdown:
    """The breakdown of one event of that kind, alone, with the discipline taken."""
    free = attrs.evolve(discipline, threshold=1, tokens=0, entries=0)
    load = load_of(kind.experts, range(kind.missing))
    case = Scenario((load,), (hardware.record(kind.bytes),), hardware.costs, hardware.storage, free)
    return breakdown(schedule(case))
