"""Counters: what is booked where, and the identities that hold after any run."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given

from expertcache_spec.metrics import Counters, Row, broken_identities
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import Replay, replay
from expertcache_spec.residency import Settings
from expertcache_spec.trace import Event, Trace, decode_trace

from .strategies import Case, cases, random_case


def totals_by_hand(case: Case, policy: str) -> None:
    """Check every count that a replay of whole events can be recounted by."""
    run = Replay(case.trace, policy, case.budget, case.settings)
    sizes = case.trace.geometry.record_bytes or (0,) * case.trace.geometry.layers
    lookups = hits = misses = bypassed = refused = evictions = reads = read_bytes = 0
    compulsory = reloads = collisions = 0
    asked: set[Key] = set()
    departed: dict[Key, tuple[int, int]] = {}
    for event, step in zip(run.events, run, strict=True):
        here = event.stream, event.pass_index
        compulsory += sum(key not in asked for key in step.misses)
        reloads += sum(key in departed for key in step.misses)
        collisions += sum(departed.get(key) == here for key in step.misses)
        asked.update(event.keys)
        departed.update(dict.fromkeys(step.victims, here))
        lookups += len(event.keys)
        hits += len(step.hits)
        misses += len(step.misses)
        bypassed += len(step.bypassed)
        refused += len(step.refused)
        evictions += len(step.victims)
        reads += len(step.misses) + len(step.bypassed)
        read_bytes += sizes[event.layer] * (len(step.misses) + len(step.bypassed))
    total = run.result().total
    assert (total.lookups, total.hits, total.misses, total.bypassed) == (lookups, hits, misses, bypassed)
    assert (total.refused, total.evictions, total.reads, total.bytes_read) == (refused, evictions, reads, read_bytes)
    assert (total.compulsory, total.reloads, total.collisions) == (compulsory, reloads, collisions)
    assert total.selections == sum(len(event.selections()) for event in run.events)
    assert total.admissions == misses - refused
    assert total.evictions == total.admissions - len(run.machine.residents())
    assert total.joined == total.dropped == 0
    rows = run.machine.counters.rows.values()
    assert all(value >= 0 for row in rows for value in attrs.astuple(row))
    assert all(row.reads == row.misses + row.bypassed for row in rows)
    for view in (run.machine.counters.per_layer(), run.machine.counters.per_phase()):
        summed = Row()
        for row in view.values():
            summed.add(row)
        assert summed == total


@pytest.mark.rule("XC-METRIC-001", "XC-METRIC-002", "XC-METRIC-003", "XC-METRIC-006", "XC-METRIC-009", "XC-METRIC-010")
@given(cases(fixed={"overflow": "bypass"}))
def test_counts_are_those_of_the_steps_and_every_view_sums_to_the_total(case: Case) -> None:
    totals_by_hand(case, "belady")


@pytest.mark.rule("XC-METRIC-001", "XC-METRIC-002", "XC-METRIC-003", "XC-METRIC-006", "XC-METRIC-009", "XC-METRIC-010")
@pytest.mark.parametrize("policy", ["lru", "lfu", "belady"])
@pytest.mark.parametrize("overflow", ["bypass", "waves"])
def test_counts_are_those_of_the_steps_in_volume(policy: str, overflow: str) -> None:
    for seed in range(150):
        case = random_case(seed, policy, overflow=overflow)
        smallest = case.trace.geometry.experts * max(case.trace.geometry.record_bytes or (1,))
        room = Budget(case.budget.slots, None if case.budget.bytes is None else case.budget.bytes + smallest)
        totals_by_hand(attrs.evolve(case, budget=room), policy)


@pytest.mark.rule("XC-METRIC-008")
def test_what_only_rejected_rows_asked_for_has_a_row_of_its_own_reads_included() -> None:
    geometry = Geometry(1, 8, 2, (10,))
    verify = Event(0, ((0, 1), (1, 2), (3, 1)), phase="verify", accepted=1)
    for room in ("reserve", "trim", "retain"):
        result = replay(Trace(geometry, (verify,)), "lru", Budget(slots=4), Settings(room=room))  # type: ignore[arg-type]
        kept, rejected = result.counters.per_phase()["verify"], result.counters.per_phase()["verify-rejected"]
        assert (kept.selections, kept.lookups, kept.misses, kept.reads, kept.bytes_read, kept.admissions) == (
            4,
            2,
            2,
            2,
            20,
            2,
        )
        assert (rejected.selections, rejected.lookups, rejected.misses) == (2, 2, 2)
        assert (rejected.reads, rejected.bytes_read, rejected.admissions) == (2, 20, 2)


@pytest.mark.rule("XC-METRIC-008")
def test_the_touches_of_rejected_rows_count() -> None:
    verify = Event(0, ((0,), (1,)), phase="verify", accepted=0)
    trace = Trace(Geometry(1, 4, 1), (verify, *(Event(0, ((e,),), pass_index=i) for i, e in ((1, 2), (2, 0)))))
    assert [step.hits for step in Replay(trace, "lru", Budget(slots=3))][2] == ((0, 0),)


@pytest.mark.rule("XC-METRIC-005", "XC-METRIC-007")
def test_prefill_first_token_and_steady_decode_are_counted_apart() -> None:
    # bugs 49: ten lookups of a prompt miss, four of decode hit; no phase shows 4 / 14.
    geometry = Geometry(1, 10, 4)
    prompt = Event(0, ((0, 1, 2, 3), (4, 5, 6, 7), (8, 9)), phase="prefill")
    decode = [Event(0, ((0, 1),), pass_index=1), Event(0, ((2, 3),), pass_index=2)]
    phases = replay(Trace(geometry, (prompt, *decode)), "lru", Budget(slots=10)).counters.per_phase()
    assert {phase: (row.hits, row.misses) for phase, row in phases.items()} == {
        "prefill": (0, 10),
        "decode-first-token": (2, 0),
        "decode": (2, 0),
    }


@pytest.mark.rule("XC-METRIC-007")
def test_every_stream_has_its_own_first_token() -> None:
    events = [Event(0, ((0,),), stream, number) for number in range(3) for stream in (0, 1)]
    phases = replay(Trace(Geometry(1, 1, 1), tuple(events)), "lru", Budget(slots=1)).counters.per_phase()
    assert (phases["decode-first-token"].lookups, phases["decode"].lookups) == (2, 4)


@pytest.mark.rule("XC-METRIC-002", "XC-METRIC-010")
def test_a_reload_was_resident_before_and_a_collision_left_in_the_same_pass() -> None:
    # policies.md 35.6: blocks 0,2 in pass 0 and 1,2 in pass 1, two layers of two experts, global LRU.
    trace = decode_trace([[0], [0], [1], [0]], layers=2, experts=2)
    two, one = (replay(trace, "lru", Budget(slots=slots)).total for slots in (2, 1))
    assert (two.misses, two.compulsory, two.reloads, two.collisions) == (3, 3, 0, 0)
    assert (one.misses, one.compulsory, one.reloads, one.collisions) == (4, 3, 1, 1)
    assert one.capacity_misses == 1


@pytest.mark.rule("XC-METRIC-011")
def test_the_peak_includes_the_overshoot_of_trim_and_retain_and_nothing_else() -> None:
    trace = decode_trace([[0, 1], [2, 3]], record_bytes=5)
    peaks = {}
    for room in ("reserve", "trim", "retain"):
        counters = replay(trace, "lru", Budget(slots=2), Settings(room=room)).counters  # type: ignore[arg-type]
        peaks[room] = (counters.peak_slots, counters.peak_bytes)
    assert peaks == {"reserve": (2, 10), "trim": (4, 20), "retain": (4, 20)}


@pytest.mark.rule("XC-METRIC-001", "XC-METRIC-002", "XC-METRIC-003", "XC-METRIC-004")
@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        ({"lookups": 1}, "XC-METRIC-001"),
        ({"lookups": 1, "hits": 1, "compulsory": 1}, "XC-METRIC-002"),
        ({"admissions": 1}, "XC-METRIC-003"),
        ({"evictions": 1}, "XC-METRIC-003"),
    ],
)
def test_a_broken_identity_is_named(broken: dict[str, int], rule: str) -> None:
    counters = Counters()
    for name, value in broken.items():
        setattr(counters.bucket("decode", False)[0], name, value)
    assert broken_identities(counters, 0) == [rule]


@pytest.mark.rule("XC-METRIC-004")
def test_prefetches_that_went_nowhere_are_named() -> None:
    assert broken_identities(Counters(prefetch_issued=2, prefetch_useful=1), 0) == ["XC-METRIC-004"]
    assert broken_identities(Counters(prefetch_issued=2, prefetch_useful=1), 0, outstanding_prefetches=1) == []


@pytest.mark.rule("XC-METRIC-006")
def test_layers_are_listed_in_numeric_order() -> None:
    trace = decode_trace([[0]] * 12, layers=12)
    assert list(replay(trace, "lru", Budget(slots=3)).counters.per_layer()) == list(range(12))


def test_adding_rows_adds_every_count() -> None:
    names = [field.name for field in attrs.fields(Row)]
    left, right = Row(*range(len(names))), Row(*(10 * n for n in range(len(names))))
    left.add(right)
    assert list(attrs.astuple(left)) == [11 * n for n in range(len(names))]


@pytest.mark.rule("XC-METRIC-011")
def test_the_order_inside_a_selection_shows_in_no_peak() -> None:
    # One free slot and one victim of 4 bytes for two records of 3: 4 bytes become 6; the slot taken first would show 7.
    geometry = Geometry(2, 2, 2, (4, 3))
    events = (Event(0, ((0,),)), Event(1, ((0, 1),)))
    counters = replay(Trace(geometry, events), "lru", Budget(slots=2)).counters
    assert (counters.peak_slots, counters.peak_bytes) == (2, 6)
