"""Score and probability x visits: what the gate gives, by hand; and what they are where it is not known."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import attrs
import pytest

from expertcache_spec.eviction import POLICIES, Form, Policy, make
from expertcache_spec.eviction.cards import Value
from expertcache_spec.eviction.engines.gate import UNIT, gate, scores
from expertcache_spec.eviction.engines.maps import Latest, Matched
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import Replay, run_event
from expertcache_spec.residency import Residency, Settings
from expertcache_spec.trace import Event, Trace, decode_trace

from .running import both_run
from .strategies import random_trace

FORMS: tuple[Form, ...] = ("declarative", "indexed")
BOTH = pytest.mark.parametrize("form", FORMS)

SETTINGS: dict[str, tuple[str, dict[str, Value]]] = {
    "score": ("score", {}),
    "score-mean": ("score", {"accumulate": "mean"}),
    "score-all": ("score", {"counts": "all"}),
    "score-all-mean-halved": ("score", {"counts": "all", "accumulate": "mean", "halve_every": 2}),
    "score-halved-anew": ("score", {"halve_every": 1, "reset_at": "stream"}),
    "matched": ("probability-visits", {}),
    "matched-one": ("probability-visits", {"maps": 1, "visits": "resident"}),
    "matched-scan": ("probability-visits", {"maps": 2, "ties": "scan"}),
    "latest": ("probability-visits", {"probability": "latest"}),
    "latest-truncated": ("probability-visits", {"probability": "latest", "truncate": True, "visits": "resident"}),
    "finemoe": ("probability-visits", {"truncate": True, "ties": "scan", "maps": 1000}),
}


def weighted(trace: Trace, seed: int) -> Trace:
    """The trace with weights, some of them negative, and scores of every expert, in coarse steps so that some tie."""
    random = Random(seed)

    def values(count: int) -> tuple[float, ...]:
        return tuple(random.randint(-1, 8) / 8 for _ in range(count))

    events = tuple(
        attrs.evolve(
            event,
            weights=tuple(values(len(row)) for row in event.rows),
            scores=tuple(values(trace.geometry.experts) for _ in event.rows),
        )
        for event in trace.events
    )
    return attrs.evolve(trace, events=events)


@pytest.mark.rule("XC-EVICT-002", "XC-EVICT-220", "XC-EVICT-221", "XC-EVICT-222", "XC-EVICT-230", "XC-EVICT-231")
@pytest.mark.parametrize("name", SETTINGS)
def test_both_forms_agree_on_weighted_events(name: str) -> None:
    assert sum(both_run(*SETTINGS[name], seed, weighted, prefetches=1) for seed in range(40)) > 100


@pytest.mark.nightly
@pytest.mark.rule("XC-EVICT-002", "XC-EVICT-220", "XC-EVICT-230")
@pytest.mark.parametrize("name", SETTINGS)
def test_both_forms_agree_on_weighted_events_in_much_more_volume(name: str) -> None:
    assert sum(both_run(*SETTINGS[name], seed, weighted, prefetches=1) for seed in range(1000, 2000)) > 3_000


# ---------------------------------------------------------------------------------------------- the gate


@pytest.mark.rule("XC-EVICT-221")
def test_a_row_without_weights_shares_one_evenly_and_rows_add_up() -> None:
    batch = Event(0, ((0, 1), (1, 2)), phase="prefill", weights=((0.75, 0.25), (0.5, 0.5)))
    assert gate(batch) == {Key(0, 0): UNIT * 3 // 4, Key(0, 1): UNIT * 3 // 4, Key(0, 2): UNIT // 2}
    assert gate(attrs.evolve(batch, weights=None)) == {Key(0, 0): UNIT // 2, Key(0, 1): UNIT, Key(0, 2): UNIT // 2}
    assert gate(Event(0, ((0, 1, 2),))) == dict.fromkeys((Key(0, 0), Key(0, 1), Key(0, 2)), UNIT // 3)
    scored = attrs.evolve(batch, scores=((0.5, 0.25, 0.0), (0.25, 0.0, 1.0)))
    assert scores(scored) == {Key(0, 0): UNIT * 3 // 4, Key(0, 1): UNIT // 4, Key(0, 2): UNIT}
    assert scores(batch) == gate(batch)


def given(policy: str, form: Form, events: list[Event], **parameters: Value) -> Any:
    """A policy that has heard of the events."""
    tested = make(policy, form, parameters=parameters)()
    for event in events:
        tested.begin(event)
        tested.settle(())
    return tested


def row(number: int, *experts: int, weights: tuple[float, ...] | None = None, layer: int = 0) -> Event:
    """One layer of one token."""
    return Event(layer, (experts,), 0, number, weights=None if weights is None else (weights,))


def drained(tested: Policy) -> list[int]:
    """Experts of the residents in the order in which they would leave."""
    order = []
    while (victim := tested.victim((), None)) is not None:
        tested.evict(victim)
        order.append(victim.expert)
    return order


# ---------------------------------------------------------------------------------------------- score


@pytest.mark.rule("XC-EVICT-220", "XC-EVICT-221", "XC-EVICT-222")
@BOTH
@pytest.mark.parametrize(("accumulate", "leaving"), [("sum", [3, 0, 1, 2]), ("mean", [3, 2, 0, 1])])
def test_sum_and_mean_choose_different_victims(accumulate: str, leaving: list[int], form: Form) -> None:
    # 0: .375 once. 1: .5 once. 2: .125, .25 and .25. 3 was prefetched. In order of means 2 is before 0 before 1.
    events = [row(0, 0, 2, weights=(0.375, 0.125)), row(1, 1, 2, weights=(0.5, 0.25)), row(2, 2, weights=(0.25,))]
    tested = given("score", form, events, accumulate=accumulate)
    for now, expert in enumerate((2, 3, 1, 0)):
        tested.insert(Key(0, expert), now)
    assert drained(tested) == leaving


@pytest.mark.rule("XC-EVICT-221")
@BOTH
def test_under_counts_all_an_expert_that_is_never_chosen_accrues_too(form: Form) -> None:
    events = [attrs.evolve(row(n, 0), scores=((0.5, 0.4, 0.1),)) for n in range(3)]
    for counts, leaving in (("selected", [1, 2, 0]), ("all", [2, 1, 0])):
        tested = given("score", form, events, counts=counts)
        for now, expert in enumerate((1, 2, 0)):
            tested.insert(Key(0, expert), now)
        assert drained(tested) == leaving


@pytest.mark.rule("XC-EVICT-221", "XC-EVICT-222")
@BOTH
@pytest.mark.parametrize(("accumulate", "units"), [("sum", UNIT * 3 // 4), ("mean", UNIT * 3 // 8)])
def test_the_mean_is_over_every_row_that_gives_the_key_something(accumulate: str, units: int, form: Form) -> None:
    batch = Event(0, ((0, 1), (0, 2), (3,)), weights=((0.5, 0.5), (0.25, 0.75), (1.0,)))
    tested = given("score", form, [batch], accumulate=accumulate)
    assert tested.scores.value(Key(0, 0)) == units


@pytest.mark.rule("XC-EVICT-220", "XC-EVICT-221")
@pytest.mark.parametrize("accumulate", ["sum", "mean"])
def test_where_no_weights_are_known_the_sum_is_lfu_and_the_mean_is_lru_on_decode(accumulate: str) -> None:
    for seed in range(40):
        random = Random(seed)
        trace = random_trace(random, Geometry(2, 8, 1), streams=2, passes=20, phases=("decode",))
        slots = Budget(slots=random.randint(1, 12))
        found = list(Replay(trace, "score", slots, parameters={"accumulate": accumulate}))
        assert found == list(Replay(trace, "lfu" if accumulate == "sum" else "lru", slots)), seed


@pytest.mark.rule("XC-EVICT-220")
def test_with_router_touch_a_larger_cache_holds_all_that_a_smaller_one_holds_under_score() -> None:
    for seed in range(20):
        trace = weighted(random_trace(Random(seed), Geometry(2, 7, 3), passes=25, phases=("decode",)), seed)
        held = []
        for slots in range(3, 12):
            machine = Residency(trace.geometry, Budget(slots=slots), make("score"), Settings())
            held.append([machine.residents() for event in trace.events if run_event(machine, event)])
        assert all(
            less <= more for small, large in itertools.pairwise(held) for less, more in zip(small, large, strict=True)
        )


# ---------------------------------------------------------------------------------------------- probability x visits


@pytest.mark.rule("XC-EVICT-230", "XC-EVICT-231")
@BOTH
@pytest.mark.parametrize(
    ("parameters", "leaving"),
    [
        ({}, [3, 2, 0, 1]),  # nothing is expected of 3; 1/8 x 1, 1/4 x 2, 3/4 x 3
        ({"truncate": True}, [3, 2, 0, 1]),  # 0, 0, 0 and 2, in order of recency
        ({"truncate": True, "ties": "scan"}, [0, 2, 3, 1]),
    ],
)
def test_the_product_is_exact_or_truncated_and_ties_go_by_recency_or_scan(
    parameters: dict[str, Value], leaving: list[int], form: Form
) -> None:
    events = [row(0, 0, 1), row(1, 1), row(2, 0, 1, 2, weights=(0.25, 0.75, 0.125))]
    tested = given("probability-visits", form, events, probability="latest", **parameters)
    for now, expert in enumerate((3, 2, 0, 1)):
        tested.insert(Key(0, expert), now)
    assert drained(tested) == leaving


@pytest.mark.rule("XC-EVICT-230", "XC-EVICT-231")
@BOTH
@pytest.mark.parametrize(("visits", "victim"), [("kept", 1), ("resident", 0)])
def test_visits_outlive_an_eviction_or_do_not(visits: str, victim: int, form: Form) -> None:
    # Both experts are expected alike. 0 was visited three times before it was evicted and once since, 1 twice.
    machine = Residency(
        Geometry(1, 4, 2), Budget(slots=2),
        make("probability-visits", form, None, {"probability": "latest", "visits": visits}),
    )  # fmt: skip
    for number, experts in enumerate([(0,), (0,), (0,), (2, 3), (1,), (0, 1)]):
        run_event(machine, row(number, *experts))
    found: Any = machine.parts[-1].policy
    assert machine.residents() == {Key(0, 0), Key(0, 1)}
    assert found.victim((), None) == Key(0, victim)


@pytest.mark.rule("XC-EVICT-231")
@BOTH
def test_where_visits_end_with_the_residency_a_load_starts_at_one_and_a_prefetch_at_none(form: Form) -> None:
    tested = given("probability-visits", form, [row(0, 0), row(1, 0, 1)], probability="latest", visits="resident")
    tested.inserts((Key(0, 0), Key(0, 1)), {Key(0, 0): 1, Key(0, 1): 2})
    tested.insert(Key(0, 2), 3)
    assert [tested.expected.visits[Key(0, expert)] for expert in range(3)] == [1, 1, 0]
    assert tested.expected.product(Key(0, 0)) == UNIT // 2


@pytest.mark.rule("XC-EVICT-232")
def test_what_a_batch_is_likely_to_ask_for_is_averaged_over_its_rows() -> None:
    found = Latest()
    found.note(Event(0, ((0, 1), (0, 2)), phase="prefill", weights=((0.75, 0.25), (0.5, 0.5))))
    assert [found.of(Key(0, expert)) for expert in range(3)] == [UNIT * 5 // 8, UNIT // 8, UNIT // 4]


@pytest.mark.rule("XC-EVICT-232")
def test_the_latest_event_of_a_layer_says_what_it_is_likely_to_be_asked_for() -> None:
    found = Latest()
    found.note(row(0, 0, 1, weights=(0.75, 0.25)))
    found.note(row(0, 5, layer=1))
    found.note(row(1, 1, 2, weights=(0.5, 0.5)))
    assert [found.of(Key(0, expert)) for expert in range(3)] == [0, UNIT // 2, UNIT // 2]
    assert found.of(Key(1, 5)) == UNIT


@pytest.mark.rule("XC-EVICT-232")
def test_the_pass_most_alike_so_far_says_what_the_rest_of_this_one_will_ask_for() -> None:
    found = Matched(maps=2)
    for number, (first, second) in enumerate([(0, 5), (1, 6), (2, 7)]):
        found.note(row(number, first))
        found.note(row(number, second, layer=1))
    found.note(row(3, 1))
    assert (found.of(Key(1, 6)), found.of(Key(1, 7))) == (UNIT, 0)
    # Of two stored passes the oldest is dropped: nothing is alike to what began with 0.
    found.note(row(4, 0))
    assert found.of(Key(1, 5)) == 0
    assert found.best == {}
    assert [number for number, _ in found.stored] == [2, 3]


@pytest.mark.rule("XC-EVICT-232")
def test_of_passes_equally_alike_the_latest_is_taken() -> None:
    found = Matched(maps=9)
    for number, second in enumerate([5, 6]):
        found.note(row(number, 0))
        found.note(row(number, second, layer=1))
    found.note(row(2, 0))
    assert (found.of(Key(1, 5)), found.of(Key(1, 6))) == (0, UNIT)


@pytest.mark.rule("XC-EVICT-230", "XC-EVICT-232")
def test_a_stored_pass_keeps_what_it_will_ask_for_where_lru_gives_it_up() -> None:
    # Two passes alternate over two layers; five slots hold one and a quarter of them, below the cliff of LRU.
    trace = decode_trace([[0, 1], [0, 1], [2, 3], [2, 3]] * 20, layers=2)
    hits = {
        name: sum(len(step.hits) for step in Replay(trace, name, Budget(slots=5)))
        for name in ("lru", "probability-visits")
    }
    assert hits["lru"] == 0
    assert hits["probability-visits"] > 0


@pytest.mark.rule("XC-EVICT-230")
def test_before_anything_is_known_it_is_lru() -> None:
    # Passes that share no key are never alike, so nothing is ever expected.
    trace = decode_trace([[n % 9] for n in range(9)] + [[n] for n in range(9, 30)])
    card = POLICIES["probability-visits"]
    assert list(Replay(trace, card, Budget(slots=4))) == list(Replay(trace, "lru", Budget(slots=4)))
