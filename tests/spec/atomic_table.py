"""The survey's table of atomic replay (its section 10), a cell at a time.

`python -m tests.spec.atomic_table gemma 25` prints those of one trace at one size.

Decode misses in percent after the whole prompt, one cache a layer, an event judged against what was there before it and
the best of residents and newcomers retained. Ties go to the higher expert there and to the lower here, so the experts
are renumbered from the last to the first.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_right
from collections import defaultdict

import attrs

from expertcache_spec.eviction import Value
from expertcache_spec.model import Budget, quotas
from expertcache_spec.replay import replay
from expertcache_spec.residency import Settings
from expertcache_spec.trace import Trace

from . import recordings

POLICIES: dict[str, dict[str, Value]] = {"lru": {}, "lfu": {}, "lfru": {"ties": "key"}, "belady": {}}


def renumbered(trace: Trace) -> Trace:
    """The trace with expert e called E - 1 - e, the keys of an event distinct and rising."""
    last, events = trace.geometry.experts - 1, []
    for event in trace.events:
        ids = sorted(last - key.expert for key in event.keys)
        rows = (tuple(ids),) if len(ids) <= trace.geometry.top_k else tuple((expert,) for expert in ids)
        events.append(attrs.evolve(event, rows=rows, recorded=None))
    return Trace(trace.geometry, tuple(events), trace.name)


def retained(trace: Trace, policy: str, slots: int) -> float:
    """Misses of the machine under room=retain and scope=layer."""
    settings = Settings(room="retain", scope="layer")
    found = replay(trace, policy, Budget(slots=slots), settings, parameters=POLICIES[policy]).counters.per_phase()
    rows = [row for phase, row in found.items() if str(phase).startswith("decode")]
    return 100 * (1 - sum(row.hits for row in rows) / sum(row.lookups for row in rows))


def forced(trace: Trace, slots: int) -> float:
    """Misses of the survey's forced Belady: newcomers stay, and a hit of the running event may leave for one.

    No room of this specification does that: keys of the running event are held. So it is simulated here.
    """
    calls: dict[int, list[tuple[bool, list[int]]]] = defaultdict(list)
    for event in trace.events:
        calls[event.layer].append((event.phase.startswith("decode"), [key.expert for key in event.keys]))
    lookups = misses = 0
    for room, layer in zip(quotas(slots, len(calls)), sorted(calls), strict=True):
        asked: dict[int, list[int]] = defaultdict(list)
        for at, (_, experts) in enumerate(calls[layer]):
            for expert in experts:
                asked[expert].append(at)
        resident: set[int] = set()
        for at, (decode, experts) in enumerate(calls[layer]):
            # Sooner next use first; of those that never come again, the one that was called higher leaves first.
            rank = {
                expert: (asked[expert] + [len(calls[layer])])[bisect_right(asked[expert], at)]
                for expert in resident.union(experts)
            }
            new = [expert for expert in experts if expert not in resident]
            lookups, misses = lookups + len(experts) * decode, misses + len(new) * decode
            soonest = sorted(resident, key=lambda expert: (rank[expert], -expert))
            kept = sorted(new, key=lambda expert: (rank[expert], -expert))[:room]
            resident = {*kept, *soonest[: room - len(kept)]}
    return 100 * misses / lookups


def cells(name: str, percent: int) -> dict[str, float]:
    """Policy to decode misses in percent, at so many percent of all records."""
    trace = renumbered(recordings.bigmoe(name))
    slots = round(len(trace.geometry.routed) * trace.geometry.experts * percent / 100)
    return {policy: retained(trace, policy, slots) for policy in POLICIES} | {"forced": forced(trace, slots)}


if __name__ == "__main__":
    print(json.dumps(cells(sys.argv[1], int(sys.argv[2]))))
