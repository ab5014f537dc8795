"""Inclusion: whether a smaller cache always holds a part of what a larger one holds, and so never hits more.

Under touch `router` the rank of a key depends on the requests alone, so LRU, LFU and Belady are stack policies for
whole events as they are for single keys. Under touch `hits_first` it depends on what was resident, and LRU and LFU
lose inclusion; even the misses of LRU may then grow with the memory. Every other policy: `test_stack_policies`.
"""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import replay
from expertcache_spec.residency import Settings
from expertcache_spec.trace import Trace, decode_trace

from .stack_table import contents, following, is_included
from .strategies import Row, random_trace, traces

HITS_FIRST = Settings(touch="hits_first")
STACK = [("lru", "router"), ("lfu", "router"), ("belady", "router"), ("belady", "hits_first")]


def misses(trace: Trace, policy: str, slots: int, settings: Settings) -> int:
    """The misses of a whole replay."""
    return replay(trace, policy, Budget(slots=slots), settings).total.misses


@pytest.mark.rule("XC-EVICT-005")
@pytest.mark.parametrize(("policy", "touch"), STACK)
@pytest.mark.parametrize("room", ["reserve", "trim", "retain"])
def test_more_memory_holds_all_that_less_held_and_misses_no_more(policy: str, touch: str, room: str) -> None:
    settings = Settings(room=room, touch=touch)  # type: ignore[arg-type]
    for seed in range(12):
        random = Random(seed)
        geometry = Geometry(random.randint(1, 2), 7, 3)
        trace = random_trace(random, geometry, streams=2, passes=7)
        widest = max(len(event.keys) for event in trace.events)
        capacities = range(widest if room != "retain" else 1, 11)
        held = [contents(trace, policy, slots, settings) for slots in capacities]
        for smaller, larger in pairwise(held):
            assert all(small <= large for small, large in zip(smaller, larger, strict=True)), seed
        counts = [misses(trace, policy, slots, settings) for slots in capacities]
        assert counts == sorted(counts, reverse=True)


@pytest.mark.rule("XC-EVICT-005")
@pytest.mark.parametrize(("policy", "touch"), STACK)
@given(data=st.data())
def test_inclusion_holds_on_what_hypothesis_draws(policy: str, touch: str, data: st.DataObject) -> None:
    trace = data.draw(traces())
    slots = data.draw(st.integers(max(len(event.keys) for event in trace.events), 12))
    assert is_included(trace, policy, slots, Settings(touch=touch))  # type: ignore[arg-type]


@pytest.mark.rule("XC-EVICT-005", "XC-RES-006")
def test_hits_first_breaks_the_inclusion_of_lru_at_three_slots_against_four() -> None:
    # Event 3 reloads 0 into three slots, so 0 becomes the most recent; in four slots 0 hits and stays behind 1 and 2.
    trace = decode_trace([[0], [1, 2, 3], [0, 1, 2], [3, 4]])
    assert contents(trace, "lru", 3, HITS_FIRST)[-1] == {Key(0, 0), Key(0, 3), Key(0, 4)}
    assert contents(trace, "lru", 4, HITS_FIRST)[-1] == {Key(0, 1), Key(0, 2), Key(0, 3), Key(0, 4)}
    assert is_included(trace, "lru", 3, Settings())


@pytest.mark.rule("XC-EVICT-005", "XC-RES-006")
def test_hits_first_breaks_the_inclusion_of_lfu_at_three_slots_against_four() -> None:
    trace = decode_trace([[1, 3], [6, 5], [1, 3, 5], [0, 2]])
    assert not is_included(trace, "lfu", 3, HITS_FIRST)
    assert is_included(trace, "lfu", 3, Settings())


@pytest.mark.rule("XC-EVICT-005", "XC-RES-006")
def test_under_hits_first_more_memory_can_miss_more() -> None:
    # Found by construction, shrunk by search: in six slots what was loaded in five is a hit, and so leaves sooner,
    # twice over; the last event pays one miss that nothing had earned. Under touch router this cannot happen.
    events = [
        [0],
        [1, 2, 3],
        [4, 5],
        [0, 1, 2],
        [4, 5, 8, 9],
        [1, 2, 4, 5, 0],
        [3, 8, 12],
        [1, 2, 12],
        [3, 4, 5, 8],
        [12],
    ]
    trace = decode_trace(events)
    assert [misses(trace, "lru", slots, HITS_FIRST) for slots in (5, 6)] == [16, 17]
    assert misses(trace, "lru", 5, Settings()) >= misses(trace, "lru", 6, Settings())


# ---------------------------------------------------------------------------------------------- minimality

Stack = tuple[int, ...]


def touched(stack: Stack, row: Row, slots: int) -> Stack:
    """An LRU stack, most recent last, after an event under touch `hits_first`."""
    hits = tuple(key for key in row if key in stack)
    rest = tuple(key for key in stack if key not in row)
    kept = rest[-(slots - len(row)) :] if slots > len(row) else ()
    return kept + hits + tuple(key for key in row if key not in stack)


def first_break(width: int, events: int, selections: int, slots: int) -> list[Row] | None:
    """The first trace within the bounds whose stack at `slots` is not part of that with one slot more."""

    def search(history: list[Row], left: int, small: Stack, large: Stack) -> list[Row] | None:
        used = 1 + max((key for row in history for key in row), default=-1)
        for row in following(used, min(width, left)) if len(history) < events else ():
            smaller, larger = touched(small, row, slots), touched(large, row, slots + 1)
            if not set(smaller) <= set(larger):
                return [*history, row]
            if found := search([*history, row], left - len(row), smaller, larger):
                return found
        return None

    return search([], selections, (), ())


@pytest.mark.rule("XC-EVICT-005", "XC-RES-006")
def test_no_smaller_trace_breaks_inclusion_under_hits_first() -> None:
    assert first_break(3, 4, 9, 3) == [(0,), (1, 2, 3), (0, 1, 2), (3, 4)]
    assert first_break(3, 3, 9, 3) is None
    assert first_break(3, 4, 8, 3) is None
    assert all(first_break(2, 5, 10, slots) is None for slots in (2, 3, 4))


@pytest.mark.rule("XC-RES-006")
def test_the_stack_of_that_search_is_the_lru_of_the_specification() -> None:
    for seed in range(30):
        random = Random(seed)
        trace = random_trace(random, Geometry(1, 8, 3), passes=15, phases=("decode",))
        stack: Stack = ()
        for event, held in zip(trace.events, contents(trace, "lru", 5, HITS_FIRST), strict=True):
            stack = touched(stack, event.rows[0], 5)
            assert {Key(0, expert) for expert in stack} == held


@pytest.mark.rule("XC-EVICT-005", "XC-EVICT-010")
def test_fifo_can_miss_more_with_more_memory() -> None:
    trace = decode_trace([[expert] for expert in (1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5)])
    assert [misses(trace, "fifo", slots, Settings()) for slots in (3, 4)] == [9, 10]
