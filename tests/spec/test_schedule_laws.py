"""Laws of schedules, over every tiny event, every schedule of tiny plans, and random streams."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from expertcache_spec.schedule import (
    Breakdown,
    Costs,
    Scenario,
    Storage,
    best_threshold,
    bounds,
    breakdown,
    divided,
    load_of,
    make_plan,
    pays,
    read_wall,
    schedule,
    split_gain,
    violations,
)  # fmt: skip
from expertcache_spec.schedule.crossover import pipelined_gain_of_one
from expertcache_spec.schedule.disciplines import NAMES, ORDERS
from expertcache_spec.schedule.eager import idleness
from expertcache_spec.schedule.measures import NOTHING, length, union
from expertcache_spec.schedule.tasks import COMPUTE

from .schedules import (
    BYTE,
    FREE_OF_OVERHEAD,
    every_schedule,
    random_scenario,
    scenario,
    tiny_events,
    under,
)  # fmt: skip


def makespan(case: Scenario, name: str, threshold: int = 1, reads: str = "record") -> int:
    """The makespan under that discipline."""
    return schedule(under(case, name, threshold, reads)).makespan


def assert_ordered(case: Scenario, thresholds: int = 3) -> None:
    """The inclusions of the disciplines' dependencies show in the makespans, in either order of requests."""
    for order in ORDERS:
        free, pipelined, staged, sync = (
            makespan(case, name, 1, order) for name in ("free", "pipelined", "staged", "sync")
        )
        splits = [makespan(case, "split", threshold, order) for threshold in range(1, thresholds + 1)]
        assert free <= min(pipelined, staged) <= max(pipelined, staged) <= splits[0], case
        assert splits == sorted(splits), case
        assert splits[-1] <= sync, case


# ------------------------------------------------------------------------------------------- every tiny event


def walk(cases: Iterator[Scenario], *, ordered: bool) -> tuple[int, int]:
    """Check every event under every discipline; how many schedules, and how many of them split."""
    schedules = splits = 0
    for case in cases:
        lowest = max(bounds(case))
        for name in NAMES:
            chosen = under(case, name)
            found = schedule(chosen)
            assert lowest <= found.makespan, chosen
            parts = breakdown(found)
            assert parts.makespan == parts.compute + parts.overhead + parts.exposed
            schedules, splits = schedules + 1, splits + (chosen.discipline.taken(case.loads[0]) == "split")
        assert_crossover(case)
        if ordered:
            assert_ordered(case, 2)
            schedules += 2 * 6
    return schedules, splits


def assert_crossover(case: Scenario) -> None:
    """What the evaluator saves by splitting is what the formula says."""
    load = case.loads[0]
    k, m = len(load.keys), len(load.missing)
    wall = read_wall(case, k, m)
    assert makespan(case, "sync") - makespan(case, "split") == split_gain(case.costs, k, m, wall), case
    if m == 1 and k > 1:
        assert makespan(case, "sync") - makespan(case, "pipelined") == pipelined_gain_of_one(case.costs, k, wall), case


@pytest.mark.rule("XC-SCHED-020", "XC-SCHED-021", "XC-SCHED-022", "XC-SCHED-024")
def test_every_tiny_event_without_overhead_keeps_the_order_the_bounds_and_the_formula(
    capsys: pytest.CaptureFixture[str],
) -> None:
    schedules, splits = walk(tiny_events(sizes=1, overheads=(0,), costs=(0, 1)), ordered=True)
    with capsys.disabled():
        print(f"\n{schedules} schedules of tiny events, {splits} split", end="")
    assert (schedules, splits) == (7616, 256)


@pytest.mark.rule("XC-SCHED-021", "XC-SCHED-022", "XC-SCHED-024")
def test_every_tiny_event_with_overhead_keeps_the_bounds_and_the_formula() -> None:
    schedules, splits = walk(tiny_events(slots=2, sizes=1, costs=(1, 2)), ordered=False)
    assert (schedules, splits) == (3840, 256)


@pytest.mark.nightly
@pytest.mark.rule("XC-SCHED-020", "XC-SCHED-021", "XC-SCHED-022", "XC-SCHED-024")
def test_every_small_event_keeps_all_laws() -> None:
    schedules, splits = walk(tiny_events(overheads=(0,)), ordered=True)
    more, split_more = walk(tiny_events(costs=(0, 1, 3)), ordered=False)
    print(f"{schedules + more} schedules of small events, {splits + split_more} split")
    assert min(schedules, more, splits, split_more) > 1000


