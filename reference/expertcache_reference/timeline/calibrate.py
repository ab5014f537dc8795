"""Calibrate: the costs under which the specification's schedules take the times that somebody measured.

What a report gives: how many events of how many experts it had, how many misses, how long all reads took, how long a
token took under one discipline, and how much less under another. What it does not give, and is assumed here: that each
lookup misses independently of the others (`spread`), and that the two stages cost in proportion to their bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from math import comb
from typing import ClassVar

import attrs

from expertcache_reference.timeline.forecast import Forecast, Kind, event_time, forecast
from expertcache_reference.timeline.hardware import Hardware
from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.schedule import Costs, Discipline, load_of

_MOST = 1 << 40
"""Bytes a second, or nanoseconds, that no search goes beyond."""


class CannotCalibrate(ExpertCacheError):
    """Measured figures that no costs explain."""

    code: ClassVar[str] = "cannot-calibrate"


@attrs.frozen
class Measured:
    """What was measured, over all tokens, in nanoseconds.

    events: how many events missed how many of their `experts` records of `bytes` bytes. read_wall: all reads.
    time: the decode under `slow`. saved: how much less it took under `fast`.
    """

    tokens: int
    experts: int
    bytes: int
    events: Mapping[int, int]
    read_wall: int
    time: int
    saved: int
    slow: Discipline
    fast: Discipline

    def counts(self, discipline: Discipline) -> Counter[tuple[Kind, bool]]:
        """The events by kind, and whether the discipline is taken."""
        found: Counter[tuple[Kind, bool]] = Counter()
        for missing, count in self.events.items():
            load = attrs.evolve(load_of(self.experts, range(missing)), tokens=1 << 30, entries=1 << 30)
            taken = discipline.taken(load) == discipline.name
            found[Kind(self.bytes, self.experts, missing), taken] += count
        return found

    def forecast(self, hardware: Hardware, discipline: Discipline) -> Forecast:
        """The decode on that hardware under that discipline."""
        return forecast(self.counts(discipline), self.tokens, hardware, discipline)


def spread(events: int, experts: int, misses: int) -> dict[int, int]:
    """How many of the events miss 0, 1, 2 ... of their experts if every lookup misses independently.

    Whole events by the largest remainder; the totals are exact: `events` events and `misses` misses. Raises
    `CannotCalibrate` for no events or experts, and for more misses than lookups.
    """
    if events < 1 or experts < 1 or not 0 <= misses <= events * experts:
        said = f"{misses} misses in {events} events of {experts} experts"
        raise CannotCalibrate(said, where="spread", cure="give at least one event and expert, and misses up to all")
    lookups = events * experts
    weights = [comb(experts, m) * misses**m * (lookups - misses) ** (experts - m) for m in range(experts + 1)]
    shares = [divmod(events * weight, lookups**experts) for weight in weights]
    found = [whole for whole, _ in shares]
    for m in sorted(range(experts + 1), key=lambda m: -shares[m][1])[: events - sum(found)]:
        found[m] += 1
    while (lack := misses - sum(m * count for m, count in enumerate(found))) != 0:
        step = 1 if lack > 0 else -1
        source = next(m for m, count in enumerate(found) if count and 0 <= m + step <= experts)
        found[source] -= 1
        found[source + step] += 1
    return dict(enumerate(found))


def calibrated(measured: Measured, shape: Hardware) -> Hardware:
    """The hardware of that shape under which the measured figures come out, as near as whole numbers can.

    Bandwidth follows from the read wall, gate and up from what was saved, down from its bytes, route from the rest;
    launches, latency, workers and lanes stay as `shape` has them. Raises `CannotCalibrate` where nothing fits.
    """
    wall = least(
        lambda bandwidth: _wall(measured, _evolved(shape, bandwidth=bandwidth)) <= measured.read_wall, "the read wall"
    )
    made = _evolved(shape, bandwidth=wall)
    down, gate_up = sum(shape.down), sum(shape.gate_up)
    stage = least(
        lambda cost: _saved(measured, _costing(made, cost, cost * down // gate_up)) >= measured.saved, "what was saved"
    )
    made = _costing(made, stage, stage * down // gate_up)
    rest = measured.time - measured.forecast(_routing(made, 0), measured.slow).total.makespan
    if rest < 0:
        raise CannotCalibrate("the experts alone take longer than the tokens", where="time", cure="check the figures")
    return _routing(made, rest // sum(measured.events.values()))


def _saved(measured: Measured, hardware: Hardware) -> int:
    slow, fast = (measured.forecast(hardware, each).total for each in (measured.slow, measured.fast))
    return slow.makespan - fast.makespan


def _wall(measured: Measured, hardware: Hardware) -> int:
    return sum(
        count * event_time(Kind(measured.bytes, measured.experts, missing), hardware, Discipline()).read_wall
        for missing, count in measured.events.items()
    )


def least(holds: Callable[[int], bool], what: str) -> int:
    """The least number from 1 that holds, of something that holds for all larger ones, too."""
    low, high = 1, 2
    while not holds(high):
        low, high = high, 2 * high
        if high > _MOST:
            raise CannotCalibrate(f"no cost explains {what}", where="calibrate", cure="check the figures")
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _evolved(hardware: Hardware, *, bandwidth: int) -> Hardware:
    return attrs.evolve(hardware, storage=attrs.evolve(hardware.storage, bandwidth=bandwidth))


def _costing(hardware: Hardware, gate_up: int, down: int) -> Hardware:
    costs: Costs = attrs.evolve(hardware.costs, gate_up=gate_up, down=down)
    return attrs.evolve(hardware, costs=costs)


def _routing(hardware: Hardware, route: int) -> Hardware:
    return attrs.evolve(hardware, costs=attrs.evolve(hardware.costs, route=route))
