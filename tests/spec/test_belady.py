"""Belady reads as little as any choice could, where records have one size (XC-EVICT-050, XC-EVICT-051)."""

from __future__ import annotations

import json
from itertools import product
from random import Random

import pytest

from expertcache_spec.eviction import POLICIES, make
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import Replay, replay, run_event
from expertcache_spec.residency import Residency, Settings
from expertcache_spec.trace import Event, Trace, decode_trace

from . import recordings
from .optimum import BYPASS, FORCED, belady_bytes, optimum
from .running import experts, python, steps
from .strategies import random_trace

REFUSABLE = Settings(admission="refusable")

# Bounds for tests.spec.optimum (keys, events, capacity, keys in a row) and how many cases lie within them.
BOUNDS = [
    pytest.param("4 5 3 1", 6_144, id="5 events of 1 of 4 keys"),
    pytest.param("3 4 2 2", 3_969, id="4 events of up to 2 of 3 keys"),
    pytest.param("4 3 3 3", 12_040, id="3 events of up to 3 of 4 keys"),
    pytest.param("4 6 3 1", 24_576, id="6 events of 1 of 4 keys", marks=pytest.mark.nightly),
    pytest.param("5 6 4 1", 125_000, id="6 events of 1 of 5 keys", marks=pytest.mark.nightly),
    pytest.param("4 4 3 3", 163_920, id="4 events of up to 3 of 4 keys", marks=pytest.mark.nightly),
]


@pytest.mark.rule("XC-EVICT-050", "XC-EVICT-051", "XC-EVICT-053", "XC-RES-026")
@pytest.mark.parametrize(("bounds", "cases"), BOUNDS)
def test_belady_reads_what_exhaustive_search_reads_on_every_case_within(bounds: str, cases: int) -> None:
    text = python("-m", "tests.spec.optimum", *bounds.split(), EXPERTCACHE_CONTRACTS="off", timeout=3600)
    print(bounds, text)
    assert json.loads(text) == {"cases": cases, "differences": []}


def small_case(seed: int) -> tuple[Trace, int]:
    """A few events over two or three layers of records of one size, and a capacity that every event fits."""
    random = Random(seed)
    geometry = Geometry(random.randint(2, 3), 3, 2)
    trace = random_trace(random, geometry, streams=random.randint(1, 2), passes=2, phases=("decode", "verify"))
    widest = max(len(event.keys) for event in trace.events)
    return trace, random.randint(widest, widest + 2)


@pytest.mark.rule("XC-EVICT-050", "XC-EVICT-051", "XC-EVICT-053")
def test_belady_reads_what_exhaustive_search_reads_over_several_layers_and_streams() -> None:
    for seed in range(40):
        trace, capacity = small_case(seed)
        for settings in (FORCED, BYPASS):
            best = optimum(trace.events, capacity, (1, 1, 1), forced=settings is FORCED)
            assert belady_bytes(trace.geometry, trace.events, Budget(slots=capacity), settings) == best, seed


def reads(trace: Trace, policy: str, slots: int, settings: Settings) -> int:
    """The records that the replay reads for demand."""
    return replay(trace, policy, Budget(slots=slots), settings).total.reads


@pytest.mark.rule("XC-EVICT-054")
def test_bypass_reads_no_more_than_refusable_than_forced_than_any_forced_policy() -> None:
    strict = [0, 0, 0]
    for seed in range(20):
        random = Random(seed)
        geometry = Geometry(random.randint(1, 3), random.randint(3, 8), random.randint(1, 3))
        trace = random_trace(random, geometry, streams=2, passes=6)
        widest = max(len(event.keys) for event in trace.events)
        slots = random.randint(widest, widest + 4)
        bypass, refusable, forced = (reads(trace, "belady", slots, s) for s in (BYPASS, REFUSABLE, FORCED))
        others = [
            reads(trace, policy, slots, Settings(room=room, touch=touch))  # type: ignore[arg-type]
            for policy in POLICIES
            for room, touch in product(("reserve", "trim"), ("router", "hits_first"))
        ]
        assert bypass <= refusable <= forced <= min(others), seed
        assert bypass <= min(reads(trace, policy, slots, BYPASS) for policy in POLICIES), seed
        strict = [
            n + (a < b)
            for n, a, b in zip(strict, (bypass, refusable, forced), (refusable, forced, max(others)), strict=True)
        ]
    assert all(n > 1 for n in strict), "each inequality is strict somewhere"


