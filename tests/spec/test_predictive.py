"""The causal predictors: what each one predicts, by hand; what they share; their bounds."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import attrs
import pytest

from expertcache_spec.eviction import POLICIES, Value, make
from expertcache_spec.eviction.predictive import CARDS
from expertcache_spec.eviction.predictive.base import stranger
from expertcache_spec.eviction.predictive.classes import Table
from expertcache_spec.eviction.predictive.facts import Facts
from expertcache_spec.eviction.predictive.shelves import Shelf
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import Replay, run_event
from expertcache_spec.residency import Residency, Settings
from expertcache_spec.trace import Event, Trace, decode_trace

from .strategies import random_case, random_trace

NAMES = tuple(card.name for card in CARDS)
CLASSED = ("hazard", "last-rank", "streak", "semi-markov")
FORMS = ("declarative", "indexed")


def victims(
    policy: str, slots: int, ids: list[list[int]], layers: int = 1, form: str = "indexed", **values: Value
) -> list[Any]:
    """The victims of each event that has any: experts, or (layer, expert) where there are several layers."""
    trace = decode_trace(ids, layers=layers)
    run = Replay(trace, policy, Budget(slots=slots), form=form, parameters=values)  # type: ignore[arg-type]
    return [[tuple(key) if layers > 1 else key.expert for key in step.victims] for step in run if step.victims]


# ---------------------------------------------------------------------------------------------- each, by hand


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.rule("XC-EVICT-280", "XC-EVICT-281", "XC-EVICT-274")
def test_hazard_evicts_the_age_that_was_least_often_followed_by_a_request(form: str) -> None:
    # Visits 1 to 4 ask for 0, 1, 2, 0. At the fourth, key 2 has age 0, 1 age 1, 0 age 2: chances by age class before
    # it are 2, 1, 0 and none was used; the fourth uses class 2. Likelihoods 1/5, 1/4, 2/3: the youngest are the least
    # likely. Visit 5 asks for 3: 0 is of age 0 now, 2 of age 1, 1 of age 2.
    assert victims("hazard", 3, [[0], [1], [2], [0], [3]], form=form) == [[0]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.rule("XC-EVICT-281")
def test_a_key_that_is_not_resident_has_chances_too(form: str) -> None:
    # A loop of three in one slot: each key comes back at age 2, never resident then. With two slots instead of one the
    # same table says to keep the older one.
    policy = make("hazard", form)()  # type: ignore[arg-type]
    machine = Residency(Geometry(1, 3, 1), Budget(slots=1), lambda: policy)
    for event in decode_trace([[0], [1], [2]] * 4).events:
        run_event(machine, event)
    table = policy.table  # type: ignore[attr-defined]
    assert table.chances[:3] == [11, 10, 9]
    assert table.uses[:3] == [0, 0, 9]


@pytest.mark.rule("XC-EVICT-280")
def test_hazard_hits_a_loop_that_lru_never_hits() -> None:
    trace = decode_trace([[n % 4] for n in range(80)])
    hits = {name: Replay(trace, name, Budget(slots=3)) for name in ("lru", "hazard")}
    found = {}
    for name, run in hits.items():
        found[name] = sum(len(step.hits) for step in run)
    assert found["lru"] == 0
    assert found["hazard"] > 40


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.rule("XC-EVICT-290")
def test_last_rank_keeps_what_was_ranked_as_the_reused_ones_were(form: str) -> None:
    # The first of each row comes again at once, the second never: of the residents 0 (rank 0) and 1 to 3 (rank 1), the
    # second ones go, oldest first.
    ids = [[0, 1], [0, 2], [0, 3], [0, 4]]
    assert victims("last-rank", 4, ids, form=form) == [[1]]
    assert victims("last-rank", 4, [*ids, [5, 6]], form=form) == [[1], [2, 3]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.rule("XC-EVICT-291")
def test_of_several_rows_the_best_rank_counts(form: str) -> None:
    policy = make("last-rank", form)()  # type: ignore[arg-type]
    policy.begin(Event(0, ((3, 1, 2), (2, 0)), phase="prefill"))
    ranks = {key.expert: facts.rank for key, facts in policy.past.asked.items()}  # type: ignore[attr-defined]
    assert ranks == {3: 0, 1: 1, 2: 0, 0: 1}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.rule("XC-EVICT-295")
def test_streak_remembers_how_long_a_broken_run_was(form: str) -> None:
    # 0 is asked for at visits 1 and 2, 1 at 3, 2 at 4, 0 again at 5: a run of two that is broken came back, runs of one
    # that are broken did not. At visit 7 the residents are 0 (run 1, age 1), 2 (run 1) and 3 (going on).
    policy = make("streak", form)()  # type: ignore[arg-type]
    machine = Residency(Geometry(1, 6, 1), Budget(slots=3), lambda: policy)
    for event in decode_trace([[0], [0], [1], [2], [0]]).events:
        run_event(machine, event)
    classes = {(2 * run + broken): (run, broken) for run in range(7) for broken in (0, 1)}
    table = policy.table  # type: ignore[attr-defined]
    used = {classes[each]: count for each, count in enumerate(table.uses) if count}
    had = {classes[each]: count for each, count in enumerate(table.chances) if count}
    assert used == {(1, 0): 1, (2, 1): 1}
    assert had == {(1, 0): 3, (2, 0): 1, (2, 1): 2, (1, 1): 1}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.rule("XC-EVICT-310")
def test_semi_markov_tells_periods_apart_that_hazard_cannot(form: str) -> None:
    # 0 comes every second visit, 1 and 2 every fourth: at age 1 the interval says who is next.
    ids = [[0], [1], [0], [2]] * 12
    trace = decode_trace([*ids, [0], [3]])
    runs = {name: Replay(trace, name, Budget(slots=2), form=form) for name in ("semi-markov", "lru")}  # type: ignore[arg-type]
    hits = {name: sum(len(step.hits) for step in run) for name, run in runs.items()}
    assert hits["semi-markov"] >= hits["lru"] == 24
    policy = make("semi-markov", form)()  # type: ignore[arg-type]
    for event in trace.events[:-2]:
        policy.begin(event)
    likely = policy.table.likelihoods()  # type: ignore[attr-defined]
    period_two, period_four = (2 * 6, 3 * 6)
    assert likely[period_two + 1] > 9 * likely[period_four + 1]
    assert likely[period_four + 2] > 3 * likely[period_four + 1]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.rule("XC-EVICT-285", "XC-EVICT-274")
def test_popularity_compares_shares_of_each_layers_own_rows(form: str) -> None:
    # Layer 1 has routed one row, layer 0 two when the victim is chosen: 1/1 against 1/2, though both keys count one and
    # that of layer 1 is the older.
    machine = Residency(Geometry(2, 4, 1), Budget(slots=2), make("popularity", form))  # type: ignore[arg-type]
    events = [Event(layer, ((expert,),)) for layer, expert in ((1, 0), (0, 0), (0, 1))]
    assert [run_event(machine, event).victims for event in events] == [(), (), (Key(0, 0),)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.rule("XC-EVICT-286")
@pytest.mark.parametrize(("count", "victim", "of"), [("rows", 1, 4), ("events", 0, 2)])
def test_popularity_counts_rows_or_events_as_declared(form: str, count: str, victim: int, of: int) -> None:
    # Two of three rows ask for 0: by events both have one, and 0 is the later in router order.
    policy = make("popularity", form, parameters={"count": count})()  # type: ignore[arg-type]
    machine = Residency(Geometry(1, 4, 2), Budget(slots=2), lambda: policy)
    events = Event(0, ((1,), (0,), (0,)), phase="prefill"), Event(0, ((2,),), pass_index=1)
    assert [run_event(machine, event).victims for event in events][-1] == (Key(0, victim),)
    assert policy.rows == {0: of}  # type: ignore[attr-defined]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.rule("XC-EVICT-286", "XC-EVICT-282")
def test_counts_are_halved_when_the_limit_is_reached(form: str) -> None:
    policy = make("popularity", form, parameters={"limit": 4})()  # type: ignore[arg-type]
    for event in decode_trace([[0], [0], [0], [1]]).events:
        policy.begin(event)
    assert policy.rows == {0: 2}  # type: ignore[attr-defined]
    assert policy.counts == {Key(0, 0): 1, Key(0, 1): 0}  # type: ignore[attr-defined]
    table = Table(2, 4)
    table.visit([3, 1], [0, 0, 0])
    table.visit([1, 1], [0])
    assert (table.chances, table.uses) == ([2, 2], [2, 0])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.rule("XC-EVICT-300", "XC-EVICT-301")
def test_a_request_leaves_the_window_by_visits_of_its_own_layer(form: str) -> None:
    # Window 2. Key 0 is asked for three times, then 1 and 2 once each: nothing of 0 is left in the window.
    assert victims("recent-frequency", 3, [[0], [0], [0], [1], [2], [3]], form=form, window=2) == [[0]]
    assert victims("recent-frequency", 3, [[0], [0], [0], [1], [2], [3]], form=form, window=9) == [[1]]
    # Events of layer 1 move no window of layer 0.
    policy = make("recent-frequency", form, parameters={"window": 2})()  # type: ignore[arg-type]
    for event in [Event(0, ((0,),)), *(Event(1, ((5,),), pass_index=n) for n in range(4))]:
        policy.begin(event)
    assert list(policy.latest[0]) == [(Key(0, 0),)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.rule("XC-EVICT-305", "XC-EVICT-307")
@pytest.mark.parametrize(("overdue", "at_nine", "at_ten"), [("mirror", 0, 2), ("soon", 2, 2), ("gone", 0, 1)])
def test_the_prediction_farthest_from_now_leaves_as_overdue_reckons_it(
    form: str, overdue: str, at_nine: int, at_ten: int
) -> None:
    # Asked for at events: 0 at 1, 2; 1 at 3, 6; 2 at 4, 8; 4 at 5, 7. So due at 3, 9, 12, 9. At event 9, 0 is 6 late
    # and 2 is 3 ahead.
    ids = [[0], [0], [1], [2], [4], [1], [4], [2]]
    assert victims("ewma-interval", 4, [*ids, [5]], form=form, overdue=overdue) == [[at_nine]]
    # Asked for at event 9, 0 is due at 9 + 1 + (7 - 1) / 4 = 11.5; at event 10, 2 is 2 ahead, 1 and 4 are 1 late.
    assert victims("ewma-interval", 4, [*ids, [0], [5]], form=form, overdue=overdue) == [[at_ten]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.rule("XC-EVICT-306")
def test_the_mean_is_the_first_interval_and_then_moves_by_whole_parts_rounded_down(form: str) -> None:
    policy = make("ewma-interval", form)()  # type: ignore[arg-type]
    means = []
    for event in decode_trace([[0], [0], [1], [1], [0], [0]]).events:
        policy.begin(event)
        means.append(policy.means.get(Key(0, 0)))  # type: ignore[attr-defined]
    # 1 event, then + (3 - 1) / 4 = 1.5, then + (1 - 1.5) / 4 = 1.375: 256, 384, 352 in 1/256.
    assert means == [None, 256, 256, 256, 384, 352]
    assert (256 - 383) // 4 == -32, "rounded down, not towards zero"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.rule("XC-EVICT-305")
def test_a_key_without_an_interval_goes_first_unless_one_is_assumed(form: str) -> None:
    ids = [[0], [0], [1], [2]]
    assert victims("ewma-interval", 2, ids, form=form) == [[1]]
    assert victims("ewma-interval", 2, ids, form=form, first=1) == [[0]]


# ---------------------------------------------------------------------------------------------- what they share


@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.rule("XC-EVICT-270")
def test_touch_order_repeats_and_room_change_no_step(policy: str) -> None:
    for seed in range(40):
        case = random_case(seed, policy, room="reserve", admission="always", overflow="bypass", no_victim="bypass")
        base = list(Replay(case.trace, policy, case.budget, case.settings))
        for change in ({"touch": "hits_first"}, {"touch": "router"}, {"repeats": "ignore"}, {"repeats": "promote"}):
            settings = attrs.evolve(case.settings, **change)
            assert list(Replay(case.trace, policy, case.budget, settings)) == base, (seed, change)


@pytest.mark.parametrize("touch", ["router", "hits_first"])
@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.rule("XC-EVICT-270", "XC-EVICT-271")
def test_more_memory_holds_all_that_less_held(policy: str, touch: str) -> None:
    for seed in range(8):
        random = Random(seed)
        trace = random_trace(random, Geometry(random.randint(1, 2), 7, 3), streams=2, passes=9)
        widest = max(len(event.keys) for event in trace.events)
        runs = [Replay(trace, policy, Budget(slots=n), Settings(touch=touch)) for n in range(widest, 12)]  # type: ignore[arg-type]
        for event in trace.events:
            for run in runs:
                run_event(run.machine, event)
            held = [run.machine.residents() for run in runs]
            assert all(small <= large for small, large in pairwise(held)), seed


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.rule("XC-EVICT-271")
def test_what_is_known_of_a_key_survives_its_eviction(policy: str, form: str) -> None:
    trace = random_trace(Random(3), Geometry(1, 8, 2), passes=40)
    kept, torn = (make(policy, form)() for _ in range(2))  # type: ignore[arg-type]
    for event in trace.events:
        for each in (kept, torn):
            each.begin(event)
        for key in event.keys:
            torn.insert(key, 0)
        for key in event.keys:
            torn.evict(key)
    keys = sorted({key for event in trace.events for key in event.keys})
    orders = []
    for each in (kept, torn):
        for key in keys:
            each.insert(key, 0)
        order = []
        while (key := each.victim((), None)) is not None:
            order.append(key)
            each.evict(key)
        orders.append(order)
    assert orders[0] == orders[1]
    assert len(orders[0]) == len(keys) > 4


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.rule("XC-EVICT-272")
def test_what_nobody_has_asked_for_goes_first_and_lowest_first(policy: str, form: str) -> None:
    machine = Residency(Geometry(1, 9, 2), Budget(slots=5), make(policy, form))  # type: ignore[arg-type]
    for key in machine.seed([Key(0, 7), Key(0, 6)]).reads:
        machine.complete(key)
    events = decode_trace([[0, 1], [0, 1], [2, 3], [4, 5]], experts=9).events
    gone = [run_event(machine, event).victims for event in events]
    assert gone[2] == (Key(0, 6),)
    assert gone[3][0] == Key(0, 7)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.rule("XC-EVICT-273", "XC-EVICT-276")
def test_of_equal_predictions_the_key_asked_for_longest_ago_goes_first(policy: str, form: str) -> None:
    machine = Residency(Geometry(1, 9, 3), Budget(slots=6), make(policy, form))  # type: ignore[arg-type]
    for event in decode_trace([[0, 1, 2], [3, 4, 5], [0, 1, 2], [4, 3, 5], [0, 1], [3]]).events:
        run_event(machine, event)
    machine.reset("history")
    # Recency is all that is left: 2 is oldest, then 5 and 4 of the fourth event (the last in router order first), ...
    assert [key.expert for key in machine.resize(Budget(slots=0))][:3] == [2, 5, 4]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("policy", CLASSED)
@pytest.mark.rule("XC-EVICT-273")
def test_under_ties_latest_the_key_asked_for_latest_goes_first(policy: str, form: str) -> None:
    ids = [[0, 1, 2], [3, 4, 5]]
    machine = Residency(Geometry(1, 9, 3), Budget(slots=6), make(policy, form, parameters={"ties": "latest"}))  # type: ignore[arg-type]
    for event in decode_trace(ids).events:
        run_event(machine, event)
    machine.reset("history")
    order = [key.expert for key in machine.resize(Budget(slots=0))]
    within = [[each for each in order if each in row] for row in ids]
    assert within == ids


# ---------------------------------------------------------------------------------------------- the index


@pytest.mark.rule("XC-EVICT-273")
def test_a_shelf_keeps_the_order_of_numbers_whatever_the_order_of_filing() -> None:
    for seed in range(30):
        random, shelf, at = Random(seed), Shelf(), dict[int, Facts]()
        for _ in range(400):
            if at and random.random() < 0.4:
                at.pop(random.choice(list(at))).leave()
            elif (number := random.randrange(1, 10_000)) not in at:
                at[number] = Facts(number, 1, seat=Key(0, number))
                shelf.put(at[number])
            oldest = random.random() < 0.5
            filed = [[number, Key(0, number)] for number in sorted(at, reverse=not oldest)]
            assert list(shelf.walk(oldest)) == filed
            assert len(shelf.row) <= shelf.most


# ---------------------------------------------------------------------------------------------- bounds


def numbers_in(value: Any) -> int:
    """How many whole numbers a value holds in its containers; keys and names count as none."""
    if isinstance(value, Key | str) or value is None:
        return 0
    if isinstance(value, int):
        return 1
    if isinstance(value, dict):
        return sum(map(numbers_in, value.values()))
    return (
        sum(numbers_in(getattr(value, f.name)) for f in attrs.fields(type(value)))
        if attrs.has(type(value))
        else sum(map(numbers_in, value))
    )


KEYS, LAYERS, WIDEST = 36, 3, 4
STATE: dict[str, tuple[tuple[str, ...], int, dict[str, Value]]] = {
    "hazard": (("past", "table"), 5 * KEYS + LAYERS + 2 * 6, {}),
    "last-rank": (("past", "table"), 5 * KEYS + LAYERS + 2 * 8, {}),
    "streak": (("past", "table"), 5 * KEYS + LAYERS + 2 * 2 * 7, {}),
    "semi-markov": (("past", "table"), 5 * KEYS + LAYERS + 2 * 5 * 6, {}),
    "popularity": (("numbers", "counts", "rows"), 2 * KEYS + LAYERS, {}),
    "recent-frequency": (("numbers",), KEYS, {"window": 8}),
    "ewma-interval": (("numbers", "latest", "means"), 3 * KEYS, {}),
}
"""The attributes that hold what a declared predictor has learned, and how many numbers they may be."""


def long_trace(passes: int) -> Trace:
    """One stream over three layers of twelve experts."""
    return random_trace(Random(passes), Geometry(LAYERS, KEYS // LAYERS, WIDEST), passes=passes, phases=("decode",))


@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.rule("XC-EVICT-277")
def test_what_a_predictor_knows_is_bounded_by_the_model_and_not_by_the_trace(policy: str) -> None:
    attributes, bound, values = STATE[policy]
    known = []
    for passes in (200, 400):
        learner = make(policy, "declarative", parameters=values)()
        for event in long_trace(passes).events:
            learner.begin(event)
        # A record of facts has 5 numbers of the rule and 2 for the index, and one count of all requests goes with them.
        extra = 2 * KEYS + 3 if "past" in attributes else 0
        known.append(sum(numbers_in(getattr(learner, name)) for name in attributes))
        assert known[-1] <= bound + extra
    assert known[0] == known[1]


def size_of(value: Any, seen: dict[int, Any] | None = None) -> int:
    """The entries in all containers of an object, each container counted once."""
    seen = {} if seen is None else seen
    if isinstance(value, Key | str | int) or value is None or id(value) in seen:
        return 0
    seen[id(value)] = value
    if attrs.has(type(value)):
        return sum(size_of(getattr(value, f.name), seen) for f in attrs.fields(type(value)))
    inner = value.values() if isinstance(value, dict) else value
    return len(value) + sum(size_of(each, seen) for each in inner)


@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.rule("XC-EVICT-277")
def test_the_index_is_bounded_too(policy: str) -> None:
    sizes = []
    for passes in (150, 600):
        run = Replay(long_trace(passes), policy, Budget(slots=14), parameters=STATE[policy][2])
        for event in run.events:
            run_event(run.machine, event)
        sizes.append(size_of(run.machine.parts[-1].policy))
    # Outdated filings of a heap come and go: 64 and four for each resident, in each of at most four heaps.
    assert sizes[1] <= sizes[0] + 4 * 3 * (64 + 4 * 14)
    assert sizes[1] < 4_000


# ---------------------------------------------------------------------------------------------- the control


@pytest.mark.rule("XC-EVICT-275")
def test_strangers_are_a_permutation_without_fixed_points_that_leads_back() -> None:
    seen = set()
    for seed in range(12):
        for layer in range(40):
            keys = [Key(layer, expert) for expert in range(64)]
            strangers = [stranger(key, seed) for key in keys]
            assert sorted(strangers) == keys
            assert all(one != other for one, other in zip(keys, strangers, strict=True))
            assert [stranger(key, seed) for key in strangers] == keys
            seen.add((seed, layer, strangers[0].expert))
    assert {mask for _, _, mask in seen} == {1, 2, 3}
    assert len({tuple(stranger(Key(layer, 0), seed) for layer in range(40)) for seed in range(12)}) == 12


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.rule("XC-EVICT-275")
def test_under_control_shuffled_a_key_stands_where_its_stranger_would(policy: str, form: str) -> None:
    trace = random_trace(Random(8), Geometry(2, 8, 2), passes=30, phases=("decode",))
    keys = sorted({key for event in trace.events for key in event.keys})
    assert len(keys) == 16
    orders = {}
    for control in ("none", "shuffled"):
        learner = make(policy, form, parameters={"control": control, "seed": 5})()  # type: ignore[arg-type]
        for key in keys:
            learner.insert(key, 0)
        for event in trace.events:
            learner.begin(event)
        order = orders[control] = []
        while (victim := learner.victim((), None)) is not None:
            order.append(victim)
            learner.evict(victim)
    assert orders["shuffled"] == [stranger(key, 5) for key in orders["none"]] != orders["none"]


@pytest.mark.rule("XC-EVICT-278")
def test_every_predictive_policy_has_a_control_and_is_online() -> None:
    for name in NAMES:
        assert {"control", "seed"} <= {parameter.name for parameter in POLICIES[name].parameters}
        assert not POLICIES[name].offline
        assert name in STATE
