"""Laws: what holds for every trace, whatever the policy or between two settings."""

from __future__ import annotations

from itertools import permutations
from math import isclose
from random import Random
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from expertcache_spec.eviction import POLICIES, make
from expertcache_spec.metrics import Counters, Row
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import replay
from expertcache_spec.residency import Residency, Selection, Settings, Step
from expertcache_spec.trace import Event, Trace

from .running import outcomes, steps
from .settings_of_policies import CORE, nightly_but
from .strategies import Case, budgets, cases, random_case, random_trace, traces

ALL = tuple(POLICIES)
ONLINE = tuple(name for name, card in POLICIES.items() if not card.offline)


def without_peaks(counters: Counters) -> Counters:
    """The counters but for what differs between reserve and trim."""
    return attrs.evolve(counters, peak_slots=0, peak_bytes=0)


@pytest.mark.rule("XC-RES-014", "XC-RES-002")
@pytest.mark.parametrize("policy", nightly_but(CORE, ALL))
@given(data=st.data())
def test_capacity_never_changes_what_is_asked_only_what_is_read(policy: str, data: st.DataObject) -> None:
    case = data.draw(cases(policy, fixed={"overflow": "bypass"}))
    other = attrs.evolve(case, budget=data.draw(budgets(case.trace.geometry)))
    asked = []
    for each in (case, other, attrs.evolve(case, budget=Budget(slots=0))):
        found, counters, _ = outcomes(each, policy)
        for event, step in zip(each.trace.events, found, strict=True):
            assert isinstance(step, Step)
            assert sorted(step.hits + step.misses + step.bypassed) == sorted(event.keys)
        asked.append({key: (row.selections, row.lookups) for key, row in counters.rows.items() if row.lookups})
    assert asked[0] == asked[1] == asked[2]


@pytest.mark.rule("XC-RES-014")
@pytest.mark.parametrize("policy", ALL)
@pytest.mark.parametrize("budget", [Budget(slots=0), Budget(bytes=0), Budget(slots=3, bytes=0)])
def test_capacity_zero_serves_everything_and_keeps_nothing(policy: str, budget: Budget) -> None:
    for seed in range(10):
        case = attrs.evolve(random_case(seed, policy, sized=True), budget=budget)
        found, counters, residents = outcomes(case, policy)
        assert residents == frozenset()
        assert all(isinstance(step, Step) and step.bypassed for step in found)
        total = counters.total()
        assert total.lookups == total.bypassed == total.reads > 0
        assert (total.hits, total.misses, total.evictions, counters.peak_slots) == (0, 0, 0, 0)


@pytest.mark.rule("XC-METRIC-002", "XC-RES-003")
@pytest.mark.parametrize("policy", nightly_but(CORE, ALL))
@given(trace=traces())
def test_with_room_for_everything_each_key_is_missed_once(policy: str, trace: Trace) -> None:
    keys = {key for event in trace.events for key in event.keys}
    total = replay(trace, policy, Budget(slots=len(keys))).total
    assert total.misses == total.compulsory == len(keys)
    assert total.evictions == total.reloads == 0


# A queue policy that moves its hand, its bar or its ghosts when it chooses sees other keys under trim: the event is in.
CHOOSING_MOVES = {"clock", "clock-lru-k", "arc", "two-q", "s3-fifo", "sieve"}


@pytest.mark.rule("XC-RES-025", "XC-RES-010")
@pytest.mark.parametrize("policy", [policy for policy in ALL if policy not in CHOOSING_MOVES])
def test_reserve_and_trim_differ_in_their_peaks_only(policy: str) -> None:
    peaks = 0
    for seed in range(120 if policy in CORE else 30):
        case = random_case(seed, policy, room="reserve", admission="always")
        reserve = outcomes(case, policy)
        trim = outcomes(attrs.evolve(case, settings=attrs.evolve(case.settings, room="trim")), policy)
        assert (reserve[0], reserve[2]) == (trim[0], trim[2]), seed
        assert without_peaks(reserve[1]) == without_peaks(trim[1])
        assert reserve[1].peak_slots <= trim[1].peak_slots
        peaks += reserve[1].peak_slots < trim[1].peak_slots
    assert peaks > 10


@pytest.mark.rule("XC-RES-026")
@pytest.mark.parametrize("touch", ["router", "hits_first"])
def test_under_lru_retain_keeps_what_reserve_keeps_where_every_event_fits(touch: str) -> None:
    for seed in range(60):
        random = Random(seed)
        trace = random_trace(random, Geometry(random.randint(1, 2), 8, 3), streams=2)
        widest = max(len(event.keys) for event in trace.events)
        budget = Budget(slots=random.randint(widest, widest + 5))
        reserve, retain = (
            steps(trace, "lru", budget, Settings(room=room, touch=touch)) for room in ("reserve", "retain")
        )  # type: ignore[arg-type]
        assert reserve == retain


@pytest.mark.rule("XC-RES-026")
def test_under_fifo_retain_may_give_up_a_key_of_the_event_itself() -> None:
    trace = Trace(Geometry(1, 4, 2), tuple(Event(0, (row,), pass_index=n) for n, row in enumerate([(0, 1), (0, 2)])))
    assert [step.victims for step in steps(trace, "fifo", Budget(slots=2))][1] == (Key(0, 1),)
    assert [step.victims for step in steps(trace, "fifo", Budget(slots=2), Settings(room="retain"))][1] == (Key(0, 0),)


