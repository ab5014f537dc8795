"""Misses: fetching, and what is done instead (XC-MISS-001 to 012)."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from expertcache_spec.errors import InvalidTrace, NeedsFuture, UnknownName
from expertcache_spec.metrics import broken_identities
from expertcache_spec.misses import ChangesTrace, Losses, Lossy, Misses, decisions
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.prefetch import Prefetch
from expertcache_spec.replay import Replay, Result, as_dict, replay
from expertcache_spec.residency import Settings, audit
from expertcache_spec.trace import Event, Trace, decode_trace

from .running import experts
from .strategies import random_case

LOSSY: dict[str, dict[str, Any]] = {
    "drop-weight": {"factor": 0.9}, "drop-rank": {"rank": 2}, "substitute": {"tolerance": 0.4}, "lower-precision": {},
    "reroute": {"open_loop": True}, "fewer": {"k": 1},
}  # fmt: skip


def scored(seed: int, passes: int = 12, tokens: int = 1, phase: Any = "decode") -> Trace:
    """A trace with scores, whose rows are their top-k and whose weights are normalised; one-row or batched."""
    random, geometry = Random(seed), Geometry(2, 8, 3, (10, 20))
    events = []
    for number in range(passes):
        for layer in range(2):
            scores = tuple(tuple(random.random() ** 3 for _ in range(8)) for _ in range(tokens))
            rows = tuple(tuple(sorted(range(8), key=lambda e, line=line: (-line[e], e))[:3]) for line in scores)  # type: ignore[misc]
            sums = [sum(line[e] for e in row) for line, row in zip(scores, rows, strict=True)]
            weights = tuple(
                tuple(line[e] / whole for e in row) for line, row, whole in zip(scores, rows, sums, strict=True)
            )
            events.append(Event(layer, rows, pass_index=number, phase=phase, weights=weights, scores=scores))
    return Trace(geometry, tuple(events))


def lossy(trace: Trace, slots: int, **how: Any) -> tuple[Result, Losses]:
    """One lossy replay, its identities checked."""
    run = Replay(trace, "lru", Budget(slots=slots), Settings(overflow="bypass"), misses=Misses(**how))
    for _ in run:
        pass
    result = run.result()
    assert result.losses is not None
    assert audit(run.machine) == broken_identities(run.machine.counters, run.machine.occupancy_change()) == []
    return result, result.losses


# ---------------------------------------------------------------------------------------------- decisions


@pytest.mark.rule("XC-MISS-004", "XC-MISS-003")
@pytest.mark.parametrize(
    ("weights", "factor", "droppable"),
    [
        ((0.5, 0.25, 0.15, 0.10), 1.0, [False, False, True, True]),  # below 0.25: strictly
        ((0.5, 0.25, 0.15, 0.10), 0.5, [False, False, False, True]),
        ((0.5, 0.25, 0.15, 0.10), 0.0, [False] * 4),
        ((0.1, 0.1, 0.1), 99.0, [False, True, True]),  # the first of equals is the top one
        ((0.1, 0.7, 0.2), 99.0, [True, False, True]),  # the top one by weight, whatever its rank
    ],
)
def test_what_weighs_less_than_a_share_may_be_dropped_and_the_top_one_never(
    weights: Sequence[float], factor: float, droppable: list[bool]
) -> None:
    assert decisions.light(weights, factor) == droppable


@pytest.mark.rule("XC-MISS-004", "XC-MISS-003")
@pytest.mark.parametrize(
    ("rank", "droppable"),
    [(1, [False, True, True, True]), (3, [False, False, True, True]), (5, [False] * 4)],
)
def test_ranks_count_from_one_and_the_first_is_never_dropped(rank: int, droppable: list[bool]) -> None:
    assert decisions.late_ranked(4, rank) == droppable


@pytest.mark.rule("XC-MISS-005")
def test_the_weights_that_are_left_sum_to_what_all_did() -> None:
    for seed in range(100):
        random = Random(seed)
        weights = [random.random() for _ in range(6)]
        served = [True, *(random.random() < 0.5 for _ in range(5))]
        left = decisions.renormalised(weights, served)
        assert sum(left) == pytest.approx(sum(weights))
        kept = [w for w, serve in zip(weights, served, strict=True) if serve]
        assert [a / left[0] for a in left] == pytest.approx([w / kept[0] for w in kept])
    assert decisions.renormalised((0.3, 0.3), (True, True)) == (0.3, 0.3)
    assert decisions.renormalised((0.0, 1.0), (True, False)) == (0.0,)


@pytest.mark.rule("XC-MISS-006", "XC-MISS-003")
def test_a_substitute_is_near_resident_and_used_once() -> None:
    scores = (0.9, 0.5, 0.45, 0.44, 0.44, 0.1)
    row = [0, 1, 2]
    gone = [True, True, True]

    def taken(resident: set[int], tolerance: float, absent: Sequence[bool] = gone) -> list[int]:
        return decisions.substituted(row, absent, scores, resident, tolerance)

    assert taken({3, 4, 5}, 0.1) == [0, 3, 4]  # the best first, equals by id, each once; the top one stays
    assert taken({3, 4, 5}, 0.02) == [0, 1, 3]  # 0.06 is too far from 0.5, near enough to 0.45
    assert taken({5}, 0.1) == row
    assert taken({2, 3}, 0.1) == [0, 3, 2]  # 2 is asked for already
    assert taken({3, 4}, 0.1, [False] * 3) == row


@pytest.mark.rule("XC-MISS-007", "XC-MISS-003")
def test_precision_follows_the_weight_of_better_ranked_experts() -> None:
    # HOBBIT: s_i <= 0.6 high, <= 0.9 low, beyond skip, where s_i sums the weights before i.
    assert decisions.precisions((0.5, 0.25, 0.2, 0.05), 0.6, 0.9) == ["high", "high", "low", "skip"]
    assert decisions.precisions((0.25,) * 4, 0.5, 0.75) == ["high", "high", "high", "low"]
    assert decisions.precisions((1.0, 0.0), 0.0, 0.0) == ["high", "skip"]


@pytest.mark.rule("XC-MISS-007")
@pytest.mark.parametrize(
    ("size", "bits", "low", "read"), [(100, 4, 2, 50), (101, 4, 2, 51), (9, 16, 2, 2), (0, 4, 2, 0)]
)
def test_a_low_precision_record_is_its_share_of_the_bits(size: int, bits: int, low: int, read: int) -> None:
    assert decisions.low_bytes(size, bits, low) == read


@pytest.mark.rule("XC-MISS-008")
def test_biased_scores_choose_and_original_ones_weigh() -> None:
    scores = (3.0, 2.0, 1.5, 0.0)
    assert decisions.rerouted(scores, {2}, 2, 0.0) == [0, 1]
    assert decisions.rerouted(scores, {2}, 2, 1.0) == [0, 2]
    assert decisions.rerouted(scores, {2, 3}, 2, 9.0) == [2, 3]
    assert decisions.rerouted((1.0, 1.0, 1.0), {1}, 2, 0.0) == [0, 1]
    few = decisions.original_weights(scores, [0, 2])
    assert sum(few) == pytest.approx(1)
    assert few[0] / few[1] == pytest.approx(2.718281828459045**1.5)
    assert [decisions.spread((1.0, 2.0, 6.0), d) for d in ("mean", "range", "own_range")] == [3.0, 5.0, 5.0]


@pytest.mark.rule("XC-MISS-009")
def test_fewer_experts_are_the_first() -> None:
    assert decisions.fewer((5, 3, 8), 2) == [True, True, False]
    assert decisions.fewer((5, 3), 3) == [True, True]


@pytest.mark.rule("XC-MISS-003", "XC-MISS-009")
def test_the_top_expert_is_the_heaviest_wherever_it_stands_and_without_weights_the_first() -> None:
    assert (decisions.top((0.05, 0.05, 0.9)), decisions.top((0.4, 0.4)), decisions.top(None)) == (2, 0, 0)
    assert decisions.late_ranked(3, 2, best=2) == [False, True, False]
    assert decisions.precisions((0.05, 0.05, 0.9), 0.0, 0.05) == ["high", "low", "high"]
    assert decisions.fewer((5, 3, 8), 2, best=2) == [True, False, True]
    assert decisions.fewer((5, 3, 8), 2, best=1) == [True, True, False]
    scores = (0.5, 0.5, 0.5, 0.5)
    assert decisions.substituted((0, 1, 2), [True] * 3, scores, {3}, 0, best=2) == [3, 1, 2]


@pytest.mark.rule("XC-MISS-003")
@pytest.mark.parametrize("weights", [((0.05, 0.05, 0.9),), None])
@pytest.mark.parametrize(
    "how",
    [
        {"mode": "drop-rank", "rank": 1}, {"mode": "substitute", "tolerance": 1.0}, {"mode": "fewer", "k": 1},
        {"mode": "drop-weight", "factor": 9.0}, {"mode": "lower-precision", "high": 0.0, "low": 0.0},
    ],
)  # fmt: skip
def test_the_top_expert_of_a_row_that_is_not_in_order_of_weight_is_served(weights: Any, how: dict[str, Any]) -> None:
    scores = ((0.5,) * 6,)
    event = Event(0, ((0, 1, 2),), weights=weights, scores=scores)
    if weights is None and how["mode"] in ("drop-weight", "lower-precision"):
        return  # it decides by weights
    served, lost = Lossy(Misses(**how), Geometry(1, 6, 3)).apply(event, lambda key: key.expert > 2)
    top = Key(0, 2 if weights else 0)
    assert top in served.keys
    assert lost
    assert top not in lost


@pytest.mark.rule("XC-MISS-008")
def test_the_delta_of_rerouting_is_the_mean_of_all_tokens_so_far() -> None:
    # Ranges of 10 and 1: after both the mean is 5.5, so a bias of .1 lifts a resident over a gap of .5, not of .6.
    for gap, chosen in ((0.5, (0, 2)), (0.6, (0, 1))):
        lossy_run = Lossy(Misses("reroute", bias=0.1, delta="range", open_loop=True), Geometry(1, 4, 2))
        for scores in ((10.0, 5.0, 3.0, 0.0), (1.0, 0.8, 0.8 - gap, 0.0)):
            event = Event(0, ((0, 1),), scores=(scores,))
            served, _ = lossy_run.apply(event, lambda key: key.expert == 2)
        assert served.rows == (chosen,)


# ---------------------------------------------------------------------------------------------- replays


@pytest.mark.rule("XC-MISS-002", "XC-METRIC-001")
@pytest.mark.parametrize("mode", LOSSY)
@pytest.mark.parametrize("tokens", [1, 3])
def test_every_lookup_of_the_trace_is_served_or_counted_as_dropped(mode: Any, tokens: int) -> None:
    lost = 0
    for seed in range(12):
        trace = scored(seed, tokens=tokens)
        result, losses = lossy(trace, 3 + seed % 5, mode=mode, **LOSSY[mode])
        total, asked = result.total, sum(len(event.keys) for event in trace.events)
        assert total.lookups == asked + losses.substituted
        assert total.dropped == losses.dropped
        assert total.lookups == total.hits + total.misses + total.bypassed + total.dropped
        assert losses.events <= len(trace.events)
        assert 0 <= losses.weight_lost <= losses.weight
        assert (losses.substituted > 0) <= (mode in ("substitute", "reroute"))
        lost += losses.dropped
    assert lost > 20


@pytest.mark.rule("XC-MISS-003", "XC-MISS-004")
@pytest.mark.parametrize("mode", ["drop-weight", "drop-rank", "lower-precision", "substitute"])
def test_what_is_given_up_was_absent_and_not_the_top_one(mode: Any) -> None:
    for seed in range(12):
        run = Replay(scored(seed), "lru", Budget(slots=5), misses=Misses(mode, **LOSSY[mode]))
        resident: frozenset[Key] = frozenset()
        for event, step in zip(run.events, run, strict=True):
            served = {*step.hits, *step.misses}
            assert not (set(event.keys) - served) & resident
            assert event.keys[0] in served
            resident = run.machine.residents()


@pytest.mark.rule("XC-MISS-004")
def test_a_record_that_another_token_needs_is_read_and_serves_all() -> None:
    weights = ((0.9, 0.1), (0.9, 0.1))
    event = Event(0, ((0, 1), (1, 2)), weights=weights)
    trace = Trace(Geometry(1, 4, 2, (10,)), (event,))
    result, losses = lossy(trace, 4, mode="drop-weight", factor=1.0)
    assert (losses.dropped, losses.weight_lost, result.total.misses, result.total.selections) == (1, 100_000, 2, 4)


@pytest.mark.rule("XC-MISS-011", "XC-MISS-009")
@pytest.mark.parametrize("phase", ["prefill", "verify"])
def test_prompts_and_verification_are_left_alone_but_by_a_run_time_k(phase: Any) -> None:
    trace = scored(1, phase=phase)
    plain = replay(trace, "lru", Budget(slots=5))
    for mode, how in LOSSY.items():
        result, losses = lossy(trace, 5, mode=mode, **how)
        if mode == "fewer":
            assert losses.dropped == 2 * len(trace.events)
        else:
            assert (losses, result.counters) == (Losses(), plain.counters)


@pytest.mark.rule("XC-MISS-007")
def test_low_precision_reads_are_counted_apart_and_not_kept() -> None:
    event = Event(0, ((0, 1, 2, 3),), weights=((0.5, 0.25, 0.2, 0.05),))
    trace = Trace(Geometry(1, 4, 4, (101,)), (event,))
    result, losses = lossy(trace, 4, mode="lower-precision")
    assert (losses.dropped, losses.degraded, losses.degraded_bytes) == (2, 1, 51)
    assert (result.total.misses, result.total.bytes_read, losses.weight_lost) == (2, 202, 50_000)


@pytest.mark.rule("XC-MISS-006")
def test_a_substitute_is_a_hit_of_its_own_and_the_lost_one_is_dropped() -> None:
    scores = ((0.5, 0.4, 0.39, 0.0),)
    events = [Event(0, ((0, 2),), scores=scores), Event(0, ((0, 1),), pass_index=1, scores=scores)]
    trace = Trace(Geometry(1, 4, 2), tuple(events))
    run = Replay(trace, "lru", Budget(slots=2), misses=Misses("substitute", tolerance=0.05))
    assert [experts(step.hits) for step in run] == [[], [0, 2]]
    assert (run.result().total.dropped, run.result().total.reads) == (1, 2)


@pytest.mark.rule("XC-MISS-009")
def test_a_run_time_k_reads_what_the_shorter_rows_read() -> None:
    for seed in range(10):
        trace = scored(seed, tokens=2)
        short = Trace(trace.geometry, tuple(
            Event(e.layer, tuple(row[:2] for row in e.rows), e.stream, e.pass_index, e.phase) for e in trace.events
        ))  # fmt: skip
        result, _ = lossy(trace, 6, mode="fewer", k=2)
        plain = replay(short, "lru", Budget(slots=6), Settings(overflow="bypass"))
        assert (result.total.hits, result.total.misses, result.total.evictions) == (
            plain.total.hits, plain.total.misses, plain.total.evictions,
        )  # fmt: skip


@pytest.mark.rule("XC-MISS-001", "XC-MISS-002")
def test_a_record_that_is_staged_need_not_be_dropped() -> None:
    weights = ((0.9, 0.1),)
    rows = [(0, 1), (0, 2), (0, 3)]
    trace = Trace(Geometry(1, 4, 2), tuple(Event(0, (r,), pass_index=n, weights=weights) for n, r in enumerate(rows)))
    how = Misses("drop-weight", factor=1.0)
    oracle = Prefetch("oracle", cap=Budget(slots=4))
    alone, staged = (replay(trace, "lru", Budget(slots=2), misses=how, prefetch=p) for p in (None, oracle))
    assert alone.losses is not None
    assert staged.losses is not None
    assert (alone.losses.dropped, staged.losses.dropped, staged.total.adopted) == (3, 1, 2)


# ---------------------------------------------------------------------------------------------- labels, refusals


@pytest.mark.rule("XC-MISS-001")
def test_fetch_loses_nothing_and_says_nothing() -> None:
    for seed in range(20):
        case = random_case(seed, "lru", overflow="bypass")
        plain = replay(case.trace, "lru", case.budget, case.settings)
        fetched = replay(case.trace, "lru", case.budget, case.settings, misses=Misses())
        assert (fetched.counters, fetched.warnings, fetched.losses) == (plain.counters, plain.warnings, None)
        assert fetched.manifest.misses is not None
        assert fetched.manifest.misses["lossy"] is False
        assert plain.total.dropped == 0


@pytest.mark.rule("XC-MISS-001", "XC-MISS-010")
@pytest.mark.parametrize("mode", LOSSY)
def test_a_lossy_result_says_so_wherever_it_is_shown(mode: Any) -> None:
    result, _ = lossy(scored(0), 4, mode=mode, **LOSSY[mode])
    shown = as_dict(result)
    assert shown["manifest"]["misses"]["lossy"] is True
    assert shown["manifest"]["misses"]["valid"] is (mode != "reroute")
    assert any(warning.startswith("LOSSY") and mode in warning for warning in shown["warnings"])
    assert any(warning.startswith("INVALID") for warning in shown["warnings"]) is (mode == "reroute")
    assert shown["losses"]["dropped"] == shown["dropped"]


@pytest.mark.rule("XC-MISS-010")
def test_an_open_loop_replay_of_rerouting_is_refused() -> None:
    with pytest.raises(ChangesTrace, match="changes what later events ask for") as refused:
        Misses("reroute")
    again = pickle.loads(pickle.dumps(refused.value))
    assert (again.code, str(again)) == ("changes-trace", str(refused.value))


@pytest.mark.rule("XC-MISS-012")
def test_a_mode_refuses_a_trace_without_what_it_decides_by() -> None:
    trace = decode_trace([[0, 1], [1, 0]])
    for mode in ("drop-weight", "substitute", "lower-precision", "reroute"):
        with pytest.raises(InvalidTrace, match=r"no weights|no scores"):
            lossy(trace, 2, mode=mode, **LOSSY[mode])
    for mode in ("drop-rank", "fewer"):
        lossy(trace, 2, mode=mode)


@pytest.mark.rule("XC-MISS-012")
def test_no_lossy_mode_replays_key_by_key_or_under_a_policy_that_knows_the_future() -> None:
    trace = scored(0)
    with pytest.raises(UnknownName, match="sequential"):
        replay(trace, "lru", Budget(slots=4), mode="sequential", misses=Misses("drop-rank"))
    with pytest.raises(NeedsFuture, match="lossy"):
        replay(trace, "belady", Budget(slots=4), misses=Misses("drop-rank"))
    assert replay(trace, "belady", Budget(slots=4), misses=Misses()).losses is None


@pytest.mark.rule("XC-MISS-001", "XC-EVICT-001")
@pytest.mark.parametrize(
    "how",
    [
        {"mode": "lur"}, {"delta": "sum"}, {"factor": -0.1}, {"factor": float("nan")}, {"factor": "1"}, {"rank": 0},
        {"k": 1.5}, {"low_bits": 8}, {"high": 0.95}, {"tolerance": float("inf")}, {"bits": True},
    ],
)  # fmt: skip
def test_a_mode_or_value_that_does_not_exist_is_an_error(how: dict[str, Any]) -> None:
    with pytest.raises(UnknownName, match="Cure: "):
        Misses(**how)
