"""Heat-protected LRU, class LRU and window: vectors by hand, and laws that tie them to LRU and LFU."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from random import Random

import pytest

from expertcache_spec.eviction import Value, make
from expertcache_spec.eviction.counting.class_lru import UseCounts
from expertcache_spec.eviction.counting.clock import Clock
from expertcache_spec.eviction.counting.decay import BITS, ONE, Decay, power
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import Replay, run_event
from expertcache_spec.residency import Residency, Settings
from expertcache_spec.trace import Event, Trace

from .counting import steps_of, victims
from .strategies import random_case, random_trace

# ---------------------------------------------------------------------------------------------- heat-protected LRU


@pytest.mark.rule("XC-EVICT-072")
def test_heat_lru_passes_over_what_was_hit_often() -> None:
    rows = [[0], [0], [0], [1], [2], [3]]
    assert victims(rows, "heat-lru", 2, hot=1) == [1, 2]
    assert victims(rows, "heat-lru", 2, hot=2) == victims(rows, "lru", 2) == [0, 1]


@pytest.mark.rule("XC-EVICT-074")
def test_when_all_are_hot_the_least_recent_goes_and_nothing_fails() -> None:
    # llama-cpp-turboquant#300: both have two hits, the threshold is one.
    assert victims([[0], [0], [0], [1], [1], [1], [2]], "heat-lru", 2, hot=1) == [0]


@pytest.mark.rule("XC-EVICT-073")
def test_an_insert_starts_the_hits_at_zero_whatever_they_were() -> None:
    # 0 is hot with two hits, as is 1 later; 0 leaves as the least recent and comes back cold: it goes before 1.
    rows = [[0], [0], [0], [1], [1], [1], [2], [0], [3], [4]]
    assert victims(rows, "heat-lru", 2, hot=1) == [0, 2, 0, 3]


@pytest.mark.rule("XC-EVICT-075")
@pytest.mark.parametrize(
    ("parameters", "gone"),
    [
        ({"hot": 1}, 0),
        ({"hot": 1, "cold": "below"}, 1),
        ({"hot": 0}, 0),
        ({"hot": 0, "zero": "literal"}, 1),
        ({"hot": 0, "zero": "literal", "cold": "below"}, 0),
    ],
)
def test_what_the_threshold_and_zero_mean_decides_the_victim(parameters: dict[str, Value], gone: int) -> None:
    # 0 has one hit and is the less recent, 1 has none.
    assert victims([[0], [0], [1], [2]], "heat-lru", 2, **parameters) == [gone]


@pytest.mark.rule("XC-EVICT-072", "XC-EVICT-075")
@pytest.mark.parametrize("hot", [0, 10**6])
def test_heat_lru_that_protects_nothing_is_lru(hot: int) -> None:
    for seed in range(50):
        case = random_case(seed, "lru")
        assert steps_of(case, "heat-lru", hot=hot) == steps_of(case, "lru"), seed


@pytest.mark.rule("XC-EVICT-073", "XC-RES-022")
@pytest.mark.parametrize("form", ["indexed", "declarative"])
def test_a_reset_of_history_makes_all_cold_and_leaves_their_order(form: str) -> None:
    cache = Residency(Geometry(1, 5, 1), Budget(slots=2), make("heat-lru", form, parameters={"hot": 1}))  # type: ignore[arg-type]
    for number, expert in enumerate((0, 0, 0, 1)):
        run_event(cache, Event(0, ((expert,),), pass_index=number))
    cache.reset("history")
    assert run_event(cache, Event(0, ((2,),), pass_index=4)).victims == (Key(0, 0),)


# ---------------------------------------------------------------------------------------------- decay and classes


@pytest.mark.rule("XC-EVICT-079")
def test_powers_of_two_are_exact_to_the_last_places() -> None:
    assert power(0, 7) == 1 << 64
    assert power(1, 2) == isqrt(1 << 127)
    for denominator in (3, 7, 100, 128):
        for numerator in range(denominator):
            # The product of the power and of its complement is a half, but for the rounding of some 64 factors.
            there, back = power(numerator, denominator), power(denominator - numerator - 1, denominator)
            least = power(denominator - 1, denominator)
            assert abs((there * back >> 64) - least) < 256
            assert abs(there / 2**64 - 2.0 ** (-numerator / denominator)) < 1e-15


@pytest.mark.rule("XC-EVICT-077", "XC-EVICT-079")
def test_a_count_is_halved_exactly_in_each_half_life() -> None:
    decay = Decay(10)
    assert [decay.after(8 * ONE, elapsed) // ONE for elapsed in (0, 10, 20, 30)] == [8, 4, 2, 1]
    assert decay.after(ONE, 10 * BITS) == 1
    assert decay.after(ONE, 10 * BITS + 10) == 0
    left = [decay.after(5 * ONE, elapsed) for elapsed in range(60)]
    assert left == sorted(left, reverse=True)
    assert len(set(left)) == 60


@pytest.mark.rule("XC-EVICT-077", "XC-EVICT-078")
def test_a_class_is_the_logarithm_of_what_is_left_of_the_uses() -> None:
    counts = UseCounts(Clock("passes"), Decay(1), 3)

    def at(number: int, expert: int) -> int:
        counts.begin(Event(0, ((expert,),), pass_index=number))
        return counts.class_of(Key(0, 0))

    assert counts.class_of(Key(0, 0)) == 0
    # With a half-life of one pass the count of uses in every pass stays below two; it is 1, 1.5, 1.75 ...
    assert [at(number, 0) for number in range(5)] == [0] * 5
    slow = UseCounts(Clock("passes"), Decay(1 << 20), 3)
    found = []
    for number in range(9):
        slow.begin(Event(0, ((0,),), pass_index=number))
        found.append(slow.class_of(Key(0, 0)))
    # A little below 1, 2, 3 ... uses; the highest of three classes is 2.
    assert found == [0, 0, 1, 1, 2, 2, 2, 2, 2]


@pytest.mark.rule("XC-EVICT-076")
def test_class_lru_weighs_age_by_class() -> None:
    # Uses of 0 in passes 0 to 2 put it into class 1 (nearly 3 uses). At pass 6 it is 4 old, 1 is 3 old in class 0:
    # 4/2 < 3/1. Kept apart for longer, at pass 12, it is 10 old against 4 of key 1, which was asked for at 8: 5 > 4.
    assert victims([[0], [0], [0], [1], [2], [2], [3]], "class-lru", 3) == [1]
    rows = [[0], [0], [0], [2], [2], [2], [2], [2], [1], [2], [2], [2], [3]]
    assert victims(rows, "class-lru", 3) == [0]


@pytest.mark.rule("XC-EVICT-076")
@pytest.mark.parametrize(("ties", "gone"), [("low", 1), ("high", 0)])
def test_equal_scores_go_by_the_declared_order_of_classes(ties: str, gone: int) -> None:
    # At pass 6, 0 is in class 1 and 4 old, 1 in class 0 and 2 old.
    assert victims([[0], [0], [0], [2], [1], [2], [3]], "class-lru", 3, ties=ties) == [gone]


@pytest.mark.rule("XC-EVICT-077")
def test_under_class_lru_counts_survive_eviction() -> None:
    # Evicted at pass 5 with three uses, 0 comes back at pass 8 with nearly four: class 1. At pass 9 it is 1 old, which
    # is 1/2, and 3, in class 1 as well, is 2 old, which is 2/2. Were the count of 0 gone, it would be 1/1 and go first.
    rows = [[0], [0], [0], [1], [2], [3], [3], [3], [0], [4]]
    assert victims(rows, "class-lru", 2) == [1, 0, 2, 3]


@pytest.mark.rule("XC-EVICT-078")
def test_a_class_does_not_fall_while_its_count_decays() -> None:
    # Half-life 2: three uses leave 2.2 in pass 2, 0.5 in pass 6. As of its touch 0 is in class 1, and stays there.
    rows = [[0], [0], [0], [1], [2], [2], [3]]
    assert victims(rows, "class-lru", 3, half_life=2) == [1]


@pytest.mark.rule("XC-EVICT-076")
def test_class_lru_with_one_class_is_lru() -> None:
    for seed in range(50):
        case = random_case(seed, "lru")
        assert steps_of(case, "class-lru", classes=1) == steps_of(case, "lru"), seed


# ---------------------------------------------------------------------------------------------- window


def misses_inside(trace: Trace, slots: int, window: int) -> tuple[int, int]:
    """How many victims there were, and how many of them the last `window` passes had used."""
    run = Replay(trace, "window", Budget(slots=slots), parameters={"window": window, "clock": "passes"})
    used: dict[Key, int] = {}
    total = wrong = 0
    for event, step in zip(trace.events, run, strict=True):
        used.update(dict.fromkeys(event.keys, event.pass_index))
        total += len(step.victims)
        wrong += sum(used.get(key, -window) > event.pass_index - window for key in step.victims)
    return total, wrong


@pytest.mark.rule("XC-EVICT-080")
def test_where_the_window_fits_nothing_that_it_used_is_evicted() -> None:
    found = [0, 0]
    for seed in range(30):
        random = Random(seed)
        geometry = Geometry(random.randint(1, 3), 12, 2)
        trace = random_trace(random, geometry, passes=20, phases=("decode",))
        for window in (1, 2, 3):
            fits = misses_inside(trace, window * 2 * geometry.layers, window)
            assert fits[1] == 0
            found[0] += fits[0]
            found[1] += misses_inside(trace, geometry.layers + 1, 3)[1]
    assert all(count > 100 for count in found)


@pytest.mark.rule("XC-EVICT-080", "XC-EVICT-081")
def test_a_window_over_everything_is_lfu() -> None:
    for seed in range(50):
        case = random_case(seed, "lfu")
        assert steps_of(case, "window", window=10**6, clock="passes") == steps_of(case, "lfu"), seed


def one_stream(seed: int) -> tuple[Trace, Budget]:
    """A decode trace of one stream, and a budget."""
    random = Random(seed)
    trace = random_trace(random, Geometry(random.randint(1, 3), 8, 3), passes=12, phases=("decode",))
    return trace, Budget(slots=random.randint(3, 14))


@pytest.mark.rule("XC-EVICT-080")
@pytest.mark.parametrize(
    "parameters", [{"window": 1}, *({"window": n, "inside": "recency"} for n in (1, 2, 5))], ids=str
)
def test_a_window_of_one_pass_or_without_an_order_of_its_own_is_lru(parameters: dict[str, Value]) -> None:
    for seed in range(60):
        trace, budget = one_stream(seed)
        assert list(Replay(trace, "window", budget, parameters=parameters)) == list(Replay(trace, "lru", budget)), seed


@pytest.mark.rule("XC-EVICT-080", "XC-EVICT-081")
def test_streams_that_interleave_tell_the_window_from_lru() -> None:
    # Stream 0 begins a pass at layer 0; stream 1 begins one; then layer 1 of stream 0 asks for (1, 0): that use is by
    # the earlier pass, outside a window of one, though it is the most recent.
    events = [
        Event(0, ((0,),), 0, 0),
        Event(0, ((1,),), 1, 0),
        Event(1, ((0,),), 0, 0),
        Event(1, ((1,),), 1, 0),
    ]
    trace = Trace(Geometry(2, 2, 1), tuple(events))
    recency = {"window": 1, "clock": "passes", "inside": "recency"}
    *_, by_window = Replay(trace, "window", Budget(slots=3), parameters=recency)
    *_, by_age = Replay(trace, "lru", Budget(slots=3))
    assert (by_window.victims, by_age.victims) == ((Key(0, 0),), (Key(0, 0),))
    *_, by_window = Replay(trace, "window", Budget(slots=2), parameters=recency)
    *_, by_age = Replay(trace, "lru", Budget(slots=2))
    assert (by_window.victims, by_age.victims) == ((Key(1, 0),), (Key(0, 1),))


@pytest.mark.rule("XC-EVICT-080")
def test_inside_the_window_the_fewest_uses_go_first() -> None:
    rows: Sequence[Sequence[int]] = [[0], [0], [1], [2]]
    assert victims(rows, "window", 2) == [1]
    assert victims(rows, "window", 2, inside="recency") == [0]
    # In pass 3 a window of three holds passes 1 to 3: one use of each, and 0 is the less recent.
    assert victims(rows, "window", 2, window=3) == [0]


@pytest.mark.rule("XC-EVICT-081")
@pytest.mark.parametrize(("unit", "gone"), [("tokens", 0), ("passes", 1)])
def test_the_rows_of_a_batch_are_tokens_of_their_own(unit: str, gone: int) -> None:
    # The prompt's first row alone asks for 0, which is the most recent of the union all the same: 1 leads the rows.
    rows = ((1, 0), (1,), (1,), (1,))
    events = (Event(0, rows, phase="prefill"), Event(0, ((2,),), pass_index=1))
    trace = Trace(Geometry(1, 3, 2), events)
    settings = Settings(repeats="ignore")
    run = Replay(trace, "window", Budget(slots=2), settings, parameters={"window": 3, "clock": unit})
    assert [key.expert for step in run for key in step.victims] == [gone]


@pytest.mark.rule("XC-EVICT-082")
def test_uses_are_counted_whether_the_key_is_resident_or_not() -> None:
    # 0 leaves with one use inside the window and comes back: two uses, against one of the more recent 3.
    rows = [[0], [1], [2], [0], [3], [4]]
    assert victims(rows, "window", 2, window=6) == [0, 1, 2, 3]
    assert victims(rows, "lru", 2) == [0, 1, 2, 0]