@pytest.mark.rule("XC-MODEL-006")
@pytest.mark.parametrize("policy", ALL)
def test_scope_layer_is_one_cache_for_each_layer(policy: str) -> None:
    for seed in range(60):
        case = random_case(seed, policy, scope="layer", overflow="bypass")
        shares = case.budget.split("layer", case.trace.geometry)
        whole = steps(case.trace, policy, case.budget, case.settings)
        for layer, share in shares.items():
            geometry = attrs.evolve(case.trace.geometry, routed=(layer,))
            alone = Trace(geometry, tuple(event for event in case.trace.events if event.layer == layer))
            mine = [step for event, step in zip(case.trace.events, whole, strict=True) if event.layer == layer]
            assert steps(alone, policy, share, attrs.evolve(case.settings, scope="global")) == mine, seed


@pytest.mark.rule("XC-MODEL-001")
@pytest.mark.parametrize("policy", ONLINE)
def test_renaming_the_experts_renames_the_steps(policy: str) -> None:
    for seed in range(60):
        case = random_case(seed, policy, overflow="bypass")
        names = list(range(case.trace.geometry.experts))
        Random(seed).shuffle(names)
        events = [
            attrs.evolve(e, rows=tuple(tuple(names[x] for x in row) for row in e.rows)) for e in case.trace.events
        ]
        renamed = steps(Trace(case.trace.geometry, tuple(events)), policy, case.budget, case.settings)

        def rename(keys: tuple[Key, ...], names: list[int] = names) -> tuple[Key, ...]:
            return tuple(Key(key.layer, names[key.expert]) for key in keys)

        original = steps(case.trace, policy, case.budget, case.settings)
        assert [Step(*map(rename, step)) for step in original] == renamed


@pytest.mark.rule("XC-EVICT-006")
@pytest.mark.parametrize("policy", nightly_but(CORE, ONLINE))
@pytest.mark.parametrize(("experts", "capacity", "top_k"), [(256, 128, 8), (64, 16, 4), (60, 45, 1)])
def test_uniform_routing_hits_the_share_of_the_experts_that_is_held(
    policy: str, experts: int, capacity: int, top_k: int
) -> None:
    # Micro-Expert-Router #116 (bugs 128): the hit rate equals the cached fraction, for any causal policy. The bound is
    # eight sigma of a binomial of that many lookups; the fill is left out.
    random = Random(experts)
    rows = [tuple(random.sample(range(experts), top_k)) for _ in range(8_000 // top_k)]
    trace = Trace(Geometry(1, experts, top_k), tuple(Event(0, (row,), pass_index=n) for n, row in enumerate(rows)))
    found = steps(trace, policy, Budget(slots=capacity))[len(rows) // 4 :]
    lookups, share = len(found) * top_k, capacity / experts
    hits = sum(len(step.hits) for step in found)
    assert isclose(hits / lookups, share, abs_tol=8 * (share * (1 - share) / lookups) ** 0.5)


# ---------------------------------------------------------------------------------------------- completion order


def served(case: Case, policy: str, random: Random | None) -> tuple[list[Any], Counters, frozenset[Key]]:
    """A replay whose reads complete in router order, or in any order when `random` is given."""
    machine = Residency(case.trace.geometry, case.budget, make(policy, future=case.trace.events), case.settings)
    found: list[Any] = []
    for event in case.trace.events:
        waves: list[Selection] = [machine.select(event)]
        for wave in waves:
            reads = list(wave.reads)
            if random:
                random.shuffle(reads)
            evicted = [key for read in reads for key in machine.complete(read).victims]
            found.append((tuple(wave)[1:], evicted, machine.release(wave.ticket)))
            if wave.deferred:
                waves.append(machine.resume(wave))
    return found, machine.counters, machine.residents()


@pytest.mark.rule("XC-RES-015", "XC-REPLAY-001")
@pytest.mark.parametrize("policy", nightly_but(CORE, ALL))
@pytest.mark.parametrize("room", ["reserve", "trim", "retain"])
def test_the_order_in_which_reads_complete_changes_no_step(policy: str, room: str) -> None:
    for seed in range(40):
        case = random_case(seed, policy, room=room, overflow="bypass")
        assert served(case, policy, None) == served(case, policy, Random(seed)), seed


@pytest.mark.rule("XC-RES-015", "XC-RES-027")
@pytest.mark.parametrize("policy", ALL)
def test_any_order_of_the_reads_of_two_outstanding_events_ends_the_same(policy: str) -> None:
    geometry = Geometry(1, 8, 3)
    events = [Event(0, ((0, 1, 2),)), Event(0, ((2, 3),), 1), Event(0, ((4, 5, 6),), 2), Event(0, ((0, 3, 7),), 3)]
    ends = set()
    for order in permutations((0, 1, 2, 3)):
        machine = Residency(geometry, Budget(slots=5), make(policy, future=events))
        first, second = machine.select(events[0]), machine.select(events[1])
        assert second.joined == (Key(0, 2),)
        for expert in order:
            machine.complete(Key(0, expert))
        machine.release(second.ticket)
        machine.release(first.ticket)
        later = []
        for event in events[2:]:
            selection = machine.select(event)
            for key in selection.reads:
                machine.complete(key)
            machine.release(selection.ticket)
            later.append((selection.hits, selection.victims))
        ends.add((tuple(later), machine.residents(), str(machine.counters.total())))
    assert len(ends) == 1


def test_rows_of_counters_add_up_in_any_order() -> None:
    rows = [Row(*range(start, start + 15)) for start in range(3)]
    sums = []
    for order in permutations(rows):
        total = Row()
        for row in order:
            total.add(row)
        sums.append(total)
    assert all(total == sums[0] for total in sums)
