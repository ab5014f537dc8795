"""The cheapest possible replay by exhaustive search, to hold Belady against; run as a module, without contracts.

Admission is `forced` (every missing record of an event is kept until the event ends) or `bypass` (the cache keeps any
part of residents and event). The cost is what is read: records, or bytes where sizes are given.

`python -m tests.spec.optimum KEYS EVENTS CAPACITY ROW` compares Belady with the optimum over every sequence of that
many events of up to ROW of KEYS keys and prints the number of cases and the first differences.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, product

from expertcache_spec.eviction import make
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import run_event
from expertcache_spec.residency import Residency, Settings
from expertcache_spec.trace import Event

Keys = frozenset[Key]

FORCED = Settings()
BYPASS = Settings(room="retain")


def optimum(events: Sequence[Event], capacity: int, sizes: Sequence[int], *, forced: bool) -> int:
    """The least bytes that any choice of what to keep reads; `sizes` are record bytes by layer, `capacity` is in bytes.

    Exact dynamic program over (event, residents); exponential, for a handful of keys.
    """
    asked = [frozenset(event.keys) for event in events]

    def weight(keys: Keys) -> int:
        return sum(sizes[key.layer] for key in keys)

    def kept(residents: Keys, event: Keys) -> Iterator[Keys]:
        must, may = (event, residents - event) if forced else (frozenset[Key](), residents | event)
        for count in range(len(may) + 1):
            for extra in combinations(sorted(may), count):
                if weight(chosen := must | frozenset(extra)) <= capacity:
                    yield chosen

    @cache
    def least(index: int, residents: Keys) -> int:
        if index == len(asked):
            return 0
        event = asked[index]
        read = weight(event - residents)
        return read + min(least(index + 1, chosen) for chosen in kept(residents, event))

    return least(0, frozenset())


def belady_bytes(geometry: Geometry, events: Sequence[Event], budget: Budget, settings: Settings) -> int:
    """What Belady reads, in bytes; every record has one byte where sizes are unknown."""
    machine = Residency(geometry, budget, make("belady", future=events), settings)
    steps = [run_event(machine, event) for event in events]
    sizes = geometry.record_bytes or (1,) * geometry.layers
    return sum(sizes[key.layer] for step in steps for key in (*step.misses, *step.bypassed))


def compare(keys: int, events: int, capacity: int, row: int) -> dict[str, object]:
    """Belady against the optimum over every trace of one layer, under both admissions."""
    geometry = Geometry(1, keys, row)
    rows = [ids for size in range(1, row + 1) for ids in combinations(range(keys), size)]
    cases, differences = 0, []
    for chosen in product(rows, repeat=events):
        trace = [Event(0, (ids,), pass_index=number) for number, ids in enumerate(chosen)]
        for slots, settings in product(range(1, capacity + 1), (FORCED, BYPASS)):
            forced = settings is FORCED
            if forced and slots < max(map(len, chosen)):
                continue
            cases += 1
            best = optimum(trace, slots, (1,), forced=forced)
            if belady_bytes(geometry, trace, Budget(slots=slots), settings) != best and len(differences) < 5:
                differences.append(f"{chosen} {slots} forced={forced}")
    return {"cases": cases, "differences": differences}


if __name__ == "__main__":
    print(json.dumps(compare(*map(int, sys.argv[1:]))))
