"""What makes no schedule, sweep or layout is refused by a typed error with the cure, and never answered."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest

from expertcache_spec.errors import InvalidBudget, InvalidModel
from expertcache_spec.fanout import Chunk, ReadTime, chunk_plan, fit, is_whole
from expertcache_spec.layout import (
    ReadCost,
    Shape,
    bundled_rows,
    flat_blobs,
    packed_layers,
    record_blocks,
    stacked_tensors,
)
from expertcache_spec.model import Key
from expertcache_spec.pagecache import TierCost
from expertcache_spec.schedule import Costs, InvalidSchedule, Scenario, best_threshold, divided, load_of, read_wall

SHAPE = Shape(4, {0: {"gate": 4, "down": 4}, 2: {"gate": 4, "down": 4}})
ALONE = Scenario((load_of(1, []),), (divided([1], [1]),))


@pytest.mark.parametrize(
    "make",
    [
        lambda: load_of(3, [5]),
        lambda: load_of(3, [-1]),
        lambda: load_of(0, []),
        lambda: read_wall(ALONE, 3, 5),
        lambda: read_wall(ALONE, 3, -1),
        lambda: best_threshold(Costs(), 6, {1: 100}, {1: 3, 2: 4}),
        lambda: best_threshold(Costs(), 0, {}, {}),
    ],
)
def test_a_slot_or_wall_that_is_not_there_makes_no_schedule(make: Callable[[], Any]) -> None:
    with pytest.raises(InvalidSchedule, match="Cure"):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: fit({0: 1, 1: 2, 2: 3}),
        lambda: fit({1: nan, 2: 1, 4: 2}),
        lambda: fit({1: inf, 2: 1, 4: 2}),
        lambda: fit({1: 1, 2: 1, 4: 2}, lanes=0),
        lambda: fit({1: 1, 2: 2}),
        lambda: ReadTime(1, 1, 1).of(0),
        lambda: ReadCost(nan, 1),
        lambda: ReadCost(1, 0),
        lambda: record_blocks(SHAPE, 0),
        lambda: record_blocks(SHAPE, -4),
        lambda: stacked_tensors(SHAPE, header=-1),
        lambda: stacked_tensors(SHAPE, 0),
        lambda: flat_blobs(SHAPE, -1),
        lambda: SHAPE.record_bytes(1),
    ],
)
def test_numbers_that_no_model_has_are_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(InvalidModel, match="Cure"):
        make()


def test_the_message_of_a_fit_names_what_is_wrong() -> None:
    with pytest.raises(InvalidModel, match=r"0 lanes.*whole number of lanes from 1"):
        fit({1: 1, 2: 1, 4: 2}, lanes=0)


def test_rates_that_are_none_make_no_cost() -> None:
    for copy, device in ((0, 1), (1, nan), (-1, 1), (inf, 1)):
        with pytest.raises(InvalidBudget, match="Cure"):
            TierCost(copy, device)


@pytest.mark.rule("XC-LAYOUT-001")
@pytest.mark.parametrize("key", [Key(0, -1), Key(0, 99), Key(0, 4), Key(1, 0), Key(-1, 0)])
def test_no_layout_places_a_record_that_there_is_not(key: Key) -> None:
    layouts = (
        packed_layers(SHAPE), stacked_tensors(SHAPE), record_blocks(SHAPE), flat_blobs(SHAPE), bundled_rows(SHAPE, 2),
    )  # fmt: skip
    for layout in layouts:
        assert layout.place(Key(2, 3))
        with pytest.raises(InvalidModel, match="no expert"):
            layout.place(key)
        with pytest.raises(InvalidModel, match="no expert"):
            layout.part(key, "gate")


@pytest.mark.rule("XC-FANOUT-005")
def test_one_chunk_read_four_times_is_no_whole_record() -> None:
    plan = chunk_plan(4 * 16384, 4)
    lengths = [chunk.length for chunk in plan]
    assert is_whole(plan, 4 * 16384, lengths)
    assert not is_whole((plan[0],) * 4, 4 * 16384, lengths)
    assert not is_whole((Chunk(1, 3), Chunk(4, 3)), 6, [3, 3])