# --------------------------------------------------------------------------- every schedule of tiny plans


def all_orders(cases: Iterator[Scenario]) -> tuple[int, int]:
    """Check every order of the compute queue of every plan; how many plans and how many schedules."""
    plans = schedules = 0
    for case in cases:
        lowest = max(bounds(case))
        for name in NAMES:
            chosen = under(case, name)
            plan, found = make_plan(chosen), schedule(chosen)
            best = None
            for each in every_schedule(plan, chosen.storage):
                schedules += 1
                assert violations(chosen, each) == []
                assert lowest <= each.makespan
                best = each.makespan if best is None else min(best, each.makespan)
            assert found.makespan == best, chosen
            assert idleness(plan, chosen.storage, found) == []
            plans += 1
    return plans, schedules


@pytest.mark.rule("XC-SCHED-020", "XC-SCHED-021", "XC-SCHED-007")
def test_no_order_of_one_queue_beats_the_evaluator_and_every_order_is_legal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plans, schedules = all_orders(tiny_events(slots=2, sizes=1, costs=(1, 2), overheads=(0,)))
    with capsys.disabled():
        print(f"\n{schedules} schedules of {plans} tiny plans", end="")
    assert plans == 960
    assert schedules > 4 * plans


@pytest.mark.nightly
@pytest.mark.rule("XC-SCHED-020", "XC-SCHED-021")
def test_no_order_of_one_queue_beats_the_evaluator_with_three_slots() -> None:
    three = (case for case in tiny_events(sizes=1, costs=(1, 2), overheads=(0,)) if case.storage.latency == 0)
    plans, schedules = all_orders(three)
    print(f"{schedules} schedules of {plans} plans")
    assert schedules > 10 * plans > 1000


# ------------------------------------------------------------------------------------------ random streams


@pytest.mark.rule("XC-SCHED-020", "XC-SCHED-023", "XC-SCHED-021", "XC-SCHED-022")
def test_in_one_stream_without_overhead_looser_disciplines_are_never_slower() -> None:
    strict = 0
    for seed in range(60):
        case = random_scenario(seed, streams=1, speculation=False, overhead=False)
        assert_ordered(case)
        strict += makespan(case, "pipelined") < makespan(case, "split") < makespan(case, "sync")
    assert strict > 5


@pytest.mark.rule("XC-SCHED-023")
def test_a_stream_without_speculation_takes_the_sum_of_its_events() -> None:
    events = 0
    for seed in range(150):
        case = random_scenario(seed, streams=1, speculation=False)
        alone = [attrs.evolve(case, loads=(attrs.evolve(load, victims=()),)) for load in case.loads]
        total = sum((breakdown(schedule(each)) for each in alone), start=NOTHING)
        assert breakdown(schedule(case)) == total, seed
        events += len(alone)
    assert events > 400


@pytest.mark.rule("XC-SCHED-023")
def test_only_the_number_of_misses_matters_to_an_event_of_equal_experts() -> None:
    costs = {"route": 3, "gate_up": 2, "down": 1, "combine": 1, "dispatch": 1, "handoff": 1}
    for name, workers in product(NAMES, (1, 2, 3)):
        for missing in range(5):
            found = set()
            for mask in range(16):
                if mask.bit_count() == missing:
                    load = load_of(4, [slot for slot in range(4) if mask >> slot & 1])
                    case = scenario([load], divided([3, 2], [2]), name, workers=workers, **costs)
                    found.add(breakdown(schedule(case)))
            assert len(found) == 1


@pytest.mark.rule("XC-SCHED-022", "XC-SCHED-021")
def test_time_is_compute_overhead_and_exposed_wait_and_bounds_hold_with_speculation_and_streams() -> None:
    hidden = exposed = 0
    for seed in range(300):
        case = random_scenario(seed)
        found = schedule(case)
        parts = breakdown(found)
        assert max(bounds(case)) <= found.makespan, seed
        assert parts.makespan == parts.compute + parts.overhead + parts.exposed
        assert parts.hidden <= parts.hideable
        queue = length(union((s.start, s.end) for s in found.spans.values() if s.lane == COMPUTE))
        assert queue == parts.compute + parts.overhead
        hidden, exposed = hidden + parts.hidden, exposed + parts.exposed
    assert min(hidden, exposed) > 1000