@pytest.mark.rule("XC-EVICT-051", "XC-EVICT-054")
def test_refusing_key_by_key_may_read_more_than_choosing_among_the_whole_event() -> None:
    trace = decode_trace([[0], [0], [1, 2], [0, 2]])
    assert [reads(trace, "belady", 2, s) for s in (BYPASS, REFUSABLE, FORCED)] == [3, 4, 4]


@pytest.mark.rule("XC-EVICT-050", "XC-EVICT-053")
@pytest.mark.parametrize(
    ("ids", "sizes", "budget", "settings", "belady", "best"),
    [
        pytest.param([0, 0, 0, 1, 0, 0], (1, 2), 4, FORCED, 7, 6, id="forced"),
        pytest.param([0, 0, 0, 0], (1, 2), 2, BYPASS, 5, 4, id="bypass"),
    ],
)
def test_with_unequal_sizes_the_latest_next_use_is_only_a_heuristic(
    ids: list[int], sizes: tuple[int, int], budget: int, settings: Settings, belady: int, best: int
) -> None:
    # The smallest cases that a search over two layers, one or two experts and rising lengths finds: evicting the small
    # record that is wanted sooner costs less than evicting the large one that is wanted later.
    geometry = Geometry(2, max(ids) + 1, 1, sizes)
    trace = [Event(i % 2, ((expert,),), pass_index=i // 2) for i, expert in enumerate(ids)]
    assert belady_bytes(geometry, trace, Budget(bytes=budget), settings) == belady
    assert optimum(trace, budget, sizes, forced=settings is FORCED) == best


@pytest.mark.nightly
@pytest.mark.rule("XC-EVICT-050")
@pytest.mark.parametrize(("settings", "experts", "passes"), [(FORCED, 2, 3), (BYPASS, 1, 2)])
def test_no_smaller_counterexample_exists(settings: Settings, experts: int, passes: int) -> None:
    sizes, checked = (1, 2), 0
    for count, length in product(range(1, experts + 1), range(1, passes)):
        geometry = Geometry(2, count, 1, sizes)
        for ids in product(range(count), repeat=2 * length):
            trace = [Event(i % 2, ((e,),), pass_index=i // 2) for i, e in enumerate(ids)]
            for budget in range(max(sizes), count * sum(sizes)):
                checked += 1
                got = belady_bytes(geometry, trace, Budget(bytes=budget), settings)
                assert got == optimum(trace, budget, sizes, forced=settings is FORCED)
    assert checked


@pytest.mark.rule("XC-EVICT-050", "XC-EVICT-002")
def test_of_keys_never_asked_for_again_the_lowest_layer_and_expert_goes_first() -> None:
    # bugs 8: equal ranks leave in one order, whatever the order of arrival.
    events = [Event(0, ((3,),)), Event(1, ((0,),)), Event(0, ((1,),), pass_index=1), Event(1, ((2,),), pass_index=1)]
    geometry = Geometry(2, 4, 1)
    cache = Residency(geometry, Budget(slots=4), make("belady", future=events))
    for event in events:
        run_event(cache, event)
    assert cache.resize(Budget(slots=0)) == (Key(0, 1), Key(0, 3), Key(1, 0), Key(1, 2))


@pytest.mark.rule("XC-EVICT-050", "XC-EVICT-003")
def test_the_latest_next_use_leaves_and_never_a_key_of_the_same_event() -> None:
    trace = decode_trace([[0, 1], [2, 3], [0, 1], [2], [3]])
    found = steps(trace, "belady", Budget(slots=3))
    # {2,3}: 0 and 1 are wanted at the same event, the lowest goes. {0,1}: 3 is wanted after 2. {3}: nobody is wanted.
    assert [experts(step.victims) for step in found] == [[], [0], [3], [], [0]]
    victims = [set(step.victims) & set(event.keys) for event, step in zip(trace.events, found, strict=True)]
    assert victims == [set()] * 5


@pytest.mark.rule("XC-EVICT-003")
def test_single_key_belady_evicts_co_requested_experts_and_event_belady_never_does() -> None:
    # Replayed one access at a time, Belady drops a key of the very event that asked for it: the reason for the rule.
    trace = recordings.beginning(recordings.gpt_oss("instruct_facts", requests=2), 60)
    accesses = iter(Replay(trace, "belady", Budget(slots=60), mode="sequential"))
    torn = 0
    for event in trace.events:
        gone = {victim for _ in event.keys for victim in next(accesses).victims}
        torn += not gone.isdisjoint(event.keys)
    assert torn > len(trace.events) // 10
    for event, step in recordings.replayed(trace, "belady", Budget(slots=60)):
        assert set(step.victims).isdisjoint(event.keys)
