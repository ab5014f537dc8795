"""Prefetch: who predicts, where the bytes wait, what becomes of a ticket (XC-PREFETCH-001 to 016)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import attrs
import pytest

from expertcache_spec.errors import (
    EventTooLarge,
    ExpertCacheError,
    InvalidBudget,
    InvalidTrace,
    UnknownName,
    WrongState,
)
from expertcache_spec.eviction import make
from expertcache_spec.eviction.cards import Value
from expertcache_spec.metrics import Row
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.prefetch import PREDICTORS, Predictor, PredictorCard, Prefetch, PrefetchCounts, Ticket, Tickets
from expertcache_spec.prefetch.gates import GatePercentile, GateTopK
from expertcache_spec.prefetch.predictors import PairTable, PreviousToken, Target, ahead, fetched, target_of
from expertcache_spec.prefetch.unstamped import Unstamped
from expertcache_spec.replay import Replay, Result, as_dict, replay, run_event
from expertcache_spec.residency import Residency, Settings, Step, audit
from expertcache_spec.trace import Event, Trace, decode_trace
from expertcache_spec.traceformat import decode, encode

from . import recordings
from .settings_of_policies import SUBJECTS
from .strategies import random_case, random_trace

CAP = Budget(slots=4)
ONLINE = ("previous-token", "pair-table")


def given(*experts: Sequence[int]) -> PredictorCard:
    """A predictor that names these experts of the next layers, event by event."""

    @attrs.define
    class Given(Predictor):
        number: int = 0

        def predict(self, event: Event, target: Target, distance: int) -> Sequence[int] | None:
            found = experts[self.number] if self.number < len(experts) else None
            self.number += 1
            return found

    return PredictorCard("given", "XC-PREFETCH-010", lambda geometry: Given(), "", "tests")


def run(trace: Trace, slots: int, policy: str = "lru", settings: Settings | None = None, **how: Any) -> Result:
    """One replay with that prefetch, its identities checked."""
    result = replay(trace, policy, Budget(slots=slots), settings, prefetch=Prefetch(**how))
    assert result.prefetch is not None
    assert result.prefetch.broken() == []
    return result


def counts(result: Result) -> PrefetchCounts:
    """What the prefetch came to."""
    assert result.prefetch is not None
    return result.prefetch


# ---------------------------------------------------------------------------------------------- predictors


@pytest.mark.rule("XC-PREFETCH-005")
def test_a_target_is_so_many_routed_layers_on_and_may_be_in_the_next_pass() -> None:
    geometry = Geometry(5, 4, 1, routed=(1, 3, 4))
    event = Event(3, ((0,),), stream=2, pass_index=7)
    assert [ahead(geometry, event, n) for n in range(1, 5)] == [(2, 7, 4), (2, 8, 1), (2, 8, 3), (2, 8, 4)]


@pytest.mark.rule("XC-PREFETCH-005")
def test_without_wrap_the_last_layer_predicts_nothing() -> None:
    trace = decode_trace([[0], [1], [2], [3]] * 3, layers=2)
    found = [counts(run(trace, 2, predictor="oracle", cap=CAP, wrap=wrap)).targets for wrap in (True, False)]
    assert found == [11, 6]


@pytest.mark.rule("XC-PREFETCH-001")
def test_previous_token_remembers_each_stream_and_layer() -> None:
    predictor = PreviousToken(Geometry(2, 8, 2))
    for stream, row in ((0, (1, 2)), (1, (3, 4)), (0, (5, 2))):
        predictor.learn(Event(1, (row,), stream))
    event = Event(0, ((7,),), 0, 1)
    assert predictor.predict(event, Target(0, 1, 1), 1) == [5, 2]
    assert predictor.predict(event, Target(1, 1, 1), 1) == [3, 4]
    assert predictor.predict(event, Target(0, 1, 0), 2) is None


@pytest.mark.rule("XC-PREFETCH-001")
@pytest.mark.parametrize(("name", "published"), [("qwen", 38.0), ("gemma", 35.7)])
def test_the_previous_token_predicts_what_was_published(name: str, published: float) -> None:
    # policies.md T7 and section 28: overlap of a layer's experts with those of the token before, in decode.
    before: dict[int, Event] = {}
    shared = asked = 0
    for event in recordings.bigmoe(name).events:
        if event.phase == "decode" and event.layer in before:
            shared += len(set(event.keys) & set(before[event.layer].keys))
            asked += len(event.keys)
        if event.phase == "decode":
            before[event.layer] = event
    assert round(100 * shared / asked, 1) == published


@pytest.mark.rule("XC-PREFETCH-002")
def test_pairs_are_counted_within_a_stream_a_pass_and_a_token() -> None:
    table = PairTable(Geometry(2, 8, 1))
    for event in (
        Event(0, ((0,), (1,)), phase="prefill"), Event(0, ((5,),), stream=1), Event(1, ((2,), (3,)), phase="prefill"),
        Event(0, ((0,),), pass_index=1), Event(1, ((2,),), pass_index=1), Event(0, ((7,),), pass_index=2),
    ):  # fmt: skip
        table.learn(event)
    assert table.table == {(0, 0): {2: 2}, (0, 1): {3: 1}}
    asked = Event(0, ((1,), (0,)), pass_index=3, phase="prefill")
    assert table.predict(asked, Target(0, 3, 1), 1) == [3, 2]
    assert table.predict(asked, Target(0, 4, 0), 2) is None


@pytest.mark.rule("XC-PREFETCH-002")
def test_the_pair_table_is_bounded_and_forgets_what_is_rare() -> None:
    table = PairTable(Geometry(2, 64, 1), partners=2)
    followers = [1, 1, 1, 2, 3, 4]
    for number, follower in enumerate(followers):
        table.learn(Event(0, ((0,),), pass_index=number))
        table.learn(Event(1, ((follower,),), pass_index=number))
    # 3 takes one from each and drops 2; 4 then finds a place.
    assert table.table[0, 0] == {1: 2, 4: 1}
    random = Random(1)
    for number in range(6, 500):
        table.learn(Event(0, ((random.randrange(64),),), pass_index=number))
        table.learn(Event(1, ((random.randrange(64),),), pass_index=number))
    assert all(len(partners) <= 2 for partners in table.table.values())


@pytest.mark.rule("XC-PREFETCH-002", "XC-PREFETCH-005")
def test_pairs_several_layers_ahead_follow_the_prediction_before() -> None:
    table = PairTable(Geometry(3, 8, 1))
    for layer, expert in ((0, 1), (1, 4), (2, 6)):
        table.learn(Event(layer, ((expert,),)))
    assert table.predict(Event(0, ((1,),), pass_index=1), Target(0, 1, 2), 2) == [6]


@pytest.mark.rule("XC-PREFETCH-003")
@pytest.mark.parametrize(
    ("top_k", "factor", "count"), [(8, 1.0, 8), (8, 1.5, 12), (2, 1.25, 3), (6, 1.5, 9), (2, 0.0, 0)]
)
def test_overfetch_of_a_half_turns_8_into_12(top_k: int, factor: float, count: int) -> None:
    assert fetched(top_k, factor) == count


def looking(scores: Sequence[float], *further: Sequence[float]) -> Event:
    return Event(0, ((0,),), lookahead=tuple((tuple(each),) for each in (scores, *further)))


@pytest.mark.rule("XC-PREFETCH-003")
def test_a_gate_names_the_highest_scores_equal_ones_by_id() -> None:
    gate = GateTopK(Geometry(3, 4, 2), overfetch=1.5)
    event = looking([0.2, 0.5, 0.2, 0.1], [0.0, 0.0, 0.0, 1.0])
    assert gate.predict(event, Target(0, 0, 1), 1) == [1, 0, 2]
    assert gate.predict(event, Target(0, 0, 2), 2) == [3, 0, 1]
    assert gate.predict(event, Target(0, 1, 0), 3) is None
    with pytest.raises(InvalidTrace, match="no lookahead scores"):
        gate.predict(Event(0, ((0,),)), Target(0, 0, 1), 1)


@pytest.mark.rule("XC-PREFETCH-004")
@pytest.mark.parametrize(("experts", "count"), [(64, 13), (60, 12), (16, 3), (8, 2)])
def test_a_percentile_of_a_layers_own_scores_keeps_a_constant_count(experts: int, count: int) -> None:
    # policies.md 6: OLMoE about 13, Qwen1.5 12, Phi about 3, Mixtral about 2, whatever the scores are.
    gate = GatePercentile(Geometry(2, experts, 1))
    for seed in range(20):
        scores = [Random(seed).random() * (1 + seed) + i for i in range(experts)]
        Random(seed).shuffle(scores)
        found = gate.predict(looking(scores), Target(0, 0, 1), 1)
        assert found is not None
        assert len(found) == count
        assert [scores[e] for e in found] == sorted(scores, reverse=True)[:count]


@pytest.mark.rule("XC-PREFETCH-004")
def test_a_pooled_percentile_adapts_its_count_and_a_fixed_one_too() -> None:
    sharp, flat = [0.96, 0.02, 0.01, 0.01], [0.26, 0.25, 0.25, 0.24]
    pooled = GatePercentile(Geometry(2, 4, 1), percentile=50, pool="running_global", history=8)
    fixed = GatePercentile(Geometry(2, 4, 1), pool="fixed", threshold=0.2)
    named = [[gate.predict(looking(s), Target(0, 0, 1), 1) for s in (flat, sharp, flat)] for gate in (pooled, fixed)]
    assert named == [[[0], [0], [0, 1, 2]], [[0, 1, 2, 3], [0], [0, 1, 2, 3]]]
    assert len(pooled.order) == len(pooled.pooled) == 8


@pytest.mark.rule("XC-PREFETCH-006")
def test_the_oracle_is_right_and_its_result_says_who_predicted() -> None:
    trace = decode_trace([[0, 1], [2, 3], [4, 5], [0, 2]], layers=2)
    result = run(trace, 2, predictor="oracle", cap=CAP)
    found = counts(result)
    assert (found.targets, found.routes, found.routes_recalled, found.wasted) == (3, 6, 6, 0)
    assert result.manifest.prefetch is not None
    assert result.manifest.prefetch["predictor"] == "oracle"


# ---------------------------------------------------------------------------------------------- tickets


@pytest.mark.rule("XC-PREFETCH-014", "XC-PREFETCH-012")
def test_a_ticket_ends_only_as_its_state_allows() -> None:
    allowed = {
        "queued": {"overtaken", "cancelled"}, "reading": {"late", "failed", "discarded"},
        "ready": {"adopted", "discarded"},
    }  # fmt: skip
    for state, ends in allowed.items():
        for how in ("overtaken", "cancelled", "late", "failed", "discarded", "adopted", "queued"):
            tickets = Tickets(latency=2, width=1)
            tickets.submit(Key(0, 1), 5, Target(0, 0, 0))
            for _ in range({"queued": 0, "reading": 1, "ready": 2}[state]):
                tickets.tick(0, lambda ticket: None)
            if how in ends:
                assert tickets.end(Key(0, 1), how).state == how  # type: ignore[arg-type]
                assert tickets.open == {}
            else:
                with pytest.raises(WrongState, match=state):
                    tickets.end(Key(0, 1), how)  # type: ignore[arg-type]
            assert tickets.counts.broken() == [] or tickets.counts.predictions == 0


@pytest.mark.rule("XC-PREFETCH-012", "XC-PREFETCH-014")
def test_83_a_failed_ticket_is_over_and_wastes_nothing() -> None:
    tickets = Tickets(latency=2, width=1, counts=PrefetchCounts(predictions=1))
    tickets.submit(Key(0, 1), 5, Target(0, 0, 0))
    tickets.tick(0, lambda ticket: None)
    tickets.end(Key(0, 1), "failed")
    assert (tickets.counts.failed, tickets.counts.outstanding, tickets.counts.wasted) == (1, 0, 0)
    assert tickets.counts.broken() == []
    with pytest.raises(WrongState, match="is not reading"):
        tickets.land(Key(0, 1))


@pytest.mark.rule("XC-PREFETCH-011")
@pytest.mark.parametrize("width", [1, 2, 5])
def test_demand_is_served_first_and_then_tickets_in_their_order(width: int) -> None:
    for seed in range(30):
        random = Random(seed)
        latency = random.randint(1, 4)
        tickets, ready, number = Tickets(latency, width), list[Ticket](), 0
        for _ in range(40):
            for _ in range(random.randint(0, 2)):
                tickets.submit(Key(0, number), 1, Target(0, 0, 0))
                number += 1
            before = {key: ticket.served for key, ticket in tickets.open.items()}
            demand = random.randint(0, width + 1)
            tickets.tick(demand, lambda ticket: None, ready.append)
            progressed = [key for key, ticket in tickets.open.items() if ticket.served > before[key]]
            pending = [key for key in before if before[key] < latency]
            assert progressed == pending[: max(0, width - demand)]
        assert [ticket.key.expert for ticket in ready] == list(range(len(ready)))


@pytest.mark.rule("XC-PREFETCH-014")
def test_22_demand_takes_its_key_out_of_the_queue_and_reads_once() -> None:
    # bugs 22: eight predictions, one lane, demand for the fifth: it is not behind the four before it.
    trace = decode_trace([[9], [4], [9]], layers=3, experts=10)
    found = run(trace, 9, predictor=given(range(8)), cap=Budget(slots=8), width=1, latency=2)
    assert (counts(found).overtaken, counts(found).issued, found.total.reads) == (1, 0, 3)


@pytest.mark.rule("XC-PREFETCH-014")
@pytest.mark.parametrize("home", ["staging", "slot"])
def test_23_demand_joins_a_read_under_way(home: Any) -> None:
    trace = decode_trace([[9], [5], [5]], layers=1, experts=10)
    cap = CAP if home == "staging" else None
    found = run(trace, 4, predictor=given([5]), home=home, cap=cap, width=8, latency=2)
    assert (counts(found).issued, counts(found).late, counts(found).useful) == (1, 1, 0)
    assert (found.total.misses, found.total.joined, found.total.reads, found.total.hits) == (2, 1, 1, 1)


@pytest.mark.rule("XC-PREFETCH-012")
@pytest.mark.parametrize("home", ["staging", "slot"])
def test_55_a_prefetch_is_useful_once(home: Any) -> None:
    trace = decode_trace([[9], [5], [5], [5]], layers=1, experts=10)
    found = run(trace, 4, predictor=given([5]), home=home, cap=CAP if home == "staging" else None)
    assert (counts(found).useful, counts(found).issued, found.total.reads) == (1, 1, 1)
    assert found.total.hits == (2 if home == "staging" else 3)
    assert found.total.adopted == (home == "staging")


@pytest.mark.rule("XC-PREFETCH-011")
@pytest.mark.parametrize(
    ("lookahead", "width", "late", "useful"), [(1, 3, 11, 0), (3, 4, 2, 9), (3, 1, 0, 0)],
)  # fmt: skip
def test_89_reads_of_two_and_a_half_layers_need_three_layers_of_notice(
    lookahead: int, width: int, late: int, useful: int
) -> None:
    # bugs 89: read 10, compute 4: late all with one layer of notice, never with three and enough lanes. A read takes
    # three events; the event's own read occupies a lane besides, so that one lane alone serves no speculation.
    trace = decode_trace([[n] for n in range(12)], layers=12, experts=12)
    how = {"predictor": "oracle", "wrap": False, "latency": 3, "width": width, "cap": Budget(slots=9)}
    found = counts(run(trace, 12, lookahead=lookahead, **how))
    assert (found.late, found.useful) == (late, useful)


@pytest.mark.rule("XC-PREFETCH-015")
def test_what_was_guessed_for_a_layer_that_is_over_is_given_up() -> None:
    trace = decode_trace([[0], [1], [2], [3]], layers=4, experts=9)
    staged = counts(run(trace, 9, predictor=given([7, 8]), cap=CAP, width=2))
    # One lane is the event's own: 7 is read and not wanted, 8 never begins.
    assert (staged.issued, staged.wasted, staged.cancelled, staged.outstanding) == (1, 1, 1, 0)
    slow = counts(run(trace, 9, predictor=given([7]), cap=CAP, width=2, latency=3))
    assert (slow.wasted, slow.outstanding) == (1, 0)
    slots = counts(run(trace, 9, predictor=given([7, 8]), home="slot", width=2))
    assert (slots.issued, slots.wasted, slots.cancelled, slots.outstanding) == (1, 0, 1, 1)


@pytest.mark.rule("XC-PREFETCH-007", "XC-PREFETCH-014")
def test_79_predictions_beyond_the_cap_or_the_queue_are_refused() -> None:
    trace = decode_trace([[99], [98], [97]], layers=3, experts=100)
    for how in ({"cap": Budget(slots=2)}, {"cap": Budget(bytes=2)}, {"cap": Budget(slots=99), "queue": 2}):
        found = counts(run(trace, 9, predictor=given(range(64)), width=1, **how))
        assert (found.predictions, found.refused, found.cancelled) == (64, 62, 2)
        assert found.peak_slots <= 2


# ---------------------------------------------------------------------------------------------- staging


def hows(seed: int) -> Iterator[dict[str, Any]]:
    """Some prefetches of each home, drawn by seed."""
    random = Random(seed)
    for predictor in (*ONLINE, "oracle"):
        common = {
            "predictor": predictor, "lookahead": random.randint(1, 3), "wrap": random.random() < 0.7,
            "latency": random.randint(0, 3), "width": random.randint(1, 8), "queue": random.randint(1, 9),
        }  # fmt: skip
        yield {**common, "home": "staging", "cap": Budget(slots=random.randint(0, 6))}
        for displace in ("nothing", "stale", "any"):
            yield {
                **common,
                "home": "slot",
                "displace": displace,
                "stamps": random.random() < 0.5,
                "idle": 1 + seed % 2,
            }


def rows_of(result: Result) -> list[tuple[Any, Row]]:
    """The rows without what staging spares."""
    spared = {"reads": 0, "bytes_read": 0, "joined": 0, "adopted": 0}
    return [(key, attrs.evolve(row, **spared)) for key, row in result.counters.rows.items()]


@pytest.mark.rule("XC-PREFETCH-007", "XC-PREFETCH-012")
@pytest.mark.parametrize("policy", ["lru", "lfu", "belady"])
def test_staging_changes_no_step_and_no_count_but_the_reads_that_it_spares(policy: str) -> None:
    assert spared_by_staging(policy, range(30)) > 100


@pytest.mark.nightly
@pytest.mark.rule("XC-PREFETCH-007", "XC-PREFETCH-012")
@pytest.mark.parametrize("policy", SUBJECTS)
def test_staging_changes_nothing_else_in_much_more_volume(policy: str) -> None:
    assert spared_by_staging(policy, range(1000, 1300)) > 1000


def spared_by_staging(policy: str, seeds: range) -> int:
    """How many demand reads staging has spared; everything else must be as without it."""
    spared = 0
    for seed in seeds:
        case = random_case(seed, policy, overflow=("bypass", "waves")[seed % 2], sized=True)
        plain = Replay(case.trace, SUBJECTS[policy], case.budget, case.settings)
        try:
            steps = list(plain)
        except EventTooLarge:  # waves cannot serve a byte budget below one record
            continue
        for how in (how for how in hows(seed) if how["home"] == "staging"):
            mine = Replay(case.trace, SUBJECTS[policy], case.budget, case.settings, prefetch=Prefetch(**how))
            assert list(mine) == steps
            result, found = mine.result(), counts(mine.result())
            assert rows_of(result) == rows_of(plain.result())
            total, before = result.total, plain.result().total
            assert before.reads - total.reads == found.useful + found.late == total.adopted + total.joined
            assert (total.adopted, total.joined) == (found.useful, found.late)
            assert found.broken() == audit(mine.machine) == []
            assert found.peak_slots <= how["cap"].slots
            spared += total.adopted + total.joined
    return spared


# ---------------------------------------------------------------------------------------------- slots


@pytest.mark.rule("XC-PREFETCH-008", "XC-PREFETCH-012", "XC-METRIC-004")
@pytest.mark.parametrize("policy", ["fifo", "lru", "lfu", "clock", "belady"])
def test_both_sets_of_books_agree_about_prefetches_into_slots(policy: str) -> None:
    issued, evicted = books_of_slots(policy, range(30))
    assert issued > 300
    assert evicted > 50


@pytest.mark.nightly
@pytest.mark.rule("XC-PREFETCH-008", "XC-PREFETCH-012", "XC-METRIC-004")
@pytest.mark.parametrize("policy", SUBJECTS)
def test_both_sets_of_books_agree_in_much_more_volume(policy: str) -> None:
    issued, evicted = books_of_slots(policy, range(1000, 1200))
    assert issued > 2000
    assert evicted > 200


def books_of_slots(policy: str, seeds: range) -> tuple[int, int]:
    """Prefetches issued and records that they displaced, where the machine's books and the tickets' must agree."""
    issued = evicted = 0
    for seed in seeds:
        case = random_case(seed, policy, overflow="bypass", room=("reserve", "trim", "retain")[seed % 3], sized=True)
        for how in (how for how in hows(seed) if how["home"] == "slot"):
            mine = Replay(case.trace, SUBJECTS[policy], case.budget, case.settings, prefetch=Prefetch(**how))
            steps = list(mine)
            found, machine = counts(mine.result()), mine.machine.counters
            assert found.broken() == audit(mine.machine) == []
            assert (found.issued, found.useful, found.late, found.wasted, found.outstanding) == (
                machine.prefetch_issued, machine.prefetch_useful, machine.prefetch_late, machine.prefetch_wasted,
                len(mine.machine.ledger.speculative),
            ), (seed, how)  # fmt: skip
            assert sum(len(step.victims) for step in steps) == machine.total().evictions
            assert how["displace"] != "nothing" or found.evicted == 0
            issued, evicted = issued + found.issued, evicted + found.evicted
    return issued, evicted


@pytest.mark.rule("XC-PREFETCH-008", "XC-PREFETCH-009", "XC-EVICT-002")
def test_both_forms_of_a_policy_agree_under_prefetch() -> None:
    for seed in range(12):
        for policy in ("fifo", "lru", "lfu", "lfu-reset", "belady"):
            case = random_case(seed, policy, overflow="bypass")
            for how in hows(seed):
                both = [
                    list(Replay(case.trace, policy, case.budget, case.settings, form=form, prefetch=Prefetch(**how)))  # type: ignore[arg-type]
                    for form in ("indexed", "declarative")
                    if not (how["home"] == "staging" and how["cap"].slots is None)
                ]
                assert both[0] == both[1]


def cache(slots: int, *rows: Sequence[int]) -> Residency:
    """A cache after those events of one layer."""
    machine = Residency(Geometry(1, 99, 4), Budget(slots=slots), make("lru"))
    for number, row in enumerate(rows):
        run_event(machine, Event(0, (tuple(row),), pass_index=number))
    return machine


@pytest.mark.rule("XC-PREFETCH-008")
def test_70_71_76_a_prefetch_takes_free_room_or_what_is_stale_and_nothing_else() -> None:
    now = Event(0, ((1,),), pass_index=9)
    full = cache(2, [0], [1])
    assert full.vacate(Key(0, 2), now, lambda key: False) == ()
    assert full.residents() == {Key(0, 0), Key(0, 1)}
    assert full.vacate(Key(0, 2), now, lambda key: key.expert == 0) == (Key(0, 0),)
    assert cache(3, [0], [1]).vacate(Key(0, 2), now, lambda key: True) == ()
    held = cache(2, [0], [1])
    held.pin(Key(0, 0))
    assert held.vacate(Key(0, 2), now, lambda key: True) == ()  # 0 is pinned, 1 is of the event that executes
    spare = decode_trace([[0, 1, 2], [0, 1, 2]], layers=2, experts=9)
    found = counts(run(spare, 4, predictor=given([5, 6]), home="slot"))
    assert (found.issued, found.cancelled, found.evicted) == (1, 1, 0)


@pytest.mark.rule("XC-PREFETCH-008")
def test_a_record_that_needs_two_victims_takes_both_or_neither() -> None:
    machine = Residency(Geometry(2, 4, 2, (1, 2)), Budget(bytes=3), make("lru"))
    now = Event(0, ((0, 1),))
    run_event(machine, now)
    run_event(machine, Event(0, ((2,),), pass_index=1))
    later = Event(0, ((2,),), pass_index=1)
    assert machine.vacate(Key(1, 0), later, lambda key: key.expert == 0) == ()
    assert machine.vacate(Key(1, 0), later, lambda key: True) == (Key(0, 0), Key(0, 1))
    assert machine.counters.total().evictions == 2
    assert audit(machine) == []


@pytest.mark.rule("XC-PREFETCH-008")
def test_what_the_latest_event_of_a_layer_asked_for_is_not_stale() -> None:
    trace = decode_trace([[0], [1], [2], [3]], layers=2, experts=9)
    found = counts(run(trace, 2, predictor=given(None, [7]), home="slot", displace="stale"))  # type: ignore[arg-type]
    assert (found.evicted, found.issued) == (0, 0)
    again = decode_trace([[0], [0], [1], [1], [2], [2]], layers=2, experts=9)
    found = counts(run(again, 4, predictor=given(None, None, None, [7], [8]), home="slot", displace="stale"))  # type: ignore[arg-type]
    assert (found.evicted, found.issued) == (2, 2)


@pytest.mark.rule("XC-PREFETCH-008", "XC-ADMIT-006")
def test_a_guess_that_has_just_come_is_not_stale() -> None:
    # Without latency 7 is resident when 8 asks for a slot: nothing holds it but that it is fresh.
    trace = decode_trace([[0], [1], [2]], layers=3, experts=9)
    how: dict[str, Any] = {"predictor": given([7, 8]), "home": "slot", "latency": 0}
    assert counts(run(trace, 2, **how, displace="stale")).evicted == 0
    assert counts(run(trace, 2, **how, displace="any")).evicted == 1


@pytest.mark.rule("XC-PREFETCH-011")
@pytest.mark.parametrize(("slots", "width", "issued"), [(0, 1, 0), (0, 2, 3), (3, 1, 0), (3, 2, 3)])
def test_what_an_event_reads_past_the_cache_takes_lanes_as_its_misses_do(slots: int, width: int, issued: int) -> None:
    trace = decode_trace([[0], [1], [2], [3]], layers=4)
    found = run(
        trace, slots, settings=Settings(overflow="bypass"), predictor="oracle", wrap=False, width=width, cap=CAP
    )
    assert found.total.bypassed == (0 if slots else 4)
    assert counts(found).issued == issued


@pytest.mark.rule("XC-PREFETCH-011")
def test_demand_waits_for_speculation_that_holds_its_room_and_is_served() -> None:
    trace = decode_trace([[0], [1, 2], [3, 4]], layers=3, experts=9)
    for overflow in ("error", "waves"):
        settings = Settings(overflow=overflow)  # type: ignore[arg-type]
        found = run(trace, 2, settings=settings, predictor=given([7]), home="slot", latency=3)
        assert (counts(found).waits, counts(found).wasted, found.total.misses) == (1, 1, 5)


# ---------------------------------------------------------------------------------------------- recency


@pytest.mark.rule("XC-PREFETCH-009")
def test_an_unstamped_record_leaves_first_until_it_is_asked_for() -> None:
    machine = Residency(Geometry(1, 9, 2), Budget(slots=4), lambda: Unstamped(make("lru")()))
    for number, expert in enumerate((0, 1)):
        run_event(machine, Event(0, ((expert,),), pass_index=number))
    for key in (Key(0, 5), Key(0, 6)):
        machine.prefetch(key)
        machine.complete(key)
    assert run_event(machine, Event(0, ((6,),), pass_index=2)).hits == (Key(0, 6),)
    assert [run_event(machine, Event(0, ((e,),), pass_index=e)).victims for e in (3, 4, 7, 8)] == [
        (Key(0, 5),), (Key(0, 0),), (Key(0, 1),), (Key(0, 6),),
    ]  # fmt: skip


@pytest.mark.rule("XC-PREFETCH-009")
@pytest.mark.parametrize("policy", ["fifo", "lru", "lfu", "lfu-reset", "belady"])
def test_without_prefetches_the_stamp_makes_no_difference(policy: str) -> None:
    for seed in range(20):
        case = random_case(seed, policy)
        plain, wrapped = (
            Residency(case.trace.geometry, case.budget, factory, case.settings)
            for factory in (
                make(policy, future=case.trace.events),
                (lambda inner: lambda: Unstamped(inner()))(make(policy, future=case.trace.events)),
            )
        )
        for event in case.trace.events:
            one, two = outcome(plain, event), outcome(wrapped, event)
            assert one == two
            if isinstance(one, str):
                break


def outcome(machine: Residency, event: Event) -> Step | str:
    """The step, or the refusal."""
    try:
        return run_event(machine, event)
    except ExpertCacheError as error:
        return str(error)


def synthetic(recall: float, overfetch: float) -> PredictorCard:
    """Next-layer prediction of that recall, the rest random fillers: the set-up of policies.md 4.4."""

    def built(geometry: Geometry, future: dict[Target, Event]) -> Predictor:
        random = Random(4)

        class Synthetic(Predictor):
            def predict(self, event: Event, target: Target, distance: int) -> Sequence[int] | None:
                if target not in future:
                    return None
                found = [key.expert for key in future[target].keys if random.random() < recall]
                while len(found) < fetched(geometry.top_k, overfetch):
                    filler = random.randrange(geometry.experts)
                    if filler not in found:
                        found.append(filler)
                return found

        return Synthetic()

    return PredictorCard("synthetic", "XC-PREFETCH-009", built, "", "policies survey 4.4", offline=True)


@pytest.mark.rule("XC-PREFETCH-009")
@pytest.mark.parametrize(
    ("slots", "stamped", "unstamped", "none"),
    [
        (307, 78.2, 37.7, 37.7), pytest.param(61, 78.2, 0.0, 0.0, marks=pytest.mark.nightly),
        pytest.param(1536, 91.8, 82.7, 82.7, marks=pytest.mark.nightly),
    ],
)  # fmt: skip
def test_whether_an_insert_stamps_recency_decides_the_result_where_guesses_displace_each_other(
    slots: int, stamped: float, unstamped: float, none: float
) -> None:
    # policies.md 4.4, Qwen3: decode hit % with and without the stamp. Its fillers are unknown: the size is reproduced,
    # not the digits.
    def rate(trace: Trace, **how: Any) -> float:
        prefetch = Prefetch(synthetic(0.8, 1.5), home="slot", displace="any", **how) if how else None
        result = replay(trace, "lru", Budget(slots=slots), Settings(overflow="bypass"), prefetch=prefetch)
        decode = [row for phase, row in result.counters.per_phase().items() if str(phase).startswith("decode")]
        return 100 * sum(row.hits for row in decode) / sum(row.lookups for row in decode)

    trace = recordings.bigmoe("qwen")
    assert abs(rate(trace) - none) < 0.1
    at_once: dict[str, Any] = {"latency": 0, "queue": 999, "wrap": False}
    assert abs(rate(trace, **at_once, stamps=True) - stamped) < 1
    assert abs(rate(trace, **at_once, stamps=False) - unstamped) < 1


@pytest.mark.rule("XC-PREFETCH-009")
def test_where_reads_take_time_and_are_held_an_unstamped_guess_does_not_fall_to_the_next() -> None:
    trace = recordings.beginning(recordings.bigmoe("qwen"), 25)
    slot: dict[str, Any] = {"home": "slot", "displace": "any", "width": 64}
    hits = [
        replay(
            trace, "lru", Budget(slots=61), Settings(overflow="bypass"),
            prefetch=Prefetch(synthetic(0.8, 1.5), **slot, latency=latency, stamps=False),
        ).total.hits
        for latency in (0, 1)
    ]  # fmt: skip
    assert hits[0] * 20 < hits[1]


# ---------------------------------------------------------------------------------------------- recall


@pytest.mark.rule("XC-PREFETCH-013")
@pytest.mark.parametrize("policy", ["lru", "fifo"])
def test_the_previous_token_recalls_routes_and_no_miss_where_lru_holds_it_already(policy: str) -> None:
    # A quota of top-k or more holds what the layer asked for last: all of it is predicted, none of it is missing.
    for seed in range(10):
        trace = random_trace(Random(seed), Geometry(3, 8, 2), passes=12, phases=("decode",))
        settings = Settings(scope="layer")
        found = counts(run(trace, 9, policy, settings, predictor="previous-token", cap=CAP, lookahead=2))
        assert found.routes_recalled > 0
        if policy == "lru":
            assert (found.missing_recalled, found.issued, found.duplicate) == (0, 0, found.predictions)
            assert found.missing > 0


@pytest.mark.rule("XC-PREFETCH-013")
@pytest.mark.parametrize("home", ["staging", "slot"])
def test_the_oracle_recalls_every_route_and_every_miss(home: Any) -> None:
    for seed in range(10):
        trace = random_trace(Random(seed), Geometry(2, 8, 2), passes=8, phases=("decode",))
        how = {"home": home, "cap": CAP if home == "staging" else None}
        found = counts(run(trace, 5, predictor="oracle", **how))
        assert found.routes == found.routes_recalled == found.predicted
        assert found.missing == found.missing_recalled > 0


# ---------------------------------------------------------------------------------------------- names


@pytest.mark.rule("XC-PREFETCH-010")
def test_prefetch_is_off_unless_asked_for_and_is_named_in_full() -> None:
    trace = decode_trace([[0], [1]])
    plain = replay(trace, "lru", Budget(slots=1))
    assert (plain.prefetch, plain.manifest.prefetch) == (None, None)
    none = run(trace, 1, cap=CAP)
    assert counts(none) == PrefetchCounts()
    assert none.counters == run(trace, 1).counters == plain.counters
    named = as_dict(run(trace, 1, predictor="pair-table", parameters={"partners": 3}, home="slot", displace="stale"))
    assert named["manifest"]["prefetch"] == {
        "predictor": "pair-table", "parameters": {"partners": 3, "overfetch": 1.0}, "lookahead": 1, "wrap": True,
        "home": "slot", "cap": None, "displace": "stale", "idle": 1, "stamps": True, "latency": 1, "width": 8,
        "queue": 64, "profile": [],
    }  # fmt: skip
    assert named["prefetch"]["predictions"] == 0


@pytest.mark.rule("XC-PREFETCH-016")
@pytest.mark.parametrize("home", ["staging", "slot"])
def test_a_profile_seeds_the_cache_before_the_first_event(home: Any) -> None:
    trace = decode_trace([[0], [1]], experts=9)
    keys = (Key(0, 0), Key(0, 7), Key(5, 5), Key(0, 8))
    found = run(trace, 2, home=home, cap=CAP if home == "staging" else None, profile=keys)
    assert (found.counters.seeds, found.total.hits, counts(found).issued) == (2, 1, 0)


@pytest.mark.rule("XC-PREFETCH-010", "XC-EVICT-001")
@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"predictor": "lur"}, UnknownName), ({"home": "attic"}, UnknownName), ({"displace": "all"}, UnknownName),
        ({"width": 1.5}, UnknownName), ({"lookahead": -1}, UnknownName),
        ({"lookahead": 0}, UnknownName), ({"lookahead": 1025}, UnknownName), ({"lookahead": 10**7}, UnknownName),
        ({"latency": -1}, UnknownName), ({"predictor": "oracle"}, InvalidBudget),
        ({"home": "slot", "cap": CAP}, InvalidBudget), ({"cap": CAP, "stamps": False}, UnknownName),
        ({"cap": CAP, "displace": "stale"}, UnknownName), ({"cap": CAP, "parameters": {"k": 1}}, UnknownName),
        ({"predictor": "pair-table", "cap": CAP, "parameters": {"partners": 0}}, UnknownName),
    ],
)  # fmt: skip
def test_a_prefetch_that_does_not_exist_is_an_error(how: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match="Cure: "):
        Prefetch(**how)


@pytest.mark.rule("XC-PREFETCH-005", "XC-PREFETCH-010")
def test_the_farthest_lookahead_is_taken_and_predicts_as_far() -> None:
    found = run(decode_trace([[0], [1]]), 1, predictor="previous-token", lookahead=1024, cap=Budget(slots=1))
    assert counts(found).predictions == 2 * 1024


@pytest.mark.rule("XC-PREFETCH-007")
def test_a_byte_cap_needs_record_sizes() -> None:
    trace = Trace(Geometry(1, 2, 1), (Event(0, ((0,),)),))
    with pytest.raises(InvalidBudget, match="cap it in slots"):
        replay(trace, "lru", Budget(slots=1), prefetch=Prefetch(cap=Budget(bytes=9)))


def test_every_predictor_names_a_rule_and_completes_its_defaults() -> None:
    for name, card in PREDICTORS.items():
        values: dict[str, Value] = card.complete({})
        assert card.name == name
        assert set(values) == {parameter.name for parameter in card.parameters}


@pytest.mark.rule("XC-TRACE-007", "XC-TRACE-004", "XC-PREFETCH-003")
def test_lookahead_scores_survive_the_trace_format_and_are_checked() -> None:
    model = Geometry(2, 2, 1)
    events = (looking([0.5, 0.25], [1.0, 0.0]), Event(1, ((1,),)))
    trace = Trace(model, events)
    assert decode((f"t:{n}", record) for n, record in enumerate(encode(trace))) == trace
    assert trace.fingerprint != Trace(model, (Event(0, ((0,),)), events[1])).fingerprint
    for bad in (((0.5, float("nan")),), ((0.5, 0.5), (0.5, 0.5))):
        with pytest.raises(InvalidTrace, match="lookahead"):
            Event(0, ((0,),), lookahead=(bad,))
    with pytest.raises(InvalidTrace, match="one per expert"):
        Trace(model, (looking([0.5]), events[1]))
    assert run(trace, 1, predictor="gate-top-k", cap=CAP, wrap=False).prefetch == counts(
        run(trace, 1, predictor="gate-percentile", parameters={"percentile": 0}, cap=CAP, wrap=False)
    )
    assert target_of(events[0]) == (0, 0, 0)
