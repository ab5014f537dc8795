"""Least-Stale and farthest layer: the readings, the open choices by hand, and when Least-Stale is LRU."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expertcache_spec.eviction import POLICIES, Form, Policy, make
from expertcache_spec.eviction.cards import Value
from expertcache_spec.eviction.engines.layers import nearness
from expertcache_spec.eviction.engines.readings import READINGS
from expertcache_spec.eviction.spelling import parse
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.prefetch import Prefetch
from expertcache_spec.replay import Replay, run_event
from expertcache_spec.residency import Residency, Settings
from expertcache_spec.trace import Event, Trace, decode_trace

from . import ds4_questions, recordings
from .running import both_run
from .strategies import random_case, random_trace, traces

FORMS: tuple[Form, ...] = ("declarative", "indexed")
BOTH = pytest.mark.parametrize("form", FORMS)

OTHERS: dict[str, dict[str, Value]] = {
    "unstamped": {"prefetch_stamps": False},
    "unstamped-lru": {"prefetch_stamps": False, "generations": False, "requeue": True},
    "unmarked-ring": {"prefetch_marks_current": False, "order": "ring"},
    "front-of-stale": {"prefetch_stamps": False, "prefetch_marks_current": False},
    "kept-front": {"prefetch_stamps": False, "keeps_unused": True, "generations": False},
    "kept-line": {"keeps_unused": True, "order": "line"},
    "left-then-current": {"left_first": True, "fallback": "current"},
    "newest": {"first": "newest", "order": "fifo", "prefetch_stamps": False},
    "layer": {"order": "layer", "boundary": "pass"},
    "told": {"boundary": "explicit"},
    "renews": {"prefetch_renews": True},
    "renews-ring-front": {"prefetch_renews": True, "prefetch_stamps": False, "order": "ring"},
    "renews-next": {"prefetch_renews": True, "order": "next", "generations": False, "keeps_unused": True},
    "kept-next": {"order": "next", "keeps_unused": True},
    "overdue": {"order": "overdue", "left_first": True, "prefetch_stamps": False},
}
PARAMETERS: dict[str, dict[str, Value]] = {
    name: dict(reading.parameters) for name, reading in READINGS.items()
} | OTHERS


def policy(form: Form, **parameters: Value) -> Policy:
    """One policy object, to be driven by hand."""
    return make("least-stale", form, parameters=parameters)()


@pytest.mark.rule("XC-EVICT-002", "XC-EVICT-200", "XC-EVICT-201", "XC-EVICT-202", "XC-EVICT-203", "XC-EVICT-206")
@pytest.mark.parametrize("name", PARAMETERS)
def test_both_forms_agree_with_prefetches_in_between(name: str) -> None:
    assert sum(both_run("least-stale", PARAMETERS[name], seed) for seed in range(40)) > 100


@pytest.mark.nightly
@pytest.mark.rule("XC-EVICT-002", "XC-EVICT-200")
@pytest.mark.parametrize("name", PARAMETERS)
def test_both_forms_agree_with_prefetches_in_between_in_much_more_volume(name: str) -> None:
    assert sum(both_run("least-stale", PARAMETERS[name], seed) for seed in range(1000, 2000)) > 3_000


@pytest.mark.rule("XC-EVICT-002", "XC-EVICT-210", "XC-EVICT-211")
@pytest.mark.parametrize("distance", ["linear", "circular", "ahead"])
@pytest.mark.parametrize("layers", [0, 3])
def test_both_forms_of_farthest_layer_agree_with_prefetches_in_between(distance: str, layers: int) -> None:
    parameters: dict[str, Value] = {"distance": distance, "layers": layers}
    assert sum(both_run("farthest-layer", parameters, seed) for seed in range(40)) > 100


# ---------------------------------------------------------------------------------------------- readings


def test_seven_public_readings_have_names_and_every_parameter_of_theirs_exists() -> None:
    assert list(READINGS) == ["tinyserve", "zhang", "rnb", "spice", "hipfire", "join-3", "rustane"]
    for name, reading in READINGS.items():
        card = POLICIES["least-stale"].setting(name, **reading.parameters)
        assert (card.complete() != POLICIES["least-stale"].complete()) is (name != "tinyserve")
        assert reading.source
        assert reading.decided


@pytest.mark.rule("XC-EVICT-001")
@pytest.mark.parametrize("name", READINGS)
def test_a_reading_is_a_setting_by_its_name_and_what_is_given_beside_it_stays(name: str) -> None:
    card, wanted = POLICIES["least-stale"], {**READINGS[name].parameters, "reading": name}
    usual = {parameter.name: parameter.default for parameter in card.parameters}
    assert parse(f"least-stale:reading={name}").parameters == {"reading": name}
    assert card.complete({"reading": name}) == {**usual, **wanted}
    assert card.complete({"reading": name, "order": "ring"}) == {**usual, **wanted, "order": "ring"}
    whole = card.complete({"reading": name, "weight": 1.0})
    assert card.complete(whole) == whole
    assert card.turned(whole, "weight", 0.0) == {**whole, "weight": 0.0}
    assert card.turned(card.complete({"order": "ring"}), "reading", name) == {**usual, **wanted}
    bound = card.setting("bound", reading="rnb", boundary="pass")
    assert bound.complete({"reading": name}) == {**usual, **wanted, "boundary": "pass"}
    assert bound.complete() == {**usual, **READINGS["rnb"].parameters, "reading": "rnb", "boundary": "pass"}


@pytest.mark.rule("XC-EVICT-200")
def test_on_one_trace_the_readings_are_seven_policies() -> None:
    # Zhang's is LRU by construction, and tinyserve's is wherever no two events of a pass ask for one key: here streams
    # interleave.
    trace = random_trace(Random(3), Geometry(4, 8, 2), streams=2, passes=20, phases=("decode",))
    logs = {}
    for name in READINGS:
        run = Replay(trace, "least-stale", Budget(slots=12), parameters={"reading": name})
        logs[name] = tuple(step.victims for step in run)
        plain = Replay(trace, "least-stale", Budget(slots=12), parameters=READINGS[name].parameters)
        assert logs[name] == tuple(step.victims for step in plain)
    assert len(set(logs.values())) == 7
    alone = Replay(trace, "least-stale", Budget(slots=12), parameters={"boundary": "explicit"})
    lru, fifo = (tuple(step.victims for step in Replay(trace, name, Budget(slots=12))) for name in ("lru", "fifo"))
    assert logs["zhang"] == lru
    assert tuple(step.victims for step in alone) == fifo  # no replay makes the call


@pytest.mark.rule("XC-EVICT-201", "XC-EVICT-205")
@BOTH
def test_told_of_its_passes_by_a_call_it_is_lru_where_a_key_is_asked_for_once_a_pass(form: Form) -> None:
    trace = random_trace(Random(4), Geometry(3, 7, 2), passes=40, phases=("decode",))
    told = Residency(trace.geometry, Budget(slots=9), make("least-stale", form, None, {"boundary": "explicit"}))
    lru = Residency(trace.geometry, Budget(slots=9), make("lru"))
    for event in trace.events:
        if event.layer == 0:
            told.parts[-1].policy.begin_pass()  # type: ignore[attr-defined]
        assert run_event(told, event) == run_event(lru, event)


# ---------------------------------------------------------------------------------------------- Least-Stale and LRU


def is_lru(trace: Trace, budget: Budget, settings: Settings | None = None, **parameters: Value) -> bool:
    """Whether Least-Stale with these parameters takes the steps of LRU."""
    stale = Replay(trace, "least-stale", budget, settings or Settings(), parameters=parameters)
    return all(
        one == other for one, other in zip(stale, Replay(trace, "lru", budget, settings or Settings()), strict=True)
    )


@pytest.mark.rule("XC-EVICT-205", "XC-EVICT-203")
@pytest.mark.parametrize("boundary", ["first_layer", "pass"])
@given(trace=traces(streams=1, passes=6), slots=st.integers(1, 18))
def test_in_one_stream_without_prefetch_fifo_order_is_lru(boundary: str, trace: Trace, slots: int) -> None:
    # Events of prompts and verification are one request a key, however many of their rows ask for it.
    assert is_lru(trace, Budget(slots=slots), Settings(overflow="bypass"), boundary=boundary)


@pytest.mark.rule("XC-EVICT-205", "XC-EVICT-203")
def test_in_one_stream_without_prefetch_fifo_order_is_lru_under_every_setting() -> None:
    for seed in range(150):
        case = random_case(seed, "least-stale", admission="always", overflow="bypass")
        trace = Trace(case.trace.geometry, tuple(event for event in case.trace.events if event.stream == 0))
        assert is_lru(trace, case.budget, case.settings), seed


@pytest.mark.rule("XC-EVICT-205", "XC-EVICT-203")
def test_with_requeue_it_is_lru_whatever_the_streams() -> None:
    for seed in range(150):
        case = random_case(seed, "least-stale", admission="always", overflow="bypass")
        assert is_lru(case.trace, case.budget, case.settings, requeue=True), seed


@pytest.mark.rule("XC-EVICT-205", "XC-EVICT-201")
def test_with_a_boundary_at_every_change_of_pass_it_is_lru_whatever_the_streams() -> None:
    for seed in range(150):
        case = random_case(seed, "least-stale", admission="always", overflow="bypass")
        assert is_lru(case.trace, case.budget, case.settings, boundary="pass"), seed


@pytest.mark.rule("XC-EVICT-205", "XC-EVICT-203")
@BOTH
def test_two_streams_inside_one_pass_of_the_lowest_layer_break_it(form: Form) -> None:
    # Stream 1 asks for expert 0 of layer 1 again before any event of layer 0 begins a pass. It is current and stays
    # before expert 1 in the queue; LRU moves it behind.
    rows = [
        (0, 0, (0,)),
        (1, 0, (0,)),
        (0, 1, (0, 1)),
        (1, 1, (0,)),
        (0, 0, (1,)),
        (1, 0, (2,)),
        (0, 1, (2,)),
        (1, 1, (2,)),
    ]
    events = tuple(Event(layer, (row,), stream, n // 4) for n, (stream, layer, row) in enumerate(rows))
    trace = Trace(Geometry(2, 3, 2), events)
    lru, stale = (list(Replay(trace, name, Budget(slots=3), form=form)) for name in ("lru", "least-stale"))
    assert [step.victims for step in lru[:6]] == [(), (), (), (), (Key(0, 0),), (Key(1, 1),)]
    assert [step.victims for step in stale[:6]] == [(), (), (), (), (Key(0, 0),), (Key(1, 0),)]


@pytest.mark.rule("XC-EVICT-205")
@pytest.mark.parametrize("name", ["qwen", "gemma"])
@pytest.mark.parametrize("slots", [200, 1000])
def test_on_recorded_prompts_and_decode_fifo_order_is_lru(name: str, slots: int) -> None:
    trace = recordings.beginning(recordings.bigmoe(name), 40)
    assert is_lru(trace, Budget(slots=slots))


def recorded(name: str) -> Trace:
    """A recording of tests/data by name, whole."""
    if name in ("qwen", "gemma"):
        return recordings.bigmoe(name)
    events = [
        Event(layer, (tuple(ids),), stream, number)
        for stream, request in enumerate(ds4_questions.requests(name))
        for number, token in enumerate(request)
        for layer, ids in enumerate(token)
    ]
    return Trace(ds4_questions.MODEL, tuple(events), name)


@pytest.mark.nightly
@pytest.mark.rule("XC-EVICT-205")
@pytest.mark.parametrize("name", ["qwen", "gemma", *ds4_questions.DOMAINS])
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_on_every_decode_trace_at_hand_fifo_order_is_lru(name: str, share: float) -> None:
    trace = recorded(name)
    slots = int(share * trace.geometry.experts * len(trace.geometry.routed))
    assert is_lru(trace, Budget(slots=slots), Settings(overflow="waves"))


# ---------------------------------------------------------------------------------------------- open choices by hand


def drained(tested: Policy) -> list[tuple[int, int]]:
    """Every resident in the order in which it would leave."""
    order = []
    while (victim := tested.victim((), None)) is not None:
        tested.evict(victim)
        order.append(tuple(victim))
    return order  # type: ignore[return-value]


def after(tested: Policy, *events: tuple[int, int, tuple[int, ...]]) -> Policy:
    """The policy after events (pass, layer, experts) that all miss, at room for everything."""
    known: set[Key] = set()
    for number, layer, row in events:
        event = Event(layer, (row,), 0, number)
        tested.begin(event)
        stamps = {key: 10 * len(known) + place for place, key in enumerate(event.keys)}
        tested.hits([key for key in event.keys if key in known], stamps)
        tested.inserts([key for key in event.keys if key not in known], stamps)
        tested.settle(event.keys)
        known.update(event.keys)
    return tested


HALFWAY = [(0, 0, (0,)), (0, 1, (0,)), (0, 2, (0,)), (1, 0, (1,)), (1, 1, (1,))]
"""Pass 0 over three layers, pass 1 up to the second: (0, 1) and (1, 1) are current, layer 1 runs."""

ORDERS = [
    ({"order": "fifo"}, [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]),
    ({"order": "fifo", "first": "newest"}, [(2, 0), (1, 0), (0, 0), (1, 1), (0, 1)]),
    ({"order": "layer"}, [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]),
    ({"order": "layer", "generations": False}, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]),
    ({"order": "ring"}, [(0, 0), (2, 0), (1, 0), (0, 1), (1, 1)]),
    ({"order": "ring", "generations": False}, [(0, 0), (0, 1), (2, 0), (1, 0), (1, 1)]),
    ({"order": "line"}, [(0, 0), (2, 0), (1, 0), (0, 1), (1, 1)]),
    ({"order": "fifo", "left_first": True}, [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]),
    ({"order": "fifo", "left_first": True, "fallback": "current"}, [(0, 0), (0, 1), (1, 1), (1, 0), (2, 0)]),
]


@pytest.mark.rule("XC-EVICT-200", "XC-EVICT-204")
@BOTH
@pytest.mark.parametrize(("parameters", "leaving"), ORDERS, ids=[str(chosen) for chosen, _ in ORDERS])
def test_in_the_middle_of_a_pass_residents_leave_in_this_order(
    parameters: dict[str, Value], leaving: list[tuple[int, int]], form: Form
) -> None:
    assert drained(after(policy(form, **parameters), *HALFWAY)) == leaving


@pytest.mark.rule("XC-EVICT-202")
@BOTH
@pytest.mark.parametrize(
    ("marks", "stamps", "leaving"),
    [
        (True, True, [(0, 0), (0, 1), (0, 9)]),
        (True, False, [(0, 0), (0, 9), (0, 1)]),
        (False, True, [(0, 0), (0, 9), (0, 1)]),
        (False, False, [(0, 9), (0, 0), (0, 1)]),
    ],
)
def test_a_prefetch_takes_either_end_of_either_queue(
    marks: bool, stamps: bool, leaving: list[tuple[int, int]], form: Form
) -> None:
    tested = policy(form, prefetch_marks_current=marks, prefetch_stamps=stamps)
    after(tested, (0, 0, (0,)), (1, 0, (1,)))
    tested.insert(Key(0, 9), 99)
    assert drained(tested) == leaving


@pytest.mark.rule("XC-EVICT-202")
@BOTH
@pytest.mark.parametrize(
    ("parameters", "leaving"),
    [
        ({}, [(0, 0), (0, 1), (0, 2), (1, 2)]),
        ({"prefetch_renews": True}, [(0, 1), (0, 2), (1, 2), (0, 0)]),
        ({"prefetch_renews": True, "prefetch_stamps": False}, [(0, 1), (0, 0), (0, 2), (1, 2)]),
        ({"prefetch_renews": True, "prefetch_marks_current": False}, [(0, 1), (0, 2), (1, 2), (0, 0)]),
    ],
)
def test_a_stale_record_that_a_prefetch_asks_for_becomes_current_where_that_is_chosen(
    parameters: dict[str, Value], leaving: list[tuple[int, int]], form: Form
) -> None:
    # 0 and 1 are stale, 2 is current: of what is current already a prefetch moves nothing.
    tested = after(policy(form, **parameters), (0, 0, (0, 1)), (1, 0, (2,)), (1, 1, (2,)))
    assert tested.renews is bool(parameters)
    for key in (Key(0, 0), Key(0, 2)):
        tested.renew(key)
    assert drained(tested) == leaving


@pytest.mark.rule("XC-EVICT-202", "XC-EVICT-201")
@BOTH
@pytest.mark.parametrize("keeps", [False, True])
def test_what_is_renewed_waits_for_its_use_like_what_a_prefetch_brought(keeps: bool, form: Form) -> None:
    tested = after(policy(form, prefetch_renews=True, keeps_unused=keeps), (0, 0, (0, 1)), (1, 0, (2,)))
    tested.renew(Key(0, 0))
    after(tested, (2, 0, (3,)))
    assert drained(tested) == [(0, 1), (0, 2), (0, 0), (0, 3)]
    kept = after(policy(form, prefetch_renews=True, keeps_unused=keeps), (0, 0, (0, 1)), (1, 0, (2,)))
    kept.renew(Key(0, 0))
    after(kept, (2, 0, (3,)))
    kept.renew(Key(0, 2))  # stale, and renewed behind 3; 0 is current still where that is kept
    kept.renew(Key(0, 0))
    assert drained(kept) == ([(0, 1), (0, 0), (0, 3), (0, 2)] if keeps else [(0, 1), (0, 3), (0, 2), (0, 0)])


@pytest.mark.rule("XC-EVICT-202", "XC-PREFETCH-007", "XC-PREFETCH-009")
@BOTH
@pytest.mark.parametrize(
    ("options", "hits"),
    [({"home": "slot"}, [3]), ({"home": "slot", "stamps": False}, [3]), ({"cap": Budget(slots=4)}, [])],
    ids=["slots", "unstamped slots", "staging"],
)
def test_a_prediction_of_what_is_in_the_cache_renews_it_and_one_beside_the_cache_does_not(
    options: dict[str, Any], hits: list[int], form: Form
) -> None:
    # Stream 0 expects 3 of layer 1, the stalest record by then. Renewed, it outlives what stream 1 loads before it is
    # asked for.
    def event(stream: int, number: int, layer: int, expert: int, then: int) -> Event:
        line = tuple(1.0 if each == then else 0.0 for each in range(8))
        return Event(layer, ((expert,),), stream, number, lookahead=((line,),) if layer == 0 else ())

    rows = [(0, 0, 0, 0, 3), (0, 0, 1, 3, 0), (1, 0, 0, 4, 5), (0, 1, 0, 0, 3), (1, 0, 1, 5, 0), (0, 1, 1, 3, 0)]
    trace = Trace(Geometry(2, 8, 1), tuple(event(*row) for row in rows))
    gate = Prefetch("gate-top-k", **options)
    run = Replay(trace, "least-stale", Budget(slots=3), form=form, parameters={"prefetch_renews": True}, prefetch=gate)
    assert [key.expert for key in list(run)[-1].hits] == hits


@pytest.mark.rule("XC-EVICT-202", "XC-EVICT-203")
@BOTH
def test_the_first_use_of_an_unstamped_prefetch_gives_it_its_place(form: Form) -> None:
    tested = policy(form, prefetch_stamps=False, boundary="explicit")
    tested.insert(Key(0, 9), 1)
    tested.insert(Key(0, 8), 2)
    after(tested, (0, 0, (0,)))
    event = Event(0, ((9,),), 0, 1)
    tested.begin(event)
    tested.hits(event.keys, {Key(0, 9): 50})
    tested.settle(event.keys)
    assert drained(tested) == [(0, 8), (0, 0), (0, 9)]


@pytest.mark.rule("XC-EVICT-201")
@BOTH
@pytest.mark.parametrize("keeps", [False, True])
def test_an_unused_prefetch_outlives_the_boundary_only_where_that_is_kept(keeps: bool, form: Form) -> None:
    # Kept, it is current, and before what the new pass has used; else it has its place among the stale.
    tested = policy(form, keeps_unused=keeps)
    after(tested, (0, 0, (0,)))
    tested.insert(Key(0, 9), 9)
    after(tested, (0, 1, (5,)), (1, 0, (1,)))
    assert drained(tested) == ([(0, 0), (1, 5), (0, 9), (0, 1)] if keeps else [(0, 0), (0, 9), (1, 5), (0, 1)])


@pytest.mark.rule("XC-EVICT-206")
@BOTH
def test_intervals_are_counted_in_passes_and_the_first_is_the_first_mean(form: Form) -> None:
    # 0 is asked for in passes 1 and 2, 1 in 1 and 4, 2 once in 3. After pass 5 means are 1 and 3: 0 is overdue by 2,
    # 1 by -2, and 2 was never asked for again.
    events = [(0, 0, (0, 1)), (1, 0, (0,)), (2, 0, (2,)), (3, 0, (1,)), (4, 0, (3,))]
    overdue = drained(after(policy(form, order="overdue", generations=False), *events))
    assert overdue == [(0, 2), (0, 3), (0, 0), (0, 1)]
    # Next uses are expected in 2 + 1, 4 + 3, 3 + 1 and 5 + 1: the latest leaves first.
    expected = drained(after(policy(form, order="next", generations=False), *events))
    assert expected == [(0, 1), (0, 3), (0, 2), (0, 0)]


@pytest.mark.rule("XC-EVICT-206")
@BOTH
@pytest.mark.parametrize(("weight", "mean"), [(0.5, 2.5), (0.25, 1.75), (1.0, 4.0), (0.0, 1.0)])
def test_a_later_interval_enters_with_its_weight_and_history_can_be_forgotten(
    weight: float, mean: float, form: Form
) -> None:
    tested: Any = policy(form, order="overdue", weight=weight)
    after(tested, (0, 0, (0,)), (1, 0, (0,)), (2, 0, (1,)), (3, 0, (1,)), (4, 0, (1,)), (5, 0, (0,)))
    assert tested.intervals.means == {Key(0, 0): mean, Key(0, 1): 1.0}
    tested.forget()
    assert tested.intervals.means == {}


# ---------------------------------------------------------------------------------------------- farthest layer


@pytest.mark.rule("XC-EVICT-211")
def test_the_distances_of_five_layers_while_the_second_runs() -> None:
    def farthest_first(distance: str) -> list[int]:
        return sorted(range(5), key=lambda layer: (nearness(distance, layer, 1, 5), layer))

    assert farthest_first("linear") == [4, 3, 0, 2, 1]
    assert farthest_first("circular") == [3, 4, 0, 2, 1]
    assert farthest_first("ahead") == [0, 4, 3, 2, 1]


@pytest.mark.rule("XC-EVICT-210")
@BOTH
def test_of_the_farthest_layer_the_least_recent_leaves(form: Form) -> None:
    tested = make("farthest-layer", form, parameters={"distance": "ahead"})()
    for now, key in enumerate([Key(2, 0), Key(2, 1), Key(0, 0), Key(0, 1), Key(1, 0)]):
        tested.insert(key, now)
    tested.begin(Event(1, ((5,),)))
    tested.hits([Key(0, 0)], {Key(0, 0): 9})
    tested.settle([Key(0, 0)])
    assert drained(tested) == [(0, 1), (0, 0), (2, 0), (2, 1), (1, 0)]


@pytest.mark.rule("XC-EVICT-210")
@pytest.mark.parametrize("distance", ["linear", "circular", "ahead"])
def test_under_scope_layer_farthest_layer_is_lru(distance: str) -> None:
    card = POLICIES["farthest-layer"].setting("far", distance=distance)
    for seed in range(60):
        case = random_case(seed, "lru", scope="layer", overflow="bypass", admission="always")
        far, lru = (list(Replay(case.trace, name, case.budget, case.settings)) for name in (card, "lru"))
        assert far == lru, seed


@pytest.mark.rule("XC-EVICT-210", "XC-EVICT-211")
def test_looking_ahead_has_no_cliff() -> None:
    trace = decode_trace([[0, 1]] * 40, layers=4)
    hits = {}
    for distance in ("linear", "circular", "ahead"):
        card = POLICIES["farthest-layer"].setting("far", distance=distance)
        run = Replay(trace, card, Budget(slots=6))
        hits[distance] = sum(len(step.hits) for step in run)
    assert hits["ahead"] == 48  # what Belady has there
    assert all(found > 0 for found in hits.values())
