"""Published, hand-checkable vectors, each under the replay mode and room that it was published for.

The numbers in brackets are those of the survey of policies (section 35). Where a source counts every lookup that was
not a hit as a miss, ours are misses plus bypassed: a key that found no room is counted apart (XC-METRIC-001).
"""

from __future__ import annotations

from math import ceil
from typing import Any

import pytest

from expertcache_spec.model import Budget, Geometry, quotas
from expertcache_spec.replay import Replay, replay
from expertcache_spec.residency import Settings
from expertcache_spec.trace import Event, Trace, decode_trace

RETAIN = Settings(room="retain")
BYPASS = Settings(overflow="bypass")
REFUSABLE = Settings(admission="refusable")
FORCED = Settings()


def higher(values: list[int], quantile: float) -> int:
    """The quantile that numpy calls `higher`."""
    return sorted(values)[ceil(quantile * (len(values) - 1))]


@pytest.mark.rule("XC-EVICT-020", "XC-MODEL-006", "XC-METRIC-002", "XC-METRIC-003")
def test_35_1_the_toy_of_three_layers() -> None:
    requests = [(0, 1), (0, 2), (0, 1), (0, 3), (0, 1)]
    events = [Event(layer, (row,), pass_index=step) for step, row in enumerate(requests) for layer in range(3)]
    run = Replay(Trace(Geometry(3, 4, 2), tuple(events)), "lru", Budget(slots=6), Settings(scope="layer"))
    missed = [len(step.misses) for step in run]
    total = run.result().total
    assert (total.lookups, total.hits, total.misses) == (30, 12, 18)
    assert (total.compulsory, total.capacity_misses, total.evictions, total.admissions) == (12, 6, 12, 18)
    by_step = [sum(missed[step * 3 : step * 3 + 3]) for step in range(5)]
    assert (higher(missed, 0.5), higher(missed, 0.95)) == (1, 2)
    assert (higher(by_step, 0.5), higher(by_step, 0.95)) == (3, 6)


# events, policy, slots, settings, mode: lookups that were no hit, hits, evictions (not published but for 35.4: by hand)
VECTORS = [
    pytest.param([[0, 1]] * 2, "lru", 1, FORCED, "sequential", 4, 0, 3, id="35.2 sequential"),
    pytest.param([[0, 1]] * 2, "lru", 1, RETAIN, "event", 3, 1, 0, id="35.2 atomic, retain"),
    pytest.param([[0, 1]] * 2, "lru", 1, BYPASS, "event", 3, 1, 0, id="35.2 atomic, misses and bypassed"),
    pytest.param([[0], [1], [2]] * 2, "lru", 2, FORCED, "event", 6, 0, 4, id="35.3 LRU"),
    pytest.param([[0], [1], [2]] * 2, "belady", 2, RETAIN, "event", 4, 2, 1, id="35.3 Belady, bypass"),
    pytest.param([[0], [1], [2]] * 2, "belady", 2, REFUSABLE, "event", 4, 2, 0, id="35.3 Belady, refusable"),
    pytest.param([[0], [1], [0]], "belady", 1, RETAIN, "event", 2, 1, 0, id="35.4 bypass"),
    pytest.param([[0], [1], [0]], "belady", 1, REFUSABLE, "event", 2, 1, 0, id="35.4 refusable"),
    pytest.param([[0], [1], [0]], "belady", 1, FORCED, "event", 3, 0, 2, id="35.4 forced"),
    pytest.param([[0, 1], [2], [0, 1]], "belady", 2, FORCED, "event", 4, 1, 2, id="35.5 forced"),
    pytest.param([[0, 1], [1, 2], [0, 2]], "belady", 1, RETAIN, "event", 4, 2, 1, id="35.7 atomic"),
]


@pytest.mark.rule("XC-EVICT-020", "XC-EVICT-050", "XC-EVICT-051", "XC-REPLAY-003", "XC-RES-001")
@pytest.mark.parametrize(("events", "policy", "slots", "settings", "mode", "missed", "hits", "evictions"), VECTORS)
def test_35(
    events: list[list[int]],
    policy: str,
    slots: int,
    settings: Settings,
    mode: Any,
    missed: int,
    hits: int,
    evictions: int,
) -> None:
    total = replay(decode_trace(events), policy, Budget(slots=slots), settings, mode=mode).total
    assert (total.misses + total.bypassed, total.hits) == (missed, hits)
    assert total.evictions == evictions


@pytest.mark.rule("XC-METRIC-010")
@pytest.mark.parametrize(("slots", "misses", "collisions"), [(2, 3, 0), (1, 4, 1)])
def test_35_6_a_collision_is_a_miss_on_what_left_in_the_same_pass(slots: int, misses: int, collisions: int) -> None:
    # Blocks 0, 2 in pass 0 and 1, 2 in pass 1 are (0,0), (1,0) and (0,1), (1,0) of two layers of two experts.
    total = replay(decode_trace([[0], [0], [1], [0]], layers=2, experts=2), "lru", Budget(slots=slots)).total
    assert (total.misses, total.collisions) == (misses, collisions)


@pytest.mark.rule("XC-MODEL-006")
def test_35_9_the_quota_split() -> None:
    assert quotas(5, 3) == [2, 2, 1]
