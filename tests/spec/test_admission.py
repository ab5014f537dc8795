"""Admission: which misses are kept, beside every eviction policy (XC-ADMIT-001 to 012)."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import attrs
import pytest

from expertcache_spec.admission import ADMISSIONS, admission, make
from expertcache_spec.admission.ages import Ages
from expertcache_spec.admission.rules import Admission, Hysteresis
from expertcache_spec.errors import ExpertCacheError, UnknownName
from expertcache_spec.eviction import POLICIES
from expertcache_spec.eviction import make as policies
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import Replay, replay, run_by_parts, run_event
from expertcache_spec.residency import Residency, Settings, Step, audit
from expertcache_spec.trace import Event, decode_trace

from .running import experts, outcomes, steps
from .settings_of_policies import SUBJECTS
from .strategies import Case, random_case, random_trace

SAMPLES = (
    "refusable", "sightings", "sightings:n=3", "sightings:n=1:again=4", "hysteresis", "hysteresis:divisor=2:margin=0",
    "hysteresis:margin=1:halve=5", "cold-slots:idle=2", "cold-slots:idle=0", "free-slots", "never", "whole-events",
)  # fmt: skip


def defined(policy: str, text: str, room: str) -> bool:
    """Whether the specification defines that admission there."""
    card, _ = admission(text)
    return room in card.rooms and (SUBJECTS[policy].can_refuse or not card.needs)


def with_admission(case: Case, text: str) -> Case:
    """The case under another admission."""
    return attrs.evolve(case, settings=attrs.evolve(case.settings, admission=text))


def some(policy: str, text: str, seeds: range, **fixed: str) -> Iterator[Case]:
    """Random cases under that admission, in the rooms that it is defined for."""
    rooms = [room for room in ("reserve", "trim", "retain") if defined(policy, text, room)]
    for seed in seeds if rooms else ():
        room = fixed.get("room", rooms[seed % len(rooms)])
        yield with_admission(random_case(seed, policy, **{**fixed, "room": room, "admission": "always"}), text)


# ---------------------------------------------------------------------------------------------- every combination


@pytest.mark.rule("XC-ADMIT-002", "XC-ADMIT-010", "XC-METRIC-001", "XC-METRIC-003", "XC-EVICT-002")
@pytest.mark.parametrize("policy", POLICIES)
def test_every_admission_goes_with_every_policy(policy: str) -> None:
    assert refusals(policy, range(2)) > 20


@pytest.mark.nightly
@pytest.mark.rule("XC-ADMIT-002", "XC-ADMIT-010", "XC-METRIC-001", "XC-METRIC-003", "XC-EVICT-002")
@pytest.mark.parametrize("policy", SUBJECTS)
def test_every_admission_goes_with_every_policy_in_much_more_volume(policy: str) -> None:
    assert refusals(policy, range(1000, 1120)) > 1000


def refusals(policy: str, seeds: range) -> int:
    """How often a record was declined; both forms of the policy must agree about everything."""
    refused = 0
    for text in SAMPLES:
        for case in some(policy, text, seeds):
            found, counters, residents = outcomes(case, policy)
            assert (found, counters, residents) == outcomes(case, policy, "declarative"), (text, case)
            total = counters.total()
            assert total.admissions == total.misses - total.refused
            assert total.reads == total.misses + total.bypassed
            assert all(set(step.refused) <= set(step.misses) for step in found if isinstance(step, Step))
            refused += total.refused
    return refused


def whole_run(case: Case, policy: str) -> tuple[list[Step | str], frozenset[Key], int]:
    found, counters, residents = outcomes(case, policy)
    return found, residents, counters.total().bytes_read


@pytest.mark.rule("XC-ADMIT-004", "XC-ADMIT-006", "XC-RES-028")
@pytest.mark.parametrize("policy", ["lru", "lfu", "belady"])
@pytest.mark.parametrize("text", ["sightings:n=1", "cold-slots:idle=0"])
def test_sightings_of_one_and_slots_that_are_always_cold_are_admission_always(policy: str, text: str) -> None:
    for case in some(policy, text, range(25)):
        assert whole_run(case, policy) == whole_run(with_admission(case, "always"), policy)


@pytest.mark.rule("XC-ADMIT-009", "XC-RES-028")
@pytest.mark.parametrize("policy", ["lru", "lfu", "belady"])
def test_whole_events_is_admission_always_wherever_every_event_fits(policy: str) -> None:
    overflowed = 0
    for case in some(policy, "whole-events", range(40)):
        always = outcomes(with_admission(case, "always"), policy)[0]
        if all(isinstance(step, Step) and not step.bypassed for step in always) and case.settings.overflow == "error":
            assert outcomes(case, policy)[0] == always
        else:
            overflowed += 1
    assert 0 < overflowed < 35


@pytest.mark.rule("XC-ADMIT-001")
@pytest.mark.parametrize("text", [text for text in SAMPLES if text != "whole-events"])
@pytest.mark.parametrize("policy", ["fifo", "lru", "lfu", "lfu-reset", "belady"])
def test_until_the_first_record_is_declined_nothing_differs_from_admission_always(policy: str, text: str) -> None:
    declined = 0
    for case in some(policy, text, range(12), overflow="bypass", no_victim="bypass"):
        always = steps(case.trace, policy, case.budget, attrs.evolve(case.settings, admission="always"))
        for mine, other in zip(steps(case.trace, policy, case.budget, case.settings), always, strict=True):
            if mine.refused and case.settings.room != "retain":
                declined += 1
                break
            assert mine == other or case.settings.room == "retain"
    assert declined or text in ("cold-slots:idle=0", "refusable")


class Watching(Admission):
    """Asks another admission, and remembers what it was shown."""

    def __init__(self, inner: Admission, machine: Residency) -> None:
        self.inner, self.machine = inner, machine
        self.shown: list[tuple[Key, Key, bool]] = []

    def wants(self, keys):  # type: ignore[no-untyped-def]
        return self.inner.wants(keys)

    def begin(self, event: Event) -> None:
        self.inner.begin(event)
        self.held = {key for key in event.keys if key in self.machine.residents()}

    def takes(self, policy, incoming: Key, victim: Key) -> bool:  # type: ignore[no-untyped-def]
        going = {gone for _, gone, took in self.shown if took and gone in self.machine.residents()}
        assert victim == policy.victim(self.held | going | set(self.machine.flights), incoming)
        taken = self.inner.takes(policy, incoming, victim)
        self.shown.append((incoming, victim, taken))
        return taken

    def left(self, key: Key) -> None:
        self.inner.left(key)


@pytest.mark.rule("XC-ADMIT-001")
@pytest.mark.parametrize("policy", ["fifo", "lru", "lfu", "lfu-reset"])
@pytest.mark.parametrize("text", ["sightings", "hysteresis:margin=0", "cold-slots:idle=2", "free-slots"])
def test_the_victim_is_the_policys_and_stays_when_the_record_is_declined(policy: str, text: str) -> None:
    shown = 0
    for seed in range(15):
        random = Random(seed)
        trace = random_trace(random, Geometry(2, 8, 3), passes=10, phases=("decode",))
        cache = Residency(
            trace.geometry, Budget(slots=random.randint(3, 8)), policies(policy), Settings(admission=text)
        )
        cache.admission = watching = Watching(make(text), cache)
        for event in trace.events:
            before, watching.shown = cache.residents(), []
            step = run_by_parts(cache, event)
            assert list(step.victims) == [victim for _, victim, took in watching.shown if took]
            assert {victim for _, victim, took in watching.shown if not took} - set(step.victims) <= cache.residents()
            assert cache.residents() == (before - set(step.victims)) | (set(step.misses) - set(step.refused))
            assert audit(cache) == []
            shown += len(watching.shown)
    assert shown > 50


@pytest.mark.rule("XC-ADMIT-002", "XC-METRIC-001")
def test_admission_changes_neither_what_is_looked_up_nor_what_is_asked_for_the_first_time() -> None:
    for seed in range(12):
        case = random_case(seed, "lru", room="reserve", overflow="bypass", admission="always")
        totals = [
            replay(case.trace, "lru", case.budget, with_admission(case, text).settings).total
            for text in ("always", *(text for text in SAMPLES if defined("lru", text, "reserve")))
        ]
        assert len({(total.selections, total.lookups) for total in totals}) == 1
        kept_whole = [total for total in totals if not total.bypassed]
        assert len({total.compulsory for total in kept_whole}) <= 1


# ---------------------------------------------------------------------------------------------- each admission


def told(events: list[list[int]], slots: int, text: str, policy: str = "lru") -> list[tuple[list[int], list[int]]]:
    """Refused and victims of each step."""
    found = steps(decode_trace(events), policy, Budget(slots=slots), Settings(admission=text))
    return [(experts(step.refused), experts(step.victims)) for step in found]


@pytest.mark.rule("XC-ADMIT-004")
def test_a_record_is_kept_at_its_second_sighting_and_may_need_more_to_return() -> None:
    events = [[0], [0], [1], [1], [0], [0], [0]]
    assert told(events, 1, "sightings") == [([0], []), ([], []), ([1], []), ([], [0]), ([0], []), ([], [1]), ([], [])]
    again = told(events, 1, "sightings:again=3")
    assert again[4:] == [([0], []), ([0], []), ([], [1])]


@pytest.mark.rule("XC-ADMIT-004")
def test_sightings_while_a_record_is_resident_do_not_count_once_it_has_left() -> None:
    events = [[0], [0], [0], [0], [1], [1], [0], [0]]
    assert [refused for refused, _ in told(events, 1, "sightings")] == [[0], [], [], [], [1], [], [0], []]


@pytest.mark.rule("XC-ADMIT-004")
def test_a_read_that_fails_costs_no_sighting() -> None:
    cache = Residency(Geometry(1, 4, 1), Budget(slots=2), policies("lru"), Settings(admission="sightings"))
    event = Event(0, ((0,),))
    run_event(cache, event)
    selection = cache.select(event)
    cache.fail(selection.reads[0])
    cache.release(selection.ticket)
    assert cache.select(event).reads == (Key(0, 0),)


@pytest.mark.rule("XC-ADMIT-005")
@pytest.mark.parametrize(("cold", "needed"), [(1, 6), (3, 8), (4, 10), (7, 13), (8, 15), (100, 130)])
def test_hot_must_exceed_cold_and_a_quarter_and_four(cold: int, needed: int) -> None:
    events = [[0]] * cold + [[1]] * needed
    refused = [bool(gone) for gone, _ in told(events, 1, "hysteresis")]
    assert refused == [False] * cold + [True] * (needed - 1) + [False]


@pytest.mark.rule("XC-ADMIT-005")
def test_free_room_needs_no_heat_and_halving_cools_everything() -> None:
    assert told([[0], [1]], 2, "hysteresis") == [([], []), ([], [])]
    events = [[0]] * 8 + [[1]] * 7
    kept = [not refused for refused, _ in told(events, 1, "hysteresis:halve=8")]
    # After eight events the heat of 0 is 4: 5 of hot would be 9 > 4 + 1 + 4, but 1 is asked for seven times only.
    assert kept == [True] * 8 + [False] * 7
    assert not told([*events, [1], [1], [1]], 1, "hysteresis:halve=8:margin=2")[-1][0]


@pytest.mark.rule("XC-ADMIT-005")
@pytest.mark.parametrize(("halve", "heats"), [(0, [1, 2, 3, 4, 5, 6, 7]), (1, [1] * 7), (3, [1, 2, 3, 2, 3, 4, 3])])
def test_heat_is_halved_after_so_many_events_before_the_next_counts(halve: int, heats: list[int]) -> None:
    heat, found = Hysteresis(halve=halve), list[int]()
    for _ in heats:
        heat.begin(Event(0, ((0,),)))
        found.append(heat.heat[Key(0, 0)])
    assert found == heats


@pytest.mark.rule("XC-ADMIT-006")
def test_what_came_without_demand_is_as_fresh_as_the_latest_event_of_its_layer() -> None:
    ages, guess = Ages(), Key(0, 7)
    ages.asked(Event(0, ((0,),)))
    ages.inserted([guess])
    assert (ages.idle(guess), ages.is_stale(guess, 1)) == (0, False)
    ages.asked(Event(1, ((0,),)))
    assert ages.idle(guess) == 0
    ages.asked(Event(0, ((1,),)))
    assert (ages.idle(guess), ages.is_stale(guess, 1)) == (1, True)


@pytest.mark.rule("XC-ADMIT-006")
def test_71_a_guard_protects_warm_victims_only() -> None:
    # bugs 70, 71: both directions. 0 has not been asked for by the last three events of the layer, 1 by the last.
    assert told([[0], [1], [1], [1], [2]], 2, "cold-slots:idle=3")[-1] == ([], [0])
    assert told([[0], [1], [0], [1], [2]], 2, "cold-slots:idle=3")[-1] == ([2], [])


@pytest.mark.rule("XC-ADMIT-006")
def test_a_layer_that_is_not_asked_does_not_age() -> None:
    geometry = Geometry(2, 4, 1)
    cache = Residency(geometry, Budget(slots=1), policies("lru"), Settings(admission="cold-slots:idle=1"))
    run_event(cache, Event(1, ((0,),)))
    assert [run_event(cache, Event(0, ((e,),))).refused for e in (0, 1)] == [(Key(0, 0),), (Key(0, 1),)]
    assert run_event(cache, Event(1, ((1,),))).victims == (Key(1, 0),)
    assert run_event(cache, Event(0, ((2,),))).refused == (Key(0, 2),)


@pytest.mark.rule("XC-ADMIT-007", "XC-ADMIT-008")
@pytest.mark.parametrize("policy", ["lru", "lfu", "belady"])
def test_free_slots_evicts_nothing_and_never_keeps_nothing(policy: str) -> None:
    for text in ("free-slots", "never"):
        for case in some(policy, text, range(30)):
            _, counters, residents = outcomes(case, policy)
            total = counters.total()
            assert total.evictions == total.reloads == 0
            assert len(residents) == total.admissions
            assert text == "free-slots" or residents == frozenset()


@pytest.mark.rule("XC-ADMIT-008", "XC-ADMIT-010", "XC-RES-020")
def test_under_never_a_profile_is_all_there_is() -> None:
    cache = Residency(Geometry(1, 8, 2), Budget(slots=2), policies("lru"), Settings(admission="never"))
    for key in cache.seed([Key(0, 1), Key(0, 2)]).reads:
        cache.complete(key)
    found = [run_event(cache, Event(0, (row,), pass_index=n)) for n, row in enumerate([(1, 3), (3, 4), (2, 3)])]
    assert [experts(step.hits) for step in found] == [[1], [], [2]]
    assert cache.residents() == {Key(0, 1), Key(0, 2)}


@pytest.mark.rule("XC-ADMIT-010")
def test_seeds_and_prefetches_pass_admission_by() -> None:
    for text in ("sightings:n=9", "free-slots", "never"):
        cache = Residency(Geometry(1, 8, 2), Budget(slots=2), policies("lru"), Settings(admission=text))
        assert cache.seed([Key(0, 1)]).reads == (Key(0, 1),)
        assert cache.prefetch(Key(0, 2)) == "started"


@pytest.mark.rule("XC-ADMIT-009")
def test_an_event_that_does_not_fit_is_bypassed_whole_and_its_hits_are_hits() -> None:
    trace = decode_trace([[0, 1], [1, 2, 3, 4], [0, 1]])
    bypass = Settings(overflow="bypass")
    part, whole = (
        steps(trace, "lru", Budget(slots=3), s) for s in (bypass, attrs.evolve(bypass, admission="whole-events"))
    )
    assert [experts(step.hits) for step in whole] == [[], [1], [0, 1]]
    assert (experts(part[1].bypassed), experts(whole[1].bypassed)) == ([4], [2, 3, 4])
    assert part[2].hits == (Key(0, 1),)
    for overflow in ("error", "waves"):
        settings = Settings(overflow=overflow, admission="whole-events")  # type: ignore[arg-type]
        assert steps(trace, "lru", Budget(slots=3), settings) == whole


# ---------------------------------------------------------------------------------------------- laws


@pytest.mark.rule("XC-ADMIT-001", "XC-EVICT-050")
def test_no_admission_reads_less_than_belady_with_bypass() -> None:
    for seed in range(8):
        random = Random(seed)
        trace = random_trace(random, Geometry(2, 6, 2), passes=8, phases=("decode",))
        slots = random.randint(2, 7)
        best = replay(trace, "belady", Budget(slots=slots), Settings(room="retain")).total.reads
        for text in SAMPLES:
            for policy in ("lru", "lfu", "belady"):
                if defined(policy, text, "reserve"):
                    assert best <= replay(trace, policy, Budget(slots=slots), Settings(admission=text)).total.reads


def reads(events: list[list[int]], slots: int, text: str, policy: str) -> int:
    return replay(decode_trace(events), policy, Budget(slots=slots), Settings(admission=text)).total.reads


@pytest.mark.rule("XC-ADMIT-001", "XC-ADMIT-004", "XC-ADMIT-005", "XC-ADMIT-007")
@pytest.mark.parametrize(
    ("better", "worse", "policy", "events", "counts"),
    [
        pytest.param("sightings", "always", "lru", [[0], [0], [0]], (2, 1), id="fewer admissions, fewer reads"),
        pytest.param("always", "sightings", "lru", [[0], [1], [0], [2], [0]], (5, 4), id="nor more reads"),
        pytest.param("sightings:n=3", "sightings", "lru", [[0], [0], [0]], (3, 2), id="more sightings, fewer reads"),
        pytest.param("always", "free-slots", "belady", [[0], [1], [0]], (3, 2), id="forced Belady is below all"),
        pytest.param("free-slots", "always", "belady", [[0], [1], [1], [1]], (4, 2), id="nor above all"),
        pytest.param(
            "refusable", "hysteresis:margin=0", "belady", [[0], [1, 2], [0, 2], [1, 2], [0, 2]], (6, 5),
            id="refusable Belady is below all",
        ),
    ],
)  # fmt: skip
def test_tempting_laws_that_are_false(
    better: str, worse: str, policy: str, events: list[list[int]], counts: tuple[int, int]
) -> None:
    # The first admission reads more than the second, although the name of the case says that it never does.
    slots = max(map(len, events))
    found = reads(events, slots, better, policy), reads(events, slots, worse, policy)
    assert found == counts
    assert found[0] > found[1]


# ---------------------------------------------------------------------------------------------- names, resets


@pytest.mark.rule("XC-ADMIT-011", "XC-EVICT-001")
@pytest.mark.parametrize(
    "text", ["lur", "", "sightings:n", "sightings:n=0", "sightings:m=2", "sightings:n=2:n=3", "sightings:n=-1",
             "hysteresis:divisor=0", "free-slots:n=1", "sightings:n=2.5", "sightings:n=٣"],
)  # fmt: skip
def test_an_admission_that_does_not_exist_is_an_error(text: str) -> None:
    with pytest.raises(UnknownName, match="Cure: "):
        Settings(admission=text)


@pytest.mark.rule("XC-ADMIT-011")
def test_an_admission_has_one_spelling() -> None:
    assert Settings(admission="sightings:again=0:n=3").admission == "sightings:n=3"
    assert Settings(admission="hysteresis:margin=4") == Settings(admission="hysteresis")


@pytest.mark.rule("XC-ADMIT-011", "XC-ADMIT-003")
@pytest.mark.parametrize("name", ADMISSIONS)
@pytest.mark.parametrize("room", ["reserve", "trim", "retain"])
@pytest.mark.parametrize("policy", ["lru", "belady"])
def test_an_admission_is_refused_where_it_is_undefined(name: str, room: str, policy: str) -> None:
    trace = decode_trace([[0], [1]])
    settings = Settings(admission=name, room=room)  # type: ignore[arg-type]
    if defined(policy, name, room):
        assert Replay(trace, policy, Budget(slots=1), settings).machine.settings.admission == name
    else:
        with pytest.raises(UnknownName, match=f"room {room}|cannot refuse"):
            Replay(trace, policy, Budget(slots=1), settings)


@pytest.mark.rule("XC-ADMIT-012", "XC-RES-022")
@pytest.mark.parametrize("text", ["sightings", "hysteresis:margin=0", "cold-slots:idle=3"])
@pytest.mark.parametrize("forget", ["history", "contents", "rebind"])
def test_what_an_admission_has_counted_is_history(text: str, forget: str) -> None:
    def machine() -> Residency:
        return Residency(Geometry(1, 4, 1), Budget(slots=1), policies("lru"), Settings(admission=text))

    cache = machine()
    for number, expert in enumerate([0, 0, 1, 1, 1]):
        run_event(cache, Event(0, ((expert,),), pass_index=number))
    if forget == "rebind":
        cache.rebind("another")
    else:
        cache.reset(forget)  # type: ignore[arg-type]
    learned = attrs.asdict(cache.admission)  # type: ignore[call-overload]
    assert learned == attrs.asdict(machine().admission)  # type: ignore[call-overload]


@pytest.mark.rule("XC-ADMIT-002", "XC-RES-012")
def test_a_refusal_of_the_event_counts_no_sighting() -> None:
    cache = Residency(Geometry(1, 8, 4), Budget(slots=2), policies("lru"), Settings(admission="sightings"))
    wide = Event(0, ((0, 1, 2),))
    assert run_event(cache, wide).refused == wide.keys
    for _ in range(3):
        with pytest.raises(ExpertCacheError):
            cache.select(wide)
    assert cache.admission.counts == dict.fromkeys(wide.keys, 1)  # type: ignore[attr-defined]


@pytest.mark.rule("XC-ADMIT-011", "XC-REPLAY-002")
def test_a_result_under_belady_says_that_it_is_no_optimum() -> None:
    found = replay(decode_trace([[0], [1]]), "belady", Budget(slots=1), Settings(admission="sightings:n=3"))
    assert found.manifest.optimum == "belady, admission sightings:n=3, per event: no optimum"
    assert found.manifest.settings.admission == "sightings:n=3"