@pytest.mark.rule("XC-SCHED-020")
def test_split_and_sync_are_equal_where_nothing_or_everything_is_missing() -> None:
    for missing in (0, 4):
        case = scenario([load_of(4, range(missing))], divided([3], [2]), gate_up=2, down=1, dispatch=1, handoff=5)
        assert makespan(case, "split") == makespan(case, "sync")
        if not missing:
            assert {makespan(case, name) for name in NAMES} == {makespan(case, "sync")}


# -------------------------------------------------------------------------------------------------- crossover


@pytest.mark.rule("XC-SCHED-024")
@given(
    costs=st.builds(Costs, route=st.integers(0, 9), gate_up=st.integers(0, 60), down=st.integers(0, 60),
                    combine=st.integers(0, 9), dispatch=st.integers(0, 60), handoff=st.integers(0, 60)),
    storage=st.builds(Storage, st.integers(1, 9), st.integers(1, 4), st.just(BYTE), st.integers(0, 20)),
    sizes=st.tuples(st.lists(st.integers(0, 40), min_size=1, max_size=3), st.lists(st.integers(0, 40), min_size=1)),
    experts=st.integers(1, 8),
)  # fmt: skip
def test_the_evaluator_confirms_the_formula(
    costs: Costs, storage: Storage, sizes: tuple[list[int], list[int]], experts: int
) -> None:
    case = Scenario((load_of(experts, []),), (divided(sizes[0], sizes[1][:2]),), costs, storage)
    for misses in range(experts + 1):
        assert_crossover(attrs.evolve(case, loads=(load_of(experts, range(misses)),)))


@pytest.mark.rule("XC-SCHED-024")
def test_a_threshold_can_be_wrong_at_both_ends() -> None:
    case = scenario([load_of(6, [])], divided([2], [1]), gate_up=4, down=2, dispatch=4, handoff=6)
    walls = {misses: read_wall(case, 6, misses) for misses in range(1, 6)}
    assert walls == {1: 3, 2: 6, 3: 9, 4: 12, 5: 15}
    assert [split_gain(case.costs, 6, m, walls[m]) for m in walls] == [-7, -4, -1, 2, -2]
    assert pays(case.costs, 6, walls) == (4,)
    even = attrs.evolve(case.costs, handoff=5)
    assert [split_gain(even, 6, m, walls[m]) for m in walls] == [-6, -3, 0, 3, -1]
    assert pays(even, 6, walls) == (4,)  # what is as fast does not pay
    assert best_threshold(case.costs, 6, walls, {1: 10, 4: 1, 5: 0}) == 4
    assert best_threshold(case.costs, 6, walls, {1: 10, 4: 1, 5: 2}) == 6
    assert best_threshold(attrs.evolve(case.costs, **FREE_OF_OVERHEAD), 6, walls, dict.fromkeys(walls, 1)) == 1


@pytest.mark.rule("XC-SCHED-022")
def test_the_parts_of_a_schedule_by_hand() -> None:
    case = scenario([load_of(3, [1])], divided([4], [2]), "split", route=1, gate_up=2, down=1, combine=1, dispatch=1)
    found = breakdown(schedule(case))
    assert found == Breakdown(makespan=14, compute=11, overhead=2, exposed=1, hidden=5)
    assert (found.read_wall, found.hideable) == (6, 6)
    assert found + found == found.times(2)
    assert bounds(case) == (12, 6, 6, 1 + 4 + 2 + 2)


@pytest.mark.rule("XC-SCHED-021")
@pytest.mark.parametrize(("lanes", "workers", "path"), [(1, 4, 4), (3, 11, 12)])
def test_the_bound_of_the_workers_by_hand(lanes: int, workers: int, path: int) -> None:
    case = scenario([load_of(1, [0])], divided([4], [3]), workers=2, lanes=lanes)
    assert bounds(case) == (0, 7, workers, path)  # halves round up; one reader alone gets a lane's share
    assert max(bounds(case)) <= schedule(case).makespan
