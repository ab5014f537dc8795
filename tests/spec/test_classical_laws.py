"""Laws of the queue policies, over generated cases; a tempting law that is false stands here with what breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any, get_args

import attrs
import pytest

from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.eviction import Form, Value, make
from expertcache_spec.eviction.spelling import parse
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.prefetch import Prefetch
from expertcache_spec.replay import Mode, Replay, run_event
from expertcache_spec.residency import Residency, Settings, Step
from expertcache_spec.trace import Event, Trace, decode_trace

from .running import experts
from .strategies import Case, random_case, random_trace

Values = dict[str, Value]
QUEUES = ("arc", "clock", "clock-lru-k", "s3-fifo", "sieve", "slru", "two-q")
GHOSTS = {"arc": ("b1", "b2"), "clock-lru-k": ("left_with",), "s3-fifo": ("queue_ghosts",), "two-q": ("ghosts",)}
FORMS = pytest.mark.parametrize("form", ["indexed", "declarative"])


def outcome(
    case: Case, policy: str, values: Values | None = None, mode: Mode = "event", form: Form = "indexed"
) -> list[Any]:
    """Every step of the case, or the class of the refusal."""
    run = Replay(case.trace, policy, case.budget, case.settings, mode, form, values or {})
    found: list[Any] = []
    for event in run.events:
        try:
            found.append(run_event(run.machine, event))
        except ExpertCacheError as refusal:
            found.append(type(refusal))
    return found


def plain_traces(count: int) -> Iterator[tuple[int, Trace, int]]:
    """Seeds with a trace of several layers and streams, and slots that some of it fits into."""
    for seed in range(count):
        random = Random(seed)
        geometry = Geometry(random.randint(1, 3), 10, random.randint(1, 4))
        trace = random_trace(random, geometry, streams=2, passes=12)
        widest = max(len(event.keys) for event in trace.events)
        yield seed, trace, random.randint(widest, widest + 12)


def watched(policy: str, trace: Trace, slots: int, values: Values | None = None) -> Iterator[tuple[Any, Residency]]:
    """The policy and its machine after each event."""
    machine = Residency(trace.geometry, Budget(slots=slots), make(policy, parameters=values or {}))
    for event in trace.events:
        run_event(machine, event)
        yield machine.parts[-1].policy, machine


# ---------------------------------------------------------------------------------------------- both forms agree

SETTINGS: dict[str, tuple[str, Values]] = {
    "slotstream's clock": ("clock", {"initial": 1}),
    "libCacheSim's clock": ("clock", {"place": "tail"}),
    "clock, two bits": ("clock", {"ceiling": 3, "initial": 2, "place": "tail"}),
    "clock-lru-k, restless": (
        "clock-lru-k",
        {"adapt_every": 1, "window": 1, "decay_every": 1, "step": 300, "high": 9000},
    ),
    "clock-lru-k, the branch": ("clock-lru-k", {"decay": "halve", "decay_every": 2, "adapt_every": 2, "window": 3}),
    "clock-lru-k, fixed": ("clock-lru-k", {"adapt": False, "bar": 1, "ghosts": 0.5, "ceiling": 3}),
    "libCacheSim's slru": ("slru", {"segments": 4, "protected": 0.75, "fill": "lowest-with-room"}),
    "slru, three segments": ("slru", {"segments": 3, "protected": 0.5}),
    "arc, whole steps": ("arc", {"step": "whole"}),
    "two-q, long": ("two-q", {"a1in": 0.6, "a1out": 2.0}),
    "libCacheSim's s3-fifo": ("s3-fifo", {"fill": "main", "promotion": "go-on", "small": 0.4}),
    "s3-fifo, eager": ("s3-fifo", {"small": 0.5, "threshold": 1, "ceiling": 1}),
    "s3-fifo, everything promoted": ("s3-fifo", {"small": 0.5, "threshold": 0, "promotion": "go-on", "ghosts": 2.0}),
    "sieve, visited by its insert": ("sieve", {"visited": True}),
}


def forms_agree(name: str, seeds: range) -> int:
    """Compare both forms over the cases of these seeds; how many victims that were."""
    policy, values = SETTINGS[name]
    victims = 0
    for seed in seeds:
        case = random_case(seed, policy)
        indexed = outcome(case, policy, values)
        assert indexed == outcome(case, policy, values, form="declarative"), seed
        victims += sum(len(step.victims) for step in indexed if isinstance(step, Step))
    return victims


@pytest.mark.rule("XC-EVICT-002")
@pytest.mark.parametrize("name", SETTINGS)
def test_both_forms_agree_whatever_the_parameters(name: str) -> None:
    assert forms_agree(name, range(2_000, 2_040)) > 200


@pytest.mark.nightly
@pytest.mark.rule("XC-EVICT-002")
@pytest.mark.parametrize("name", SETTINGS)
def test_both_forms_agree_whatever_the_parameters_in_much_more_volume(name: str) -> None:
    assert forms_agree(name, range(20_000, 20_800)) > 4_000


# ---------------------------------------------------------------------------------------------- one policy is another

SAME: dict[str, tuple[str, Values, str, str]] = {
    "SLRU of one segment is LRU": ("slru", {"segments": 1}, "lru", "XC-EVICT-110"),
    "SLRU that protects nothing is LRU": ("slru", {"protected": 0.0, "segments": 3}, "lru", "XC-EVICT-111"),
    "2Q without ghosts is FIFO": ("two-q", {"a1out": 0.0}, "fifo", "XC-EVICT-126"),
    "S3-FIFO without ghosts and promotions is FIFO": (
        "s3-fifo", {"ghosts": 0.0, "threshold": 4, "ceiling": 3}, "fifo", "XC-EVICT-133"),
    "CLOCK-LRU-K that protects nobody is LRU": ("clock-lru-k", {"adapt": False, "bar": 15}, "lru", "XC-EVICT-100"),
    "CLOCK-LRU-K that protects everybody is LRU": ("clock-lru-k", {"adapt": False, "bar": 0}, "lru", "XC-EVICT-100"),
}  # fmt: skip


@pytest.mark.rule("XC-EVICT-100", "XC-EVICT-110", "XC-EVICT-111", "XC-EVICT-126", "XC-EVICT-133")
@pytest.mark.parametrize("law", SAME)
def test_under_every_setting_of_the_machine(law: str) -> None:
    policy, values, other, _ = SAME[law]
    for seed in range(60):
        case = random_case(seed, other)
        assert outcome(case, policy, values) == outcome(case, other)
    assert any(
        outcome(random_case(seed, other), policy) != outcome(random_case(seed, other), other) for seed in range(60)
    )


@pytest.mark.rule("XC-EVICT-090")
def test_clock_without_bits_is_fifo_of_single_keys_and_not_of_batches() -> None:
    for seed in range(40):
        case = attrs.evolve(random_case(seed), settings=Settings())
        assert outcome(case, "clock", {"ceiling": 0}, "sequential") == outcome(case, "fifo", mode="sequential")
    # The hand passes 0, which the event holds, and does not come back to it as soon as FIFO does.
    batch = Case(decode_trace([[0], [1], [2], [0, 3], [4]]), Budget(slots=3), Settings())
    assert outcome(batch, "clock", {"ceiling": 0})[-1].victims == (Key(0, 2),)
    assert outcome(batch, "fifo")[-1].victims == (Key(0, 0),)


@pytest.mark.rule("XC-EVICT-094")
def test_both_places_of_a_new_key_are_one_clock_of_single_keys() -> None:
    for seed in range(40):
        # In slots: where bytes are counted, a miss may free two slots and fill one.
        case = attrs.evolve(random_case(seed), settings=Settings(), budget=Budget(slots=1 + seed % 12))
        for bits in (Values(ceiling=1), Values(ceiling=3, initial=2)):
            slot, tail = (outcome(case, "clock", {**bits, "place": p}, "sequential") for p in ("slot", "tail"))
            assert slot == tail


@pytest.mark.rule("XC-EVICT-115", "XC-EVICT-125", "XC-EVICT-132", "XC-EVICT-140")
@pytest.mark.parametrize("policy", QUEUES)
def test_without_any_hit_every_queue_policy_is_fifo(policy: str) -> None:
    for seed in range(20):
        random = Random(seed)
        keys = random.sample(range(200), 120)
        rows = [keys[start : start + 3] for start in range(0, 120, 3)]
        case = Case(decode_trace(rows, experts=200), Budget(slots=random.randint(3, 60)), Settings())
        assert outcome(case, policy) == outcome(case, "fifo")


# ---------------------------------------------------------------------------------------------- what a batch means

ONE_BY_ONE = ("clock", "sieve", "slru", "two-q", "s3-fifo", "arc")


@pytest.mark.rule("XC-EVICT-146", "XC-EVICT-094")
@pytest.mark.parametrize("policy", ONE_BY_ONE)
def test_an_event_of_newcomers_takes_the_victims_that_they_would_take_one_by_one(policy: str) -> None:
    # Newcomers only: a hit or a ghost comes before all victims of its event. And only where none of them is a victim
    # of another, which no event allows.
    compared = 0
    for seed, trace, slots in plain_traces(80):
        *_, (_, machine) = watched(policy, trace, slots)
        queues: Any = machine.parts[-1].policy
        known = {key for name in GHOSTS.get(policy, ()) for key in getattr(queues, name)} | machine.residents()
        new = [expert for expert in range(trace.geometry.experts) if Key(0, expert) not in known]
        Random(seed).shuffle(new)
        batch, single = machine, deepcopy(machine)
        whole = run_event(batch, Event(0, (tuple(new[:slots]),))) if new else None
        parts = [run_event(single, Event(0, ((expert,),))) for expert in new[:slots]]
        one_by_one = tuple(key for step in parts for key in step.victims)
        if whole is not None and not {Key(0, expert) for expert in new} & set(one_by_one):
            assert whole.victims == one_by_one, seed
            compared += len(one_by_one)
    assert compared > 15


@pytest.mark.rule("XC-EVICT-094")
@pytest.mark.parametrize(("place", "same"), [("slot", True), ("tail", False)])
def test_a_clock_in_a_queue_has_no_such_law(place: str, same: bool) -> None:
    trace = decode_trace([[0], [1], [2], [3], [0], [2], [4, 5], [6], [7]])
    batch, alone = (
        [
            key
            for step in outcome(Case(trace, Budget(slots=4), Settings()), "clock", {"place": place}, mode)
            for key in step.victims
        ]
        for mode in ("event", "sequential")
    )
    assert (batch == alone) == same


# ---------------------------------------------------------------------------------------------- bounds


@pytest.mark.rule("XC-EVICT-118")
@pytest.mark.parametrize("step", ["real", "whole"])
def test_the_lists_of_arc_stay_within_c_and_2c(step: str) -> None:
    moved = set()
    for _, trace, slots in plain_traces(40):
        for policy, machine in watched("arc", trace, slots, {"step": step}):
            t1, t2, b1, b2 = (len(queue) for queue in (policy.t1, policy.t2, policy.b1, policy.b2))
            assert t1 + t2 == len(machine.residents()) <= slots
            assert t1 + b1 <= slots
            assert t1 + t2 + b1 + b2 <= 2 * slots
            assert 0 <= policy.p <= slots
            moved.add(policy.p)
    assert len(moved) > 8


@pytest.mark.rule("XC-EVICT-103", "XC-EVICT-127", "XC-EVICT-147")
@pytest.mark.parametrize("policy", GHOSTS)
def test_no_resident_is_a_ghost_and_ghosts_stay_within_their_size(policy: str) -> None:
    size = {"arc": 1.0, "clock-lru-k": 1.0, "s3-fifo": 0.9, "two-q": 0.5}[policy]
    most = 0
    for _, trace, slots in plain_traces(30):
        for queues, machine in watched(policy, trace, slots):
            for name in GHOSTS[policy]:
                ghosts = getattr(queues, name)
                assert machine.residents().isdisjoint(ghosts)
                assert len(ghosts) <= (2 * slots if name == "b2" else int(slots * size))
                most = max(most, len(ghosts))
    assert most >= 4


@pytest.mark.rule("XC-EVICT-111", "XC-EVICT-112")
def test_a_protected_segment_of_slru_holds_its_part_at_most_and_nothing_that_was_not_hit() -> None:
    full = 0
    for _, trace, slots in plain_traces(30):
        part = int(slots * 0.6 / 2)
        hit: set[Key] = set()
        machine = Residency(
            trace.geometry, Budget(slots=slots), make("slru", parameters={"segments": 3, "protected": 0.6})
        )
        for event in trace.events:
            step = run_event(machine, event)
            hit = (hit | set(step.hits)) - set(step.victims)
            policy: Any = machine.parts[-1].policy
            for upper in policy.lists[1:]:
                assert len(upper) <= part
                assert hit.issuperset(upper)
                full += len(upper) == part > 0
    assert full > 100


@pytest.mark.rule("XC-EVICT-133", "XC-EVICT-135")
def test_one_hit_wonders_never_enter_the_main_queue_of_s3_fifo() -> None:
    seen = 0
    for _, trace, slots in plain_traces(40):
        hits: dict[Key, int] = {}
        left: set[Key] = set()
        machine = Residency(trace.geometry, Budget(slots=slots), make("s3-fifo", parameters={"small": 0.4}))
        for event in trace.events:
            step = run_event(machine, event)
            for key in step.hits:
                hits[key] += 1
            left |= set(step.victims)
            hits |= dict.fromkeys(step.misses, 0)
            policy: Any = machine.parts[-1].policy
            assert all(hits[key] >= 2 or key in left for key in policy.queue_main)
            seen += len(policy.queue_main)
    assert seen > 100


@pytest.mark.rule("XC-EVICT-141")
def test_the_queue_of_sieve_is_always_in_order_of_insertion() -> None:
    for _, trace, slots in plain_traces(30):
        order: list[Key] = []
        machine = Residency(trace.geometry, Budget(slots=slots), make("sieve"))
        for event in trace.events:
            step = run_event(machine, event)
            order = [key for key in [*order, *step.misses] if key not in step.victims]
            policy: Any = machine.parts[-1].policy
            assert [*policy.passed, *policy.ahead] == order


@pytest.mark.rule("XC-EVICT-101", "XC-EVICT-102", "XC-EVICT-104")
def test_frequencies_and_the_bar_of_clock_lru_k_stay_in_bounds() -> None:
    bars = set()
    for _, trace, slots in plain_traces(30):
        before = 2
        for policy, _ in watched("clock-lru-k", trace, slots, {"ceiling": 5, "adapt_every": 2, "window": 4}):
            assert all(1 <= level.frequency <= 5 for level in policy.place.values())
            assert all(1 <= frequency <= 5 for frequency in policy.left_with.values())
            assert 1 <= policy.k.value <= 4
            bars.add(policy.k.value)
            before = policy.k.value
        assert before in bars
    assert len(bars) >= 3


# ---------------------------------------------------------------------------------------------- beside events


def small(policy: str, form: Any, slots: int = 4, values: Values | None = None) -> Residency:
    """A machine of one layer."""
    return Residency(Geometry(1, 64, 8), Budget(slots=slots), make(policy, form, (), values or {}))


def play(cache: Residency, *ids: int) -> list[int]:
    """Serve single keys; the victims."""
    return [expert for number in ids for expert in experts(run_event(cache, Event(0, ((number,),))).victims)]


def ghosts(cache: Residency, policy: str) -> set[int]:
    """Whom the policy remembers."""
    queues: Any = cache.parts[-1].policy
    return {key.expert for name in GHOSTS[policy] for key in getattr(queues, name)}


@FORMS
@pytest.mark.rule("XC-EVICT-147", "XC-RES-016")
@pytest.mark.parametrize("policy", GHOSTS)
def test_a_failed_read_leaves_no_ghost_and_its_victim_does(policy: str, form: Any) -> None:
    cache = small(policy, form)
    play(cache, 0, 0, 1, 2, 3)
    selection = cache.select(Event(0, ((9,),)))
    cache.fail(Key(0, 9))
    cache.release(selection.ticket)
    assert ghosts(cache, policy) == set(experts(selection.victims)) != set()


@FORMS
@pytest.mark.rule("XC-EVICT-147", "XC-RES-020", "XC-RES-021")
@pytest.mark.parametrize("policy", GHOSTS)
@pytest.mark.parametrize("way", ["seed", "prefetch"])
def test_a_seed_or_a_prefetch_of_a_ghost_enters_as_new(policy: str, form: Any, way: str) -> None:
    known, fresh = small(policy, form), small(policy, form)
    for cache, gone in ((known, 1), (fresh, 7)):
        play(cache, gone, 0, 0, 2, 3, 4)
        assert ghosts(cache, policy) == {gone}
        selection = cache.select(Event(0, ((5,),)))
        cache.fail(Key(0, 5))  # which frees a slot
        cache.release(selection.ticket)
        assert (
            (cache.seed([Key(0, 1)]).reads == (Key(0, 1),)) if way == "seed" else cache.prefetch(Key(0, 1)) == "started"
        )
        cache.complete(Key(0, 1))
    assert 1 not in ghosts(known, policy)
    assert play(known, 10, 11, 12, 13) == play(fresh, 10, 11, 12, 13)


@FORMS
@pytest.mark.rule("XC-EVICT-148", "XC-RES-022")
@pytest.mark.parametrize("policy", GHOSTS)
def test_a_reset_of_history_forgets_every_ghost(policy: str, form: Any) -> None:
    cache = small(policy, form)
    play(cache, 0, 0, 1, 2, 3, 4)
    assert ghosts(cache, policy)
    cache.reset("history")
    assert not ghosts(cache, policy)


AFTER: dict[str, tuple[Callable[[Residency], object], list[int], list[int]]] = {
    "clock": (lambda cache: play(cache, 0, 1, 2, 3, 0), [1, 2], [0, 1]),
    "sieve": (lambda cache: play(cache, 0, 1, 2, 3, 0), [1, 2], [0, 1]),
    "s3-fifo": (lambda cache: play(cache, 0, 1, 2, 3, 0, 0), [1, 2], [0, 1]),
    "clock-lru-k": (lambda cache: play(cache, 0, 0, 0, 1, 2, 3), [1, 2], [0, 1]),
    "slru": (lambda cache: play(cache, 0, 1, 2, 3, 0), [1, 2], [1, 2]),
    "arc": (lambda cache: play(cache, 0, 1, 2, 3, 0), [1, 2], [1, 2]),
    "two-q": (lambda cache: play(cache, 0, 1, 2, 3, 4, 0), [2, 3], [2, 3]),
}
"""What is played before, and who leaves afterwards: without and with a reset of history between."""


@FORMS
@pytest.mark.rule("XC-EVICT-148", "XC-RES-022")
@pytest.mark.parametrize("policy", AFTER)
def test_a_reset_of_history_takes_counts_and_leaves_places(policy: str, form: Any) -> None:
    before, kept, forgotten = AFTER[policy]
    for reset, gone in ((False, kept), (True, forgotten)):
        cache = small(policy, form)
        before(cache)
        if reset:
            cache.reset("history")
        assert play(cache, 20, 21) == gone


@FORMS
@pytest.mark.rule("XC-EVICT-149", "XC-RES-011")
def test_sizes_follow_a_resize_at_once(form: Any) -> None:
    for policy, most in (("arc", 4), ("clock-lru-k", 2), ("s3-fifo", 1), ("two-q", 1)):
        cache = small(policy, form, slots=8)
        play(cache, *range(16))
        assert len(ghosts(cache, policy)) > most or policy == "arc"
        cache.resize(Budget(slots=2))
        assert len(ghosts(cache, policy)) <= most
    cache = small("slru", form, slots=10, values={"protected": 0.5})
    play(cache, *range(5), *range(5))
    cache.resize(Budget(slots=4))
    queues: Any = cache.parts[-1].policy
    assert [experts(list(keys)) for keys in queues.lists] == [[1, 2], [3, 4]]


@FORMS
@pytest.mark.rule("XC-EVICT-149")
def test_after_a_shrink_and_a_growth_clock_has_as_many_slots_as_records_fit(form: Any) -> None:
    cache = small("clock", form, slots=6)
    play(cache, *range(6), 0)
    assert experts(cache.resize(Budget(slots=3))) == [1, 2, 3]
    queues: Any = cache.parts[-1].policy
    assert len(queues.ring) == 3
    cache.resize(Budget(slots=4))
    assert play(cache, 6, 7, 8) == [4, 5]
    assert len(queues.ring) == 4


@FORMS
@pytest.mark.rule("XC-RES-024")
@pytest.mark.parametrize("policy", QUEUES)
def test_when_everything_is_held_nothing_moves(policy: str, form: Any) -> None:
    cache = small(policy, form)
    play(cache, 0, 0, 1, 2, 2, 3)
    twin = deepcopy(cache)
    held = cache.residents()
    assert cache.parts[-1].policy.victim(held, Key(0, 9)) is None
    assert play(cache, 10, 11, 12, 13, 14) == play(twin, 10, 11, 12, 13, 14)


@FORMS
@pytest.mark.rule("XC-EVICT-002")
@pytest.mark.parametrize("policy", QUEUES)
def test_under_scope_layer_each_layer_has_queues_of_its_own(policy: str, form: Any) -> None:
    whole, alone = Geometry(3, 9, 2), 0
    for seed in range(6):
        trace = random_trace(Random(seed), whole, passes=40, phases=("decode",))
        layered = Residency(whole, Budget(slots=12), make(policy, form), Settings(scope="layer"))
        single = Residency(whole, Budget(slots=4), make(policy, form))
        for event in trace.events:
            step = run_event(layered, event)
            if event.layer == 1:
                assert step == run_event(single, event)
                alone += len(step.victims)
    assert alone > 50


@pytest.mark.rule("XC-RES-025", "XC-EVICT-146")
@pytest.mark.parametrize(
    ("policy", "same"),
    [("slru", True), *((policy, False) for policy in ("arc", "clock", "clock-lru-k", "s3-fifo", "sieve", "two-q"))],
)
def test_room_trim_shows_the_queues_an_event_that_is_in_them_already(policy: str, same: bool) -> None:
    # Under an order of the keys alone, as LRU's, loading before or after the eviction changes the peaks only.
    different = 0
    for seed in range(120):
        case = random_case(seed, policy, room="reserve")
        trim = attrs.evolve(case, settings=attrs.evolve(case.settings, room="trim"))
        different += outcome(case, policy) != outcome(trim, policy)
    assert (different == 0) == same


@pytest.mark.rule("XC-EVICT-002")
@pytest.mark.parametrize(
    ("policy", "events", "slots", "settings", "prefetch"),
    [
        pytest.param(
            "s3-fifo", [[1], [0], [2], [0], [1], [1], [3], [3], [2]], 2, Settings(admission="cold-slots:idle=2"), None,
            id="a ghost of s3-fifo that admission declines is a ghost no more",
        ),
        pytest.param(
            "two-q:a1out=2.0:a1in=0.25", [[1], [0], [0], [3], [1], [1], [0]], 2,
            Settings(admission="cold-slots:idle=3"), None, id="so is one of two-q",
        ),
        pytest.param(
            "clock-lru-k", [[1, 2], [4, 0], [1, 4], [1, 3], [0, 2]], 3, Settings(room="trim"),
            Prefetch("oracle", home="slot", displace="any", latency=2, stamps=False),
            id="a guess without a stamp goes on from its ghost when demand asks for it",
        ),
    ],
)  # fmt: skip
def test_both_forms_agree_where_they_once_did_not(
    policy: str, events: list[list[int]], slots: int, settings: Settings, prefetch: Prefetch | None
) -> None:
    spelled = parse(policy)
    found = [
        list(Replay(decode_trace(events), spelled.card, Budget(slots=slots), settings, form=form,
                    parameters=spelled.parameters, prefetch=prefetch))
        for form in get_args(Form)
    ]  # fmt: skip
    assert found[0] == found[1]
