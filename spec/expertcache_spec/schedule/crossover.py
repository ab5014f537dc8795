"""Crossover: from how many misses on splitting an event pays, as a formula. The evaluator is its check.

An event of k experts misses m of them; its reads, alone on the storage, take `wall` nanoseconds. Sync takes

    route + wall + dispatch + k (gate_up + down) + combine

and split, whose first batch runs beside the reads and whose second follows both,

    route + max(wall, dispatch + (k - m) gate_up) + dispatch + handoff + m gate_up + k down + combine.

Their difference is what splitting gains:

    min((k - m) gate_up, wall - dispatch) - handoff.

The work of the residents bounds it from one side, the reads that outlast a launch from the other. It does not grow
with m for ever: with every further miss there is one expert less to hide behind, so that a threshold, which splits at
every larger m too, can be wrong at both ends.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from expertcache_spec.schedule.costs import Costs, InvalidSchedule
from expertcache_spec.schedule.disciplines import Discipline
from expertcache_spec.schedule.evaluate import schedule
from expertcache_spec.schedule.plan import Scenario
from expertcache_spec.schedule.work import load_of


def split_gain(costs: Costs, experts: int, misses: int, wall: int) -> int:
    """Nanoseconds that splitting one event saves over sync; negative where it costs (XC-SCHED-024).

    0 where nothing or everything is missing: such an event is not split.
    """
    if not 0 < misses < experts:
        return 0
    return min((experts - misses) * costs.gate_up, wall - costs.dispatch) - costs.handoff


def pipelined_gain_of_one(costs: Costs, experts: int, wall: int) -> int:
    """Nanoseconds that pipelining saves over sync where one of several experts is missing.

    As `split_gain`, with the residents' down beside the reads too. With more misses it depends on who lands when.
    """
    return min((experts - 1) * (costs.gate_up + costs.down), wall - costs.dispatch) - costs.handoff


def read_wall(scenario: Scenario, experts: int, misses: int, layer: int = 0) -> int:
    """Nanoseconds from the route's end to the end of the last read of an event of that layer that runs alone.

    Raises `InvalidSchedule` for more misses than experts, or fewer than none.
    """
    if not 0 <= misses <= experts:
        raise InvalidSchedule(f"{misses} misses of {experts} experts", where="read wall", cure="give 0 to all of them")
    alone = attrs.evolve(scenario, loads=(load_of(experts, range(misses), layer=layer),), discipline=Discipline())
    found = schedule(alone)
    reads = [span.end for _, span in found.of(0, "read")]
    return max(reads) - scenario.costs.route if reads else 0


def pays(costs: Costs, experts: int, walls: Mapping[int, int]) -> tuple[int, ...]:
    """The numbers of misses at which splitting is faster than sync; `walls` gives the read wall of each."""
    return tuple(misses for misses in sorted(walls) if split_gain(costs, experts, misses, walls[misses]) > 0)


def best_threshold(costs: Costs, experts: int, walls: Mapping[int, int], events: Mapping[int, int]) -> int:
    """The threshold that saves most, over that many events of each number of misses; of equal ones the highest.

    A threshold of `experts` never splits. Raises `InvalidSchedule` for no experts, or misses without a wall.
    """
    lacking = sorted(events.keys() - walls.keys())
    if experts < 1 or lacking:
        said = f"no read wall of {lacking[0]} misses" if lacking else f"{experts} experts"
        raise InvalidSchedule(
            said, where="threshold", cure="give experts from 1, and the wall of each number of misses"
        )
    gains = {misses: count * split_gain(costs, experts, misses, walls[misses]) for misses, count in events.items()}
    return max(range(1, experts + 1), key=lambda t: (sum(g for misses, g in gains.items() if misses >= t), t))
