"""The cliff: what recency can and cannot hit below one token cycle (XC-EVICT-004, XC-MODEL-007)."""

from __future__ import annotations

import json
from random import Random

import pytest

from expertcache_spec.model import Budget, Geometry
from expertcache_spec.replay import replay, warnings_for
from expertcache_spec.residency import Settings
from expertcache_spec.trace import Event, Trace, decode_trace

from . import recordings
from .running import python

RECENCY = ("lru", "fifo", "lfu-reset")


def full_decode(seed: int, geometry: Geometry, passes: int = 8) -> Trace:
    """One stream whose every event asks for exactly top_k experts, four times in ten the same as before."""
    random = Random(seed)
    last: dict[int, tuple[int, ...]] = {}
    events = []
    for number in range(passes):
        for layer in geometry.routed:
            if layer not in last or random.random() < 0.6:
                last[layer] = tuple(random.sample(range(geometry.experts), geometry.top_k))
            events.append(Event(layer, (last[layer],), pass_index=number))
    return Trace(geometry, tuple(events))


@pytest.mark.rule("XC-EVICT-004")
@pytest.mark.parametrize("room", ["reserve", "trim"])
@pytest.mark.parametrize("policy", RECENCY)
def test_one_event_below_a_token_cycle_recency_never_hits(policy: str, room: str) -> None:
    for seed in range(60):
        random = Random(seed)
        layers, top_k = random.randint(2, 4), random.randint(1, 3)
        geometry = Geometry(layers, top_k + random.randint(0, 4), top_k)
        capacity = random.randint(top_k, top_k * (layers - 1))
        for touch in ("router", "hits_first"):
            result = replay(
                full_decode(seed, geometry), policy, Budget(slots=capacity), Settings(room=room, touch=touch)
            )  # type: ignore[arg-type]
            assert result.total.hits == 0, (seed, geometry, capacity)
            assert "hits exactly 0" in result.warnings[-1]


@pytest.mark.rule("XC-EVICT-004")
@pytest.mark.parametrize("policy", RECENCY)
def test_in_bytes_the_cliff_ends_one_event_of_the_largest_records_below_a_token_cycle(policy: str) -> None:
    for seed in range(60):
        random = Random(seed)
        layers, top_k = random.randint(2, 4), random.randint(1, 3)
        sizes = tuple(random.randint(1, 5) for _ in range(layers))
        geometry = Geometry(layers, top_k + random.randint(0, 4), top_k, sizes)
        edge = geometry.token_cycle_bytes - top_k * max(sizes)
        if edge < top_k * max(sizes):
            continue
        result = replay(full_decode(seed, geometry), policy, Budget(bytes=random.randint(top_k * max(sizes), edge)))
        assert result.total.hits == 0, (seed, geometry)
        assert "hits exactly 0" in result.warnings[-1]


@pytest.mark.rule("XC-EVICT-004", "XC-MODEL-007")
@pytest.mark.parametrize("policy", RECENCY)
def test_within_one_event_of_a_token_cycle_only_the_last_ranked_keys_hit(policy: str) -> None:
    # Two layers, top-2, a cycle of 4 records. With 3 slots the second key of each event outlives the pass: the public
    # statement "exactly 0 below one token cycle" holds for top-1, and for top-k one event further down.
    trace = decode_trace([[0, 1], [0, 1]] * 3, layers=2)
    result = replay(trace, policy, Budget(slots=3))
    assert result.total.hits == 4
    assert [row.hits for row in result.counters.per_layer().values()] == [2, 2]
    assert "hits next to nothing" in result.warnings[-1]
    assert replay(trace, policy, Budget(slots=2)).total.hits == 0


@pytest.mark.rule("XC-EVICT-004")
def test_in_the_band_below_a_cycle_a_hit_of_lru_is_always_among_the_last_ranked_keys() -> None:
    hits = 0
    for seed in range(60):
        geometry = Geometry(3, 6, 3)
        trace = full_decode(seed, geometry)
        run = recordings.replayed(trace, "lru", Budget(slots=geometry.token_cycle_slots - 2))
        for event, step in run:
            hits += len(step.hits)
            before = (
                next(e for e in reversed(trace.events[: trace.events.index(event)]) if e.layer == event.layer)
                if step.hits
                else event
            )
            assert set(step.hits) <= set(before.keys[2:])
    assert hits > 100


@pytest.mark.rule("XC-EVICT-004")
@pytest.mark.parametrize("policy", ["lru", *(pytest.param(name, marks=pytest.mark.nightly) for name in RECENCY[1:])])
def test_gpt_oss_at_76_slots_misses_all_708192_lookups_of_code_cs(policy: str) -> None:
    # 24 layers x top-4 = 96 records a token; 76 is below 92, so the cliff holds to the last lookup (TARGETS 4).
    total = json.loads(python("-m", "tests.spec.totals", "code_cs", policy, "76", EXPERTCACHE_CONTRACTS="off"))
    assert (total["lookups"], total["misses"], total["hits"]) == (708_192, 708_192, 0)


@pytest.mark.rule("XC-EVICT-030")
def test_kept_counts_break_the_cliff_where_routing_is_skewed() -> None:
    trace = recordings.beginning(recordings.gpt_oss("code_cs", requests=1), 60)
    assert replay(trace, "lru", Budget(slots=76)).total.hits == 0
    assert replay(trace, "lfu", Budget(slots=76)).total.hits > 0


@pytest.mark.rule("XC-EVICT-030")
def test_kept_counts_do_not_help_where_every_key_is_asked_for_alike() -> None:
    trace = decode_trace([[0], [0], [0]] * 5, layers=3)
    assert replay(trace, "lfu", Budget(slots=2)).total.hits == 0


@pytest.mark.rule("XC-MODEL-007")
def test_a_budget_of_one_token_cycle_is_not_warned_about() -> None:
    geometry = Geometry(3, 8, 2, (1, 2, 3))
    assert warnings_for(geometry, Budget(slots=6), Settings()) == ()
    assert warnings_for(geometry, Budget(bytes=12), Settings()) == ()
    assert "next to nothing" in warnings_for(geometry, Budget(slots=5), Settings())[0]
    assert "exactly 0" in warnings_for(geometry, Budget(slots=4), Settings())[0]
    assert "next to nothing" in warnings_for(geometry, Budget(bytes=7), Settings())[0]
    assert "exactly 0" in warnings_for(geometry, Budget(bytes=6), Settings())[0]


@pytest.mark.rule("XC-MODEL-007")
def test_a_quota_below_top_k_is_warned_about_under_scope_layer() -> None:
    geometry = Geometry(3, 8, 2, (1, 2, 3))
    by_layer = Settings(scope="layer")
    assert warnings_for(geometry, Budget(slots=6), by_layer) == ()
    assert "2 of 3 layers" in warnings_for(geometry, Budget(slots=4), by_layer)[0]
    assert "1 of 3 layers" in warnings_for(geometry, Budget(bytes=12), by_layer)[0]


@pytest.mark.rule("XC-MODEL-007")
def test_capacity_zero_and_unknown_sizes_are_warned_about() -> None:
    assert "capacity 0" in warnings_for(Geometry(1, 4, 1), Budget(slots=0), Settings())[0]
    assert "record size unknown" in warnings_for(Geometry(1, 4, 1), Budget(slots=2), Settings())[0]
