"""The queue policies: vectors by hand, clause by clause, in both forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from expertcache_spec.eviction import Value, make
from expertcache_spec.eviction.classical.bar import Bar
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.residency import Residency, Settings
from expertcache_spec.trace import Event

from .running import experts, serve

FORMS = pytest.mark.parametrize("form", ["indexed", "declarative"])
Values = dict[str, Value]


def machine(
    policy: str, slots: int, form: Any = "indexed", parameters: Values | None = None, **settings: Any
) -> Residency:
    """A machine of one layer with 64 experts."""
    found = Residency(Geometry(1, 64, 8), Budget(slots=slots), make(policy, form, (), parameters), Settings(**settings))
    assert found.parts[-1].policy.name in (policy, "")
    return found


def play(cache: Residency, *rows: int | Sequence[int]) -> list[int]:
    """Serve one event for each row, a bare number being a row of one; every victim in order."""
    gone: list[int] = []
    for row in rows:
        keys = (row,) if isinstance(row, int) else tuple(row)
        gone += experts(serve(cache, Event(0, (keys,))).victims)
    return gone


def residents(cache: Residency) -> list[int]:
    """Who is resident, in order of number."""
    return sorted(experts(list(cache.residents())))


# ---------------------------------------------------------------------------------------------- clock


@FORMS
@pytest.mark.rule("XC-EVICT-090", "XC-EVICT-091", "XC-EVICT-092")
def test_clock_gives_what_was_hit_one_chance_and_goes_on_from_there(form: Any) -> None:
    cache = machine("clock", 3, form)
    assert play(cache, 0, 1, 2, 0, 0, 3) == [1]  # 0 pays its one bit; 3 takes the slot of 1; the hand is at 2
    assert play(cache, 4) == [2]
    assert play(cache, 5) == [0]  # it has nothing left to pay with


@FORMS
@pytest.mark.rule("XC-EVICT-090", "XC-EVICT-091")
def test_two_bits_of_clock_are_worth_three_turns(form: Any) -> None:
    cache = machine("clock", 2, form, {"ceiling": 3})
    assert play(cache, 0, 1, 0, 0, 0, 0, 0, 2, 3, 4, 5) == [1, 2, 3, 0]


@FORMS
@pytest.mark.rule("XC-EVICT-093")
def test_clock_passes_a_held_key_which_keeps_its_count(form: Any) -> None:
    cache = machine("clock", 3, form)
    play(cache, 0, 1, 2, 0)
    cache.pin(Key(0, 0))
    assert play(cache, 3, 4, 5) == [1, 2, 3]  # twice past 0
    cache.unpin(Key(0, 0))
    assert play(cache, 6, 7, 8, 9) == [4, 5, 6, 0]  # 0 could still pay, once


@FORMS
@pytest.mark.rule("XC-EVICT-094")
def test_an_insert_of_clock_sets_the_initial_count(form: Any) -> None:
    # At the last event 1, hit once, has paid with that hit; 3, never hit, pays with its insert or cannot.
    assert play(machine("clock", 3, form, {"initial": 1}), 0, 1, 2, 3, 1, 4, 5) == [0, 2, 1]
    assert play(machine("clock", 3, form), 0, 1, 2, 3, 1, 4, 5) == [0, 2, 3]
    assert play(machine("clock", 2, form, {"initial": 9, "ceiling": 9}), 0, 1, 2) == [0]


@FORMS
@pytest.mark.rule("XC-EVICT-094")
@pytest.mark.parametrize(("place", "gone"), [("slot", [0, 4, 2, 5]), ("tail", [0, 2, 4, 5])])
def test_in_a_batch_the_place_of_a_new_key_of_clock_matters(form: Any, place: str, gone: list[int]) -> None:
    # The hand passes 0, takes 1, passes 2 and takes 3. In slots 4 is now between 0 and 2; in a queue it is behind both.
    cache = machine("clock", 4, form, {"place": place})
    assert play(cache, 0, 1, 2, 3, 0, 2, [4, 5]) == [1, 3]
    assert play(cache, 6, 7, 8, 9) == gone


# ---------------------------------------------------------------------------------------------- clock-lru-k

FIXED: Values = {"adapt": False, "decay_every": 100}


@FORMS
@pytest.mark.rule("XC-EVICT-100", "XC-EVICT-101")
def test_clock_lru_k_protects_what_was_used_more_than_k_times(form: Any) -> None:
    cache = machine("clock-lru-k", 3, form, FIXED)
    assert play(cache, 0, 0, 0, 1, 1, 2, 3, 4) == [1, 2]  # 0 was used three times; 1 twice, which is k
    for expert in (3, 4):
        play(cache, expert, expert)
    assert play(cache, 5) == [0]  # all are above the bar: the least recent of all


@FORMS
@pytest.mark.rule("XC-EVICT-101")
def test_a_ghost_of_clock_lru_k_comes_back_with_one_more(form: Any) -> None:
    cache = machine("clock-lru-k", 2, form, FIXED)
    assert play(cache, 0, 0, 1, 2, 0) == [0, 1]  # 0 left with two and is back with three
    assert play(cache, 3, 4) == [2, 3]


@FORMS
@pytest.mark.rule("XC-EVICT-102")
def test_the_protection_of_clock_lru_k_fades_with_victims(form: Any) -> None:
    cache = machine("clock-lru-k", 2, form, {"adapt": False, "decay_every": 3})
    assert play(cache, 0, 0, 0, 1, 2, 3, 4, 5) == [1, 2, 3, 0]
    halving = machine("clock-lru-k", 2, form, {"adapt": False, "decay_every": 2, "decay": "halve"})
    assert play(halving, 0, 0, 0, 0, 0, 1, 2, 3, 4) == [1, 2, 0]  # five uses are two after the second victim


@FORMS
@pytest.mark.rule("XC-EVICT-103")
def test_clock_lru_k_forgets_the_ghost_least_recently_asked_for(form: Any) -> None:
    cache = machine("clock-lru-k", 2, form, FIXED)
    assert play(cache, 0, 0, 1, 1, 2, 2, 3, 3, 4) == [0, 1, 2]  # ghosts 1 and 2: 0 was asked for first
    assert play(cache, 1, 1, 5, 6) == [3, 4, 5]  # 1 resumed at three, is at four, and stays
    assert play(cache, 0, 7) == [6, 0]  # 0 began at one


@pytest.mark.rule("XC-EVICT-104")
def test_the_bar_moves_by_one_and_only_on_a_whole_window() -> None:
    bar = Bar(2, True, 15, every=4, window=8, low=2500, high=5000, step=1000)
    for _ in range(12):
        bar.evicted(1)
    assert bar.value == 2  # three looks, no probes
    bar.probed(hits=4, probes=8)
    for _ in range(4):
        bar.evicted(1)
    assert (bar.value, bar.rate, bar.direction) == (1, 5000, -1)  # nobody graduated
    bar.probed(hits=6, probes=8)
    bar.graduated = 40
    for _ in range(4):
        bar.evicted(1)
    assert (bar.value, bar.low, bar.high) == (2, 3500, 5000)  # lower k hit more: `low` is easier to reach; then up
    bar.probed(hits=1, probes=8)
    for _ in range(4):
        bar.evicted(9)
    assert (bar.value, bar.low, bar.high) == (3, 3500, 6000)  # higher k hit less: `high` is harder to reach; up again
    assert (bar.under, bar.over) == (20, 4)


@pytest.mark.rule("XC-EVICT-104")
def test_the_bar_halves_old_counts_and_looks_again_at_once() -> None:
    bar = Bar(2, True, 15, every=101, window=1, low=0, high=10_000, step=1000)
    bar.graduated = 101
    bar.probed(1, 1)
    for _ in range(101):
        bar.evicted(1)
    assert (bar.under, bar.graduated, bar.seen) == (50, 50, 101)
    bar.evicted(1)
    assert bar.seen == 51


# ---------------------------------------------------------------------------------------------- slru

HALF: Values = {"protected": 0.5}


@FORMS
@pytest.mark.rule("XC-EVICT-110", "XC-EVICT-111")
def test_slru_protects_a_second_use_and_demotes_to_the_recent_end(form: Any) -> None:
    cache = machine("slru", 4, form, HALF)
    assert play(cache, 0, 1, 2, 3, 0, 1, 4, 5) == [2, 3]  # 0 and 1 are protected
    assert play(cache, 4) == []  # 4 is promoted; 0 becomes the most recent of probation, behind 5
    assert play(cache, 6, 7) == [5, 0]


@FORMS
@pytest.mark.rule("XC-EVICT-110")
def test_slru_takes_a_protected_key_when_probation_has_none(form: Any) -> None:
    cache = machine("slru", 2, form, HALF)
    play(cache, 0, 0, 1)
    cache.pin(Key(0, 1))
    assert play(cache, 2) == [0]


@FORMS
@pytest.mark.rule("XC-EVICT-112")
def test_while_it_fills_slru_protects_nobody_or_whoever_finds_room(form: Any) -> None:
    for fill, gone in (("first", [0, 1]), ("lowest-with-room", [0, 2])):
        assert play(machine("slru", 2, form, {**HALF, "fill": fill}), 0, 1, 2, 3) == gone


# ---------------------------------------------------------------------------------------------- arc


@FORMS
@pytest.mark.rule("XC-EVICT-115", "XC-EVICT-117")
def test_arc_gives_up_what_was_seen_once(form: Any) -> None:
    cache = machine("arc", 3, form)
    assert play(cache, 0, 0, 1, 2, 3, 4) == [1, 2]  # 0 is in T2, and p is 0


def arc(cache: Residency) -> tuple[list[list[int]], float]:
    """T1, T2, B1, B2 and p."""
    policy: Any = cache.parts[-1].policy
    return [experts(list(queue)) for queue in (policy.t1, policy.t2, policy.b1, policy.b2)], policy.p


@FORMS
@pytest.mark.rule("XC-EVICT-115", "XC-EVICT-116", "XC-EVICT-117", "XC-EVICT-118")
def test_the_ghosts_of_arc_move_its_target(form: Any) -> None:
    cache = machine("arc", 3, form)
    play(cache, 0, 0, 1, 2, 3)
    assert arc(cache) == ([[2, 3], [0], [1], []], 0)
    assert play(cache, 1) == [2]  # p is 1, and T1 held two
    assert arc(cache) == ([[3], [0, 1], [2], []], 1)
    assert play(cache, 2) == [0]  # p is 2: T2 gives
    assert arc(cache) == ([[3], [1, 2], [], [0]], 2)
    assert play(cache, 0) == [3]  # p is 1, which is what T1 holds: for a ghost of B2 it gives
    assert arc(cache) == ([[], [1, 2, 0], [3], []], 1)


@FORMS
@pytest.mark.rule("XC-EVICT-116")
@pytest.mark.parametrize(("step", "p"), [("real", 1.5), ("whole", 1)])
def test_the_target_of_arc_moves_by_the_ratio_of_the_ghosts(form: Any, step: str, p: float) -> None:
    cache = machine("arc", 8, form, {"step": step})
    policy: Any = cache.parts[-1].policy
    keys = [Key(0, expert) for expert in range(5)]
    for key in keys[:2]:
        policy.b1.append(key) if form == "declarative" else policy.b1.update({key: None})
    for key in keys[2:]:
        policy.b2.append(key) if form == "declarative" else policy.b2.update({key: None})
    policy.misses([keys[0]])
    assert policy.p == p  # three to two
    policy.misses([keys[2]])
    assert policy.p == p - 1  # one to three, and one at least


@FORMS
@pytest.mark.rule("XC-EVICT-145")
def test_arc_learns_from_all_ghosts_of_an_event_before_its_first_victim(form: Any) -> None:
    for rows, gone in (([(2, 3)], [0, 1]), ([2, 3], [4, 0])):
        cache = machine("arc", 4, form)
        play(cache, 0, 0, 1, 1, 2, 3, 4, 5)
        assert arc(cache) == ([[4, 5], [0, 1], [2, 3], []], 0)
        assert play(cache, *rows) == gone  # type: ignore[arg-type]
        assert arc(cache)[1] == 2


# ---------------------------------------------------------------------------------------------- two-q


@FORMS
@pytest.mark.rule("XC-EVICT-125", "XC-EVICT-126", "XC-EVICT-127")
def test_only_what_comes_back_enters_the_long_queue_of_2q(form: Any) -> None:
    cache = machine("two-q", 4, form)
    assert play(cache, 0, 1, 2, 3, 0, 0, 4, 5) == [0, 1]  # hits in A1in count for nothing
    assert play(cache, 0) == [2]  # a ghost: into Am
    assert play(cache, 6, 7) == [3, 4]
    assert play(cache, 3) == [5]  # 3 was a ghost, 2 too long ago
    assert play(cache, 2, 8, 9) == [6, 7, 2]


@FORMS
@pytest.mark.rule("XC-EVICT-125")
def test_2q_takes_the_least_recent_of_am_when_a1in_is_short(form: Any) -> None:
    cache = machine("two-q", 3, form, {"a1out": 2.0, "a1in": 0.5})
    play(cache, 0, 1, 2, 3, 4, 0, 1)
    policy: Any = cache.parts[-1].policy
    assert (experts(list(policy.queue_in)), experts(list(policy.main))) == ([4], [0, 1])
    assert play(cache, 0, 5) == [1]  # A1in holds Kin: Am gives, its least recent


# ---------------------------------------------------------------------------------------------- s3-fifo

SMALL: Values = {"small": 0.5}


@FORMS
@pytest.mark.rule("XC-EVICT-132", "XC-EVICT-133", "XC-EVICT-135")
def test_one_hit_wonders_leave_s3_fifo_by_the_small_queue(form: Any) -> None:
    cache = machine("s3-fifo", 4, form, SMALL)
    play(cache, 0, 0, 0, 1, 1, 2, 3)
    assert play(cache, 4) == [1]  # 0 was hit twice and moves to main; 1 once
    policy: Any = cache.parts[-1].policy
    assert experts(list(policy.queue_main)) == [0]
    assert play(cache, 1) == [2]  # a ghost: into main
    assert experts(list(policy.queue_main)) == [0, 1]


@FORMS
@pytest.mark.rule("XC-EVICT-132", "XC-EVICT-134")
def test_the_main_queue_of_s3_fifo_turns_until_one_cannot_pay(form: Any) -> None:
    cache = machine("s3-fifo", 4, form, {"small": 0.5, "threshold": 1})
    play(cache, 0, 1, 2, 3, 0, 1, 2, 3)
    assert play(cache, 4) == [0]  # 0, 1 and 2 move to main, which is then too long; counts are zero again
    play(cache, 1)
    assert play(cache, 5) == [2]  # 3 moves to main; 1 pays its one hit
    assert residents(cache) == [1, 3, 4, 5]


@FORMS
@pytest.mark.rule("XC-EVICT-133")
@pytest.mark.parametrize(("promotion", "gone"), [("ask-again", 0), ("go-on", 3)])
def test_after_a_promotion_s3_fifo_asks_again_or_goes_on(form: Any, promotion: str, gone: int) -> None:
    cache = machine("s3-fifo", 4, form, {"small": 0.5, "threshold": 1, "promotion": promotion})
    assert play(cache, 0, 1, 2, 3, 0, 1, 2, 4) == [gone]


# ---------------------------------------------------------------------------------------------- sieve


@FORMS
@pytest.mark.rule("XC-EVICT-140", "XC-EVICT-141", "XC-EVICT-142")
def test_sieve_keeps_survivors_where_they_are(form: Any) -> None:
    cache = machine("sieve", 4, form)
    assert play(cache, 0, 1, 2, 3, 0, 2, 4) == [1]  # 0 loses its visit and stays the oldest
    assert play(cache, 5) == [3]  # 2 loses its visit
    assert play(cache, 6) == [4]
    assert play(cache, 7, 8) == [5, 6]  # newer than 0 and 2, and before them: the hand has not come round
    assert play(machine("clock", 4, form), 0, 1, 2, 3, 0, 2, 4, 5, 6) == [1, 3, 0]  # CLOCK's comes round sooner


@FORMS
@pytest.mark.rule("XC-EVICT-142")
def test_the_hand_of_sieve_starts_from_the_oldest_when_its_victim_was_the_newest(form: Any) -> None:
    cache = machine("sieve", 3, form)
    play(cache, 0, 1, 2, 0, 1)
    assert play(cache, 3) == [2]
    assert play(cache, 4) == [0]  # and not 3, which is where the hand would be had it waited there


@FORMS
@pytest.mark.rule("XC-EVICT-143")
def test_sieve_steps_over_a_held_key_which_keeps_its_visit(form: Any) -> None:
    cache = machine("sieve", 3, form)
    play(cache, 0, 1, 2, 0)
    cache.pin(Key(0, 0))
    assert play(cache, 3, 4, 5) == [1, 2, 3]
    cache.unpin(Key(0, 0))
    assert play(cache, 6, 7) == [4, 5]


@FORMS
@pytest.mark.rule("XC-EVICT-142", "XC-RES-016")
def test_when_the_key_under_the_hand_fails_the_hand_moves_to_the_next_newer(form: Any) -> None:
    cache = machine("sieve", 3, form)
    play(cache, 0, 1, 2, 0)
    selection = cache.select(Event(0, ((3,),)))
    assert experts(selection.victims) == [1]
    cache.complete(Key(0, 3))
    cache.release(selection.ticket)
    second = cache.select(Event(0, ((4,),)))
    assert experts(second.victims) == [2]  # the hand is now at 3
    cache.fail(Key(0, 4))
    cache.release(second.ticket)
    assert play(cache, 5, 6) == [3]


@pytest.mark.rule("XC-EVICT-100")
@pytest.mark.parametrize(("decay", "fallen"), [("minus-one", [1, 1, 2, 3, 4, 14]), ("halve", [1, 1, 1, 2, 2, 7])])
def test_a_frequency_of_clock_lru_k_falls_by_one_or_by_half_and_never_below_one(decay: str, fallen: list[int]) -> None:
    for form in ("declarative", "indexed"):
        policy = make("clock-lru-k", form, parameters={"decay": decay})()
        assert [policy.fallen(frequency) for frequency in (1, 2, 3, 4, 5, 15)] == fallen
