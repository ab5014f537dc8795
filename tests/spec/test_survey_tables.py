"""Tables of the surveys: atomic replay, cell by cell, and Belady with the event pinned (TARGETS 3)."""

from __future__ import annotations

import json

import pytest

from expertcache_spec.eviction import make
from expertcache_spec.model import Budget
from expertcache_spec.replay import replay, run_event
from expertcache_spec.residency import Residency
from expertcache_spec.trace import Event

from . import recordings
from .running import python

# Trace, percent of all records; decode misses in percent of LRU, LFU, LFRU, Belady with bypass, Belady forced.
TABLE = {
    ("qwen", 10): (45.68, 46.09, 42.23, 26.17, 28.49),
    ("qwen", 25): (18.11, 18.09, 16.57, 7.79, 8.01),
    ("qwen", 40): (7.03, 6.92, 6.72, 3.50, 3.52),
    ("gemma", 10): (45.79, 44.07, 41.74, 26.97, 29.27),
    ("gemma", 25): (20.83, 19.50, 18.65, 9.38, 9.68),
    ("gemma", 40): (8.45, 7.96, 7.94, 4.37, 4.42),
}
POINTS, LFRU_POINTS = 0.0051, 0.4
"""How near ours are: to the last digit, a tie in rounding aside; and LFRU's."""


@pytest.mark.rule("XC-RES-026", "XC-EVICT-020", "XC-EVICT-030", "XC-EVICT-051", "XC-EVICT-062")
@pytest.mark.parametrize(
    ("name", "percent"),
    [pytest.param(*cell, marks=() if cell == ("gemma", 40) else pytest.mark.nightly) for cell in TABLE],
)
def test_every_cell_of_the_table_of_atomic_replay_is_met(name: str, percent: int) -> None:
    *others, lfru = ("lru", "lfu", "belady", "forced", "lfru")
    published = dict(zip(("lru", "lfu", "lfru", "belady", "forced"), TABLE[name, percent], strict=True))
    found = json.loads(python("-m", "tests.spec.atomic_table", name, str(percent), EXPERTCACHE_CONTRACTS="off"))
    for policy in others:
        assert found[policy] == pytest.approx(published[policy], abs=POINTS), policy
    # Its LFRU breaks ties in a way that is not said: up to 0.36 points from ours, at 10 % of the records.
    assert found[lfru] == pytest.approx(published[lfru], abs=LFRU_POINTS)
    assert found["belady"] <= found["forced"] <= found["lru"]


# Belady with the event held: misses as published, each row of the prompt an event, and ours, each call an event.
PINNED = [
    ("qwen", 614, 11_661, 11_693),
    ("qwen", 1843, 4_336, 4_336),
    ("gemma", 384, 7_488, 7_520),
    ("gemma", 1152, 2_925, 2_925),
]


@pytest.mark.nightly
@pytest.mark.rule("XC-EVICT-003", "XC-EVICT-050")
@pytest.mark.parametrize(("name", "slots", "by_row", "by_call"), PINNED)
def test_belady_with_the_event_held_misses_what_was_published_where_a_row_is_an_event(
    name: str, slots: int, by_row: int, by_call: int
) -> None:
    trace = recordings.bigmoe(name)
    assert replay(trace, "belady", Budget(slots=slots)).total.misses == by_call
    rows = [Event(event.layer, (row,), event.stream, event.pass_index) for event in trace.events for row in event.rows]
    machine = Residency(trace.geometry, Budget(slots=slots), make("belady", future=rows))
    for event in rows:
        run_event(machine, event)
    assert machine.counters.total().misses == by_row
