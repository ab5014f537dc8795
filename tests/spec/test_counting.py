"""Aged LFU, LFRU and LFRU by heat: vectors by hand, and laws."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from expertcache_spec.eviction import make
from expertcache_spec.eviction.counting.clock import UNITS, Clock
from expertcache_spec.eviction.counting.lfru import score
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import replay, run_event
from expertcache_spec.residency import Residency
from expertcache_spec.trace import Event, decode_trace

from .counting import steps_of, victims
from .strategies import random_case

Rows = Sequence[Sequence[int]]


# ---------------------------------------------------------------------------------------------- the clock


@pytest.mark.rule("XC-EVICT-064")
@pytest.mark.parametrize(
    ("unit", "times", "total"),
    [
        ("passes", [0, 0, 1, 0, 2], 3),
        ("tokens", [0, 0, 2, 0, 3], 4),
        ("events", [0, 1, 2, 3, 4], 5),
        ("lookups", [0, 3, 4, 6, 8], 9),
    ],
)
def test_a_clock_counts_what_has_begun_over_all_streams(unit: str, times: list[int], total: int) -> None:
    # Stream 0: a pass of two rows over layers 0, 1, 2, and one more; stream 1 begins a pass in between.
    events = [
        Event(0, ((0, 1), (1, 2)), 0, 0, "prefill"),
        Event(1, ((0,), (0,)), 0, 0, "prefill"),
        Event(0, ((0, 1),), 1, 0),
        Event(2, ((0,), (1,)), 0, 0, "prefill"),
        Event(0, ((5,),), 0, 1),
    ]
    clock = Clock(unit)
    assert [clock.begin(event) for event in events] == times
    assert clock.total == total


@pytest.mark.rule("XC-EVICT-064", "XC-EVICT-062")
@pytest.mark.parametrize("form", ["indexed", "declarative"])
def test_a_reset_of_history_does_not_set_the_clock_back(form: str) -> None:
    # Four passes, a reset, then the clock reaches 6: what was counted in pass 5 is halved away there, not later.
    cache = Residency(Geometry(1, 4, 1), Budget(slots=2), make("lfu-aged", form, parameters={"every": 3}))  # type: ignore[arg-type]
    for number, expert in enumerate((0, 1, 0, 1)):
        run_event(cache, Event(0, ((expert,),), pass_index=number))
    cache.reset("history")
    steps = [run_event(cache, Event(0, ((expert,),), pass_index=n)) for n, expert in enumerate((0, 1, 2), 4)]
    assert [step.victims for step in steps] == [(), (), (Key(0, 0),)]


# ---------------------------------------------------------------------------------------------- aged LFU


@pytest.mark.rule("XC-EVICT-060", "XC-EVICT-061", "XC-EVICT-062")
def test_what_was_hot_in_the_first_prompt_gives_way_when_counts_age() -> None:
    # astronomical#733: ten requests of 0, then 1 and 2 in turn. Halved in passes 4, 8, 12, 16: 5 requests of 0 are
    # left in pass 11 and 2 in pass 12; 1 reaches 2 in pass 15, and 0 is the less recent of the two.
    trace = decode_trace([[0]] * 10 + [[1], [2]] * 4)
    found = {}
    for policy, parameters in (("lru", {}), ("lfu", {}), ("lfu-aged", {"every": 4})):
        total = replay(trace, policy, Budget(slots=2), parameters=parameters).total
        found[policy] = (total.hits, total.misses)
    assert found == {"lru": (15, 3), "lfu": (9, 9), "lfu-aged": (12, 6)}
    assert victims([[0]] * 10 + [[1], [2]] * 4, "lfu-aged", 2, every=4) == [1, 2, 1, 0]


@pytest.mark.rule("XC-EVICT-061")
def test_absent_keys_age_as_residents_do() -> None:
    # 0 has 2 requests, 1 after pass 4, none after pass 8 when it is absent, and 1 again with pass 9. Had it not aged
    # while absent it would tie with the 2 of key 3, and stay as the more recent.
    rows = [[0], [0], [1], [1], [2], [3], [3], [3], [0], [4]]
    assert victims(rows, "lfu-aged", 2, every=4) == [0, 1, 2, 0]
    assert victims(rows, "lfu", 2) == [0, 2, 1, 3]


@pytest.mark.rule("XC-EVICT-062")
def test_a_clock_that_leaps_over_several_multiples_halves_as_often() -> None:
    # The event of eight keys reaches 4 and 8 lookups beyond the first four: 4 requests of 0 become 1.
    events = [Event(0, ((0,),), pass_index=n) for n in range(4)]
    events += [Event(0, tuple((n,) for n in range(1, 9)), pass_index=4, phase="prefill")]
    cache = make("lfu-aged", parameters={"every": 4, "clock": "lookups"})()
    for event in events:
        cache.begin(event)
    assert cache.counts.of(Key(0, 0)) == 0  # type: ignore[attr-defined]
    assert cache.counts.of(Key(0, 1)) == 1  # type: ignore[attr-defined]


@pytest.mark.rule("XC-EVICT-060", "XC-EVICT-062")
@pytest.mark.parametrize("every", [0, 10**9])
def test_lfu_aged_without_aging_is_lfu(every: int) -> None:
    for seed in range(60):
        case = random_case(seed, "lfu")
        assert steps_of(case, "lfu-aged", every=every) == steps_of(case, "lfu"), seed


@pytest.mark.rule("XC-EVICT-060", "XC-EVICT-061")
def test_whole_counts_that_are_halved_at_every_event_leave_lru() -> None:
    for seed in range(60):
        case = random_case(seed, "lru")
        assert steps_of(case, "lfu-aged", every=1, clock="events") == steps_of(case, "lru"), seed


@pytest.mark.rule("XC-EVICT-061")
def test_whole_counts_tie_where_finer_ones_still_tell_apart() -> None:
    # In pass 4 the count 3 of key 0 becomes 1, or 1.5; one request of it and two of key 1 later they tie, or do not.
    rows = [[0], [0], [0], [1], [0], [1], [2]]
    fine = {places: victims(rows, "lfu-aged", 2, every=4, places=places) for places in (0, 1)}
    assert fine == {0: [0], 1: [1]}


@pytest.mark.rule("XC-EVICT-063")
@pytest.mark.parametrize("form", ["indexed", "declarative"])
@pytest.mark.parametrize("policy", ["lfu-aged", "lfru", "lfru-heat", "class-lru", "window"])
def test_a_prefetch_and_a_seed_are_no_requests(policy: str, form: str) -> None:
    cache = Residency(Geometry(1, 6, 1), Budget(slots=3), make(policy, form))  # type: ignore[arg-type]
    for number in range(4):
        run_event(cache, Event(0, ((0,),), pass_index=number))
    assert cache.prefetch(Key(0, 1)) == "started"
    assert cache.seed([Key(0, 2)]).reads == (Key(0, 2),)
    for expert in (1, 2):
        cache.complete(Key(0, expert))
    gone = [run_event(cache, Event(0, ((expert,),), pass_index=n)).victims for n, expert in enumerate((3, 4), 4)]
    assert gone == [(Key(0, 1),), (Key(0, 2),)]


# ---------------------------------------------------------------------------------------------- LFRU


@pytest.mark.rule("XC-EVICT-065", "XC-EVICT-066")
def test_lfru_divides_requests_by_age() -> None:
    # Event 4: 0 has 3 requests at age 3, 1 has 1 at age 2. Event 10: 0 has 3 at age 9, 1 has 1 at age 2, 2 has 6 at 3.
    assert victims([[0], [0], [0], [1], [2]], "lfru", 2) == [1]
    assert victims([[0]] * 3 + [[2]] * 6 + [[1], [3]], "lfru", 3) == [0]


@pytest.mark.rule("XC-EVICT-067")
def test_under_lfru_keys_overtake_each_other_while_nobody_touches_them() -> None:
    # As above, but seven more hits of 2 go by: 0 has 3 requests at age 16, 1 has 1 at age 9, and is worth less now.
    assert victims([[0]] * 3 + [[2]] * 6 + [[1]] + [[2]] * 7 + [[3]], "lfru", 3) == [1]


@pytest.mark.rule("XC-EVICT-066")
def test_under_lfru_counts_survive_eviction() -> None:
    # At event 5: 1 has 2/5, 0 has 3/2. At 6, with 1 on its way back: 2 has 1/2, 0 has 3/3. At 7: 0 has 3/4, 1 has 3/2.
    assert victims([[1], [1], [0], [0], [0], [2], [1], [3]], "lfru", 2) == [1, 2, 0]


@pytest.mark.rule("XC-EVICT-065")
def test_ties_of_lfru_go_to_the_least_recent_or_to_the_lowest_key_as_declared() -> None:
    assert victims([[3, 1, 2], [4]], "lfru", 3) == [3]
    assert victims([[3, 1, 2], [4]], "lfru", 3, ties="key") == [1]
    # 2/6 of key 5 against 1/3 of key 4: other counts, the same score.
    rows = [[5], [5], [9], [9], [4], [9], [7]]
    assert victims(rows, "lfru", 3) == [5]
    assert victims(rows, "lfru", 3, ties="key") == [4]


@pytest.mark.rule("XC-EVICT-068")
def test_scores_of_lfru_that_differ_are_told_apart_and_equal_ones_are_not() -> None:
    great = 10**6
    assert score(great, great + 1) > score(great - 1, great)
    assert score(1, great + 1) < score(1, great)
    assert score(1, 3) == score(2, 6) == score(great, 3 * great)
    assert score(2, 5) == score(4, 10) != score(2, 6)


@pytest.mark.rule("XC-EVICT-065")
@pytest.mark.parametrize("unit", UNITS)
def test_of_keys_asked_for_equally_often_lfru_takes_the_one_asked_for_longest_ago(unit: str) -> None:
    rows = [[0], [1], [2], [1], [0], [2], [3]]
    assert victims(rows, "lfru", 3, clock=unit) == [1] == victims(rows, "lru", 3)


# ---------------------------------------------------------------------------------------------- LFRU by heat


@pytest.mark.rule("XC-EVICT-069", "XC-EVICT-070")
def test_lfru_heat_takes_heat_first_and_recency_second() -> None:
    assert victims([[0], [0], [1], [2]], "lfru-heat", 2) == [1]
    assert victims([[0], [1], [1], [0], [2]], "lfru-heat", 2) == [1]
    # Heat survives eviction: 1 comes back with two.
    assert victims([[0], [0], [1], [2], [1], [3]], "lfru-heat", 2) == [1, 2, 0]


@pytest.mark.rule("XC-EVICT-071")
def test_ages_beyond_the_limit_are_equal_and_ties_go_as_declared() -> None:
    # At the end 2 is 4 passes old, 1 is 3, 0 is 2; all have one request.
    rows = [[2], [1], [0], [3], [4]]
    for oldest, gone in ((255, 2), (4, 2), (3, 1), (2, 0), (0, 0)):
        assert victims(rows, "lfru-heat", 4, oldest=oldest, ties="key") == [gone]
    # Both have two requests; 1 was inserted first and used last.
    rows = [[1], [0], [0], [1], [2]]
    assert victims(rows, "lfru-heat", 2, oldest=2) == [0]
    assert victims(rows, "lfru-heat", 2, oldest=1) == [1]


@pytest.mark.rule("XC-EVICT-069", "XC-EVICT-070")
@pytest.mark.parametrize("clock", ["events", "lookups"])
def test_with_one_key_an_event_and_no_limit_lfru_heat_is_lfu_aged(clock: str) -> None:
    for seed in range(40):
        case = random_case(seed, "lru", room="reserve")
        single = decode_trace([[key.expert] for event in case.trace.events for key in event.keys])
        for every in (0, 3, 16):
            aged, heat = (
                victims([list(event.rows[0]) for event in single.events], policy, 3, every=every, clock=clock, **more)
                for policy, more in (("lfu-aged", {}), ("lfru-heat", {"oldest": 10**6}))
            )
            assert aged == heat


@pytest.mark.rule("XC-EVICT-071")
def test_inside_an_event_lfru_heat_ignores_the_touch_order_that_lfu_aged_follows() -> None:
    # The second event asks for both in the other order.
    assert victims([[1, 0], [0, 1], [2]], "lfu-aged", 2) == [0]
    assert victims([[1, 0], [0, 1], [2]], "lfru-heat", 2) == [1]
    assert victims([[0, 1], [1, 0], [2]], "lfru-heat", 2) == [0]
