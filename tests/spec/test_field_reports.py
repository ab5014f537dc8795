"""Each public bug report that the machine, its policies or its counters can decide, as a test with its number.

The numbers are those of the survey of reports; each test says what its report asked for. Reports about bytes, files,
threads, devices, timing or configuration are for the reference and the suite. Where a report expects what this
specification defines otherwise, the test encodes the specification and says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import attrs
import pytest

from expertcache_spec.errors import (
    EventTooLarge,
    InvalidModel,
    MustWait,
    NeedsFuture,
    NoVictim,
    UnknownName,
    WrongState,
)
from expertcache_spec.eviction import POLICIES, make
from expertcache_spec.metrics import Row
from expertcache_spec.model import Budget, Geometry, Key, parse_size
from expertcache_spec.replay import replay, run_event, warnings_for
from expertcache_spec.residency import Residency, Settings, audit
from expertcache_spec.trace import Event, decode_trace

from .test_residency import event, keys, load, machine


def batch(*rows: tuple[int, ...], phase: Any = "prefill", **rest: Any) -> Event:
    """An event of several rows."""
    return Event(0, rows, phase=phase, **rest)


@attrs.frozen
class Report:
    """A trace of one layer and what it must come to; `events` are experts, `seeds` are loaded before."""

    events: list[list[int]]
    slots: int
    hits: int
    misses: int
    victims: list[int]
    policy: str = "lru"
    seeds: tuple[int, ...] = ()
    resident: set[int] | None = None


REPORTS = {
    "1 a hit refreshes": Report([[0], [1], [0], [2], [0]], 2, 2, 3, [1]),
    "1 what FIFO does instead": Report([[0], [1], [0], [2], [0]], 2, 1, 4, [0, 1], "fifo"),
    "2 a refreshed record is not the victim": Report([[0], [1], [0], [2]], 2, 1, 3, [1]),
    "4 a stale seed is evictable": Report([[0], [1]] * 3, 2, 4, 2, [7], seeds=(7,)),
    "5 recency forgets the first prompt": Report([[0]] * 10 + [[1], [2]] * 4, 2, 15, 3, [0]),
    "5 counts without ageing do not": Report([[0]] * 10 + [[1], [2]] * 4, 2, 9, 9, [1, 2, 1, 2, 1, 2, 1], "lfu"),
    "14 a just-loaded record is not the next victim": Report(
        [[0, 1, 2], [0, 1, 2], [3, 4, 5]], 3, 3, 6, [0, 1, 2], "lfu", resident={3, 4, 5}
    ),
    "14 nor under counts that restart": Report(
        [[0, 1, 2], [0, 1, 2], [3, 4, 5]], 3, 3, 6, [0, 1, 2], "lfu-reset", resident={3, 4, 5}
    ),
    "25 an accepted budget has effect": Report([[0, 1], [0, 1]], 4, 2, 2, []),
    "145 protection ends with the step": Report([[0, 1], [2, 3]], 2, 0, 4, [0, 1]),
    "160 two sessions of two experts thrash two slots": Report(
        [[0, 1], [2, 3]] * 3, 2, 0, 12, [0, 1, 2, 3] * 2 + [0, 1]
    ),
    "160 and share four": Report([[0, 1], [2, 3]] * 3, 4, 8, 4, []),
    "187 hand-computed": Report([[5], [4], [6], [4], [7], [4]], 10, 2, 4, []),
}


@pytest.mark.rule(
    "XC-EVICT-010", "XC-EVICT-020", "XC-EVICT-021", "XC-EVICT-030", "XC-EVICT-031", "XC-EVICT-040", "XC-RES-003",
    "XC-RES-004", "XC-RES-005",
)  # fmt: skip
@pytest.mark.parametrize("report", [pytest.param(report, id=name) for name, report in REPORTS.items()])
@pytest.mark.parametrize("form", ["indexed", "declarative"])
def test_report(report: Report, form: Any) -> None:
    geometry = Geometry(1, 10, 3)
    cache = Residency(geometry, Budget(slots=report.slots), make(report.policy, form))
    for key in cache.seed(keys(*report.seeds)).reads:
        cache.complete(key)
    victims = []
    for asked in report.events:
        victims += [key.expert for key in run_event(cache, event(*asked)).victims]
        assert audit(cache) == []
    total = cache.counters.total()
    assert (total.hits, total.misses, victims) == (report.hits, report.misses, report.victims)
    if report.resident is not None:
        assert {key.expert for key in cache.residents()} == report.resident


# ---------------------------------------------------------------------------------------------- eviction order


@pytest.mark.rule("XC-EVICT-022")
@pytest.mark.parametrize("policy", ["lru", "fifo"])
def test_2_a_prefetched_record_is_stamped_when_it_is_inserted(policy: str) -> None:
    cache = machine(2, policy)
    load(cache, 0)
    cache.prefetch(Key(0, 1))
    cache.complete(Key(0, 1))
    assert run_event(cache, event(2)).victims == keys(0)


@pytest.mark.rule("XC-EVICT-004", "XC-MODEL-007")
def test_10_below_one_token_cycle_of_top_1_nothing_hits_and_at_it_everything_does() -> None:
    trace = decode_trace([[0], [0]] * 5, layers=2)
    below, at = (replay(trace, "lru", Budget(slots=slots)) for slots in (1, 2))
    assert (below.total.hits, at.total.hits, at.total.misses) == (0, 8, 2)
    assert below.warnings
    assert not at.warnings


class Counting(Collection[Key]):
    """No held keys, and how often somebody asked."""

    asked = 0

    def __contains__(self, key: object) -> bool:
        self.asked += 1
        return False

    def __iter__(self) -> Iterator[Key]:
        return iter(())

    def __len__(self) -> int:
        return 0


@pytest.mark.rule("XC-EVICT-002")
@pytest.mark.parametrize("policy", POLICIES)
def test_11_choosing_a_victim_costs_the_same_at_every_capacity(policy: str) -> None:
    for capacity in (16, 1024):
        indexed = make(policy, future=())()
        for expert in range(capacity):
            indexed.insert(Key(0, expert), expert)
        held = Counting()
        for now in range(10):
            victim = indexed.victim(held, None)
            assert victim is not None
            indexed.evict(victim)
            indexed.insert(Key(1, now), capacity + now)
        assert held.asked == 10


# ---------------------------------------------------------------------------------------------- protection


@pytest.mark.rule("XC-RES-004", "XC-RES-024")
@pytest.mark.parametrize(("rule", "refusal"), [("wait", MustWait), ("error", NoVictim)])
def test_16_58_a_slot_stays_reserved_until_the_work_that_reads_it_has_executed(
    rule: str, refusal: type[NoVictim]
) -> None:
    cache = machine(2, no_victim=rule)
    first = cache.select(event(0, 1))
    for key in first.reads:
        cache.complete(key)
    with pytest.raises(refusal) as refused:
        cache.select(event(2, 3))
    assert refused.type is refusal
    assert cache.residents() == set(keys(0, 1))
    cache.release(first.ticket)
    assert cache.select(event(2, 3)).victims == keys(0, 1)


@pytest.mark.rule("XC-RES-004")
def test_58_with_room_for_both_no_drain_is_needed() -> None:
    cache = machine(4)
    first, second = cache.select(event(0, 1)), cache.select(event(2, 3))
    assert len(first.reads + second.reads) == 4
    assert first.victims == second.victims == ()


@pytest.mark.rule("XC-RES-024", "XC-MODEL-001")
@pytest.mark.parametrize("far", [1 + (1 << 16), 1 + (1 << 32)])
def test_17_a_leased_record_is_never_mistaken_for_another(far: int) -> None:
    cache = machine(1, geometry=Geometry(1, far + 1, 1))
    selection = cache.select(event(1))
    cache.complete(Key(0, 1))
    with pytest.raises(MustWait):
        cache.select(event(far))
    cache.release(selection.ticket)
    assert cache.select(event(far)).victims == keys(1)


@pytest.mark.rule("XC-RES-002", "XC-RES-012")
def test_19_duplicates_are_admitted_once_and_what_does_not_fit_is_bypassed() -> None:
    cache = machine(2, overflow="bypass")
    assert run_event(cache, batch((3,), (3,), (4,))).misses == keys(3, 4)
    step = run_event(machine(2, overflow="bypass"), batch((0,), (1,), (2,)))
    assert (step.misses, step.bypassed) == (keys(0, 1), keys(2))


@pytest.mark.rule("XC-RES-011", "XC-RES-004")
def test_20_every_way_to_evict_respects_what_is_in_use_and_shrinks_only_when_needed() -> None:
    cache = machine(3)
    load(cache, 0, 1, 2)
    selection = cache.select(event(0))
    assert cache.resize(Budget(slots=1)) == keys(1, 2)
    assert cache.resize(Budget(slots=1)) == cache.resize(Budget(slots=1)) == ()
    assert cache.release(selection.ticket).victims == ()
    assert cache.residents() == set(keys(0))


@pytest.mark.rule("XC-RES-017")
def test_67_a_handle_of_an_earlier_tenancy_is_dead() -> None:
    cache = machine(1)
    old = cache.select(event(0))
    cache.complete(Key(0, 0))
    cache.release(old.ticket)
    load(cache, 1)
    new = cache.select(event(0))
    cache.complete(Key(0, 0))
    with pytest.raises(WrongState):
        cache.release(old.ticket)
    assert cache.leased() == set(keys(0))
    assert new.ticket != old.ticket


@pytest.mark.rule("XC-RES-009", "XC-RES-017")
def test_145_no_protection_is_left_between_steps() -> None:
    cache = machine(2)
    for number in range(100):
        load(cache, number % 5, (number + 1) % 5)
        assert cache.leased() == frozenset()
        assert cache.parts[-1].holds == {}


@pytest.mark.rule("XC-RES-016", "XC-RES-017")
def test_146_a_failed_pass_leaves_nothing_behind() -> None:
    cache = machine(2)
    selection = cache.select(event(0, 1))
    assert cache.fail(Key(0, 0)).tickets == cache.fail(Key(0, 1)).tickets == (selection.ticket,)
    cache.release(selection.ticket)
    assert (cache.leased(), cache.flights, cache.usage.slots) == (frozenset(), {}, 0)
    assert run_event(cache, event(0, 1)).misses == keys(0, 1)


# ---------------------------------------------------------------------------------------------- single flight, prefetch


@pytest.mark.rule("XC-RES-021", "XC-RES-027", "XC-METRIC-004")
def test_22_23_a_demand_joins_the_prefetch_of_its_key() -> None:
    # The report counts a late prefetch as useful too; here useful and late exclude each other, so that they add up.
    cache = machine(2)
    assert cache.prefetch(Key(0, 5)) == "started"
    selection = cache.select(event(5))
    assert (selection.misses, selection.joined, selection.reads) == (keys(5), keys(5), ())
    assert cache.complete(Key(0, 5)).tickets == (selection.ticket,)
    cache.release(selection.ticket)
    assert cache.prefetch(Key(0, 5)) == "resident"
    counters = cache.counters
    assert (counters.prefetch_issued, counters.prefetch_late, counters.prefetch_useful) == (1, 1, 0)
    assert (counters.prefetch_duplicate, counters.total().reads, counters.prefetched) == (1, 0, 1)


@pytest.mark.rule("XC-METRIC-004")
def test_55_a_prefetch_is_useful_once_however_often_it_is_hit() -> None:
    cache = machine(2)
    cache.prefetch(Key(0, 5))
    cache.complete(Key(0, 5))
    for _ in range(3):
        load(cache, 5)
    assert (cache.counters.prefetch_useful, cache.counters.total().hits) == (1, 3)


@pytest.mark.rule("XC-RES-021", "XC-METRIC-004")
def test_52_only_what_changed_something_is_counted_as_issued() -> None:
    cache = machine(1)
    assert [cache.prefetch(key) for key in keys(0, 0, 1)] == ["started", "in-flight", "refused"]
    counters = cache.counters
    assert (counters.prefetch_issued, counters.prefetch_duplicate, counters.prefetch_refused) == (1, 1, 1)


@pytest.mark.rule("XC-RES-021")
def test_70_a_prefetch_never_displaces_a_record() -> None:
    # 71 asks that a record long unused may go: this specification lets no prefetch into slots evict at all.
    cache = machine(2)
    load(cache, 0)
    load(cache, 1)
    assert cache.prefetch(Key(0, 2)) == "refused"
    assert run_event(cache, event(0)).hits == keys(0)
    cache.resize(Budget(slots=3))
    assert cache.prefetch(Key(0, 2)) == "started"
    assert cache.counters.total().evictions == 0


@pytest.mark.rule("XC-RES-021")
def test_76_the_previous_tokens_set_goes_into_spare_room_only() -> None:
    cache = machine(4)
    load(cache, 0, 1, 2)
    assert [cache.prefetch(key) for key in keys(5, 6)] == ["started", "refused"]
    assert cache.counters.total().evictions == 0


@pytest.mark.rule("XC-RES-021", "XC-RES-024")
def test_79_prefetches_fill_the_free_room_and_a_demand_waits_for_one_of_them_at_most() -> None:
    cache = machine(4, geometry=Geometry(1, 100, 1))
    outcomes = [cache.prefetch(Key(0, expert)) for expert in range(64)]
    assert (outcomes.count("started"), outcomes.count("refused")) == (4, 60)
    with pytest.raises(MustWait):
        cache.select(event(99))
    cache.complete(Key(0, 2))
    assert cache.select(event(99)).victims == keys(2)


@pytest.mark.rule("XC-RES-016", "XC-RES-021")
def test_83_a_failed_prefetch_is_over_and_the_demand_reads_again() -> None:
    cache = machine(2)
    cache.prefetch(Key(0, 5))
    cache.fail(Key(0, 5))
    assert cache.flights == {}
    assert (cache.counters.prefetch_failed, cache.counters.failed) == (1, 1)
    assert cache.select(event(5)).reads == keys(5)


@pytest.mark.rule("XC-RES-016", "XC-RES-027")
def test_83_a_failed_prefetch_wakes_the_demand_that_joined_it() -> None:
    cache = machine(2)
    cache.prefetch(Key(0, 5))
    selection = cache.select(event(5))
    assert cache.fail(Key(0, 5)).tickets == (selection.ticket,)
    cache.release(selection.ticket)
    assert cache.select(event(5)).reads == keys(5)
    assert audit(cache) == []


# ---------------------------------------------------------------------------------------------- capacity


@pytest.mark.rule("XC-MODEL-007", "XC-RES-012")
def test_28_a_budget_below_one_tokens_set_is_warned_about_and_still_serves_every_layer() -> None:
    geometry = Geometry(2, 8, 3)
    assert "below one token cycle (6 records)" in warnings_for(geometry, Budget(slots=5), Settings())[-1]
    trace = decode_trace([[0, 1, 2], [3, 4, 5]], layers=2, experts=8)
    assert replay(trace, "lru", Budget(slots=5)).total.misses == 6


@pytest.mark.rule("XC-RES-012", "XC-RES-013")
def test_29_a_batch_wider_than_the_cache_is_served_in_waves() -> None:
    cache = machine(3, overflow="waves")
    first = cache.select(batch((0, 1), (2, 3)))
    assert (first.reads, first.deferred) == (keys(0, 1, 2), keys(3))
    for key in first.reads:
        cache.complete(key)
    cache.release(first.ticket)
    second = cache.resume(first)
    assert (second.reads, second.victims) == (keys(3), keys(0))
    assert cache.counters.peak_slots == 3


@pytest.mark.rule("XC-RES-010", "XC-METRIC-011")
def test_31_a_changing_working_set_never_doubles_the_cache() -> None:
    cache = machine(4)
    load(cache, 0, 1, 2, 3)
    selection = cache.select(event(4, 5, 6, 7))
    assert (cache.usage.slots, selection.victims) == (4, keys(0, 1, 2, 3))
    for key in selection.reads:
        cache.complete(key)
        assert cache.usage.slots == 4
    assert cache.counters.peak_slots == 4
    record = parse_size("13.5MiB").bytes
    assert [parse_size(text).bytes // record for text in ("20GB", "20GiB")] == [1412, 1517]


@pytest.mark.rule("XC-MODEL-004")
def test_34_a_layer_off_the_nominal_size_is_cached_like_any_other() -> None:
    trace = decode_trace([[0], [0], [0]] * 2, layers=3)
    cache = Residency(Geometry(3, 1, 1, (2, 5, 2)), Budget(bytes=9), make("lru"))
    steps = [run_event(cache, each) for each in trace.events]
    assert [len(step.hits) for step in steps] == [0, 0, 0, 1, 1, 1]
    assert cache.counters.total().bypassed == 0


@pytest.mark.rule("XC-MODEL-004")
def test_35_each_row_is_priced_at_its_own_size() -> None:
    cache = Residency(Geometry(4, 7, 1, (10, 10, 10, 20)), Budget(bytes=300), make("lru"))
    fits = [run_event(cache, event(expert, layer=layer)).victims for expert in range(6) for layer in range(4)]
    assert fits == [()] * 24
    assert cache.usage.bytes == 300
    assert run_event(cache, event(6)).victims == keys(0)


@pytest.mark.rule("XC-RES-011")
def test_37_38_a_lowered_cap_holds_for_good() -> None:
    cache = machine(4)
    load(cache, 0, 1, 2, 3)
    assert cache.resize(Budget(slots=2)) == keys(0, 1)
    assert run_event(cache, event(4)).victims == keys(2)
    for number in range(100):
        load(cache, number % 7)
        assert cache.usage.slots == 2


@pytest.mark.rule("XC-RES-018", "XC-RES-024")
def test_40_pinning_everything_does_not_exceed_the_budget() -> None:
    cache = machine(4)
    load(cache, 0, 1, 2, 3)
    for key in keys(0, 1, 2, 3):
        cache.pin(key)
    with pytest.raises(WrongState, match="not resident"):
        cache.pin(Key(0, 4))
    assert len(cache.pinned()) == cache.usage.slots == 4
    with pytest.raises(EventTooLarge, match="unpin"):
        cache.select(event(4))


@pytest.mark.rule("XC-RES-011")
@pytest.mark.parametrize("policy", POLICIES)
def test_43_a_resize_trims_every_structure_of_the_policy_at_once(policy: str) -> None:
    cache = Residency(Geometry(1, 8, 8), Budget(slots=8), make(policy, future=[event(*range(8))]))
    run_event(cache, event(*range(8)))
    cache.resize(Budget(slots=2))
    indexed: Any = cache.parts[-1].policy
    for structure in ("queue", "recency"):
        assert len(getattr(indexed, structure, (1, 2))) == 2
    if hasattr(indexed, "index"):
        assert len(indexed.index.filed) == 2


@pytest.mark.rule("XC-RES-012", "XC-RES-005")
def test_59_what_finds_no_slot_is_bypassed_and_no_slot_is_filled_twice_in_a_step() -> None:
    cache = machine(2, overflow="bypass")
    selection = cache.select(event(0, 1, 2, 3))
    assert (selection.reads, selection.bypassed, selection.victims) == (keys(0, 1), keys(2, 3), ())


# ---------------------------------------------------------------------------------------------- counters


@pytest.mark.rule("XC-RES-018", "XC-METRIC-001")
def test_47_hits_on_pinned_records_are_hits() -> None:
    # The report wants a count for each tier; there is one tier here, in which some records are pinned.
    cache = machine(2)
    load(cache, 0)
    cache.pin(Key(0, 0))
    cache.reset("counters")
    for expert in (0, 1, 1, 0):
        load(cache, expert)
    total = cache.counters.total()
    assert (total.lookups, total.hits, total.misses) == (4, 3, 1)


@pytest.mark.rule("XC-METRIC-001", "XC-METRIC-009")
def test_53_172_bypassed_lookups_are_counted_apart_from_misses_and_their_bytes_are_counted() -> None:
    # 172 expects misses = lookups at capacity 0; here they are bypassed, as 53 asks, and misses stay 0.
    cache = machine(0)
    run_event(cache, batch((0, 1, 2), (3, 4, 5)))
    total = cache.counters.total()
    assert (total.misses, total.bypassed, total.bytes_read, total.lookups) == (0, 6, 6, 6)


@pytest.mark.rule("XC-RES-022")
def test_139_a_reset_of_counters_keeps_the_contents() -> None:
    cache = machine(2)
    load(cache, 0)
    cache.reset("counters")
    assert cache.counters.total() == Row()
    assert cache.residents() == set(keys(0))
    assert run_event(cache, event(0)).hits == keys(0)
    assert cache.counters.total().compulsory == 0


# ---------------------------------------------------------------------------------------------- contents and identity


@pytest.mark.rule("XC-RES-022", "XC-RES-023")
@pytest.mark.parametrize("how", [lambda cache: cache.reset("contents"), lambda cache: cache.rebind("other")])
def test_61_158_when_the_memory_behind_it_is_gone_nothing_is_a_hit(how: Any) -> None:
    cache = machine(2)
    load(cache, 0)
    how(cache)
    assert (cache.epoch, cache.residents()) == (1, frozenset())
    assert run_event(cache, event(0)).misses == keys(0)
    assert cache.counters.total().reads == 2


@pytest.mark.rule("XC-RES-023")
def test_158_a_rebind_to_the_same_model_changes_nothing() -> None:
    cache = machine(2)
    cache.rebind("this")
    load(cache, 0)
    cache.rebind("this")
    assert run_event(cache, event(0)).hits == keys(0)


@pytest.mark.rule("XC-RES-016", "XC-MODEL-002")
def test_62_a_record_that_cannot_be_read_whole_is_not_published_and_others_still_work() -> None:
    cache = machine(2)
    selection = cache.select(event(3))
    cache.fail(Key(0, 3))
    cache.release(selection.ticket)
    assert cache.residents() == frozenset()
    load(cache, 2)
    assert cache.residents() == set(keys(2))


# ---------------------------------------------------------------------------------------------- seeds


@pytest.mark.rule("XC-RES-020", "XC-METRIC-009")
def test_137_seeding_says_what_it_installed_and_counts_as_no_lookup() -> None:
    cache = machine(4)
    seeded = cache.seed(keys(3, 5))
    for key in seeded.reads:
        cache.complete(key)
    total = cache.counters.total()
    assert (len(seeded.reads), cache.residents(), cache.counters.seeds) == (2, set(keys(3, 5)), 2)
    assert (total.hits, total.misses, total.reads, cache.counters.seed_bytes) == (0, 0, 0, 2)


@pytest.mark.rule("XC-RES-020")
def test_140_entries_of_a_damaged_profile_are_ignored_and_counted() -> None:
    cache = machine(4, geometry=Geometry(2, 8, 1))
    seeded = cache.seed([Key(0, 3), Key(9, 1), Key(0, 999), Key(0, -1), Key(0, 3)])
    assert seeded == (keys(3), 1, 3, 0)


@pytest.mark.rule("XC-RES-020", "XC-RES-008")
def test_seeds_fill_free_room_in_list_order_and_evict_nothing() -> None:
    cache = machine(3)
    load(cache, 0)
    seeded = cache.seed(keys(5, 4, 3, 0))
    assert (seeded.reads, seeded.present, seeded.refused) == (keys(5, 4), 1, 1)
    assert 0 in {key.expert for key in cache.residents()}


# ---------------------------------------------------------------------------------------------- prefill, verification


@pytest.mark.rule("XC-RES-013")
def test_148_each_expert_of_a_batch_is_read_once_however_small_the_cache() -> None:
    cache = machine(2, overflow="waves")
    run_event(cache, batch((0, 1), (1, 2), (2, 3), (3, 0)))
    assert (cache.counters.total().reads, cache.counters.peak_slots) == (4, 2)


PROMPT = batch((2, 3), (4, 5), (6, 7), stream=1)


@pytest.mark.rule("XC-RES-012", "XC-RES-018")
def test_149_a_prompt_wider_than_the_cache_leaves_the_pinned_decode_set_alone() -> None:
    # The report's no-evict mode, spelled with pins: two of six are kept, four pass by, and decode hits.
    cache = machine(4, overflow="bypass")
    load(cache, 0, 1)
    cache.pin(Key(0, 0))
    cache.pin(Key(0, 1))
    step = run_event(cache, PROMPT)
    assert (len(step.misses), len(step.bypassed)) == (2, 4)
    assert run_event(cache, event(0, 1)).hits == keys(0, 1)


@pytest.mark.rule("XC-RES-012", "XC-RES-013")
@pytest.mark.parametrize(("overflow", "misses", "bypassed"), [("waves", 10, 0), ("bypass", 8, 2)])
def test_149_without_pins_decode_starts_again(overflow: str, misses: int, bypassed: int) -> None:
    # "Plain LRU: total misses = 10": in waves all six are loaded; with bypass two of the ten are counted as bypassed.
    cache = machine(4, overflow=overflow)
    load(cache, 0, 1)
    run_event(cache, PROMPT)
    assert run_event(cache, event(0, 1)).hits == ()
    total = cache.counters.total()
    assert (total.misses, total.bypassed) == (misses, bypassed)


@pytest.mark.rule("XC-RES-007")
@pytest.mark.parametrize(("repeats", "order"), [("promote", [0, 2, 3, 1, 4]), ("ignore", [0, 1, 2, 3, 4])])
@pytest.mark.parametrize("form", ["indexed", "declarative"])
def test_151_152_recency_after_a_prompt_is_that_of_the_last_row_that_asked(
    repeats: Any, order: list[int], form: Any
) -> None:
    cache = Residency(Geometry(1, 5, 2), Budget(slots=5), make("lru", form), Settings(repeats=repeats))
    run_event(cache, batch((0, 1), (2, 3), (1, 4)))
    assert [key.expert for key in cache.resize(Budget(slots=0))] == order


@pytest.mark.rule("XC-RES-006")
@pytest.mark.parametrize(("touch", "order"), [("router", [0, 1, 2]), ("hits_first", [1, 0, 2])])
@pytest.mark.parametrize("form", ["indexed", "declarative"])
def test_185_recency_within_an_event_follows_the_declared_touch_order(touch: Any, order: list[int], form: Any) -> None:
    cache = Residency(Geometry(1, 5, 3), Budget(slots=5), make("lru", form), Settings(touch=touch))
    run_event(cache, event(1))
    run_event(cache, event(0, 1, 2))
    assert [key.expert for key in cache.resize(Budget(slots=0))] == order


@pytest.mark.rule("XC-RES-002", "XC-METRIC-005")
def test_154_verification_goes_through_the_same_cache() -> None:
    cache = machine(3)
    load(cache, 0, 1, 2)
    step = run_event(cache, batch((0, 1), (1, 2), phase="verify"))
    assert (step.hits, step.misses) == (keys(0, 1, 2), ())
    assert cache.counters.per_phase()["verify"].reads == 0


@pytest.mark.rule("XC-TRACE-001")
@pytest.mark.parametrize("phase", ["prefill", "verify"])
def test_155_a_batch_of_one_row_is_a_decode_step(phase: str) -> None:
    decode, single = machine(2), machine(2)
    for asked in ((0, 1), (1, 2)):
        assert run_event(decode, event(*asked)) == run_event(single, batch(asked, phase=phase))


@pytest.mark.rule("XC-MODEL-001")
def test_157_a_draft_block_is_one_more_layer_and_no_layer_beyond_the_last_exists() -> None:
    draft = event(0, layer=2)
    assert run_event(machine(2, geometry=Geometry(3, 4, 1)), draft).misses == keys(0, layer=2)
    with pytest.raises(InvalidModel, match="layers 0 to 1"):
        machine(2, geometry=Geometry(2, 4, 1)).select(draft)


# ---------------------------------------------------------------------------------------------- tooling


@pytest.mark.rule("XC-EVICT-001", "XC-EVICT-052")
def test_184_188_a_mistyped_policy_and_an_oracle_without_a_future_are_errors() -> None:
    with pytest.raises(UnknownName, match="lur"):
        make("lur")
    with pytest.raises(NeedsFuture):
        make("belady")
