"""The field report's arithmetic: where 5 to 7 % came from when the split threshold went from 3 to 1, and what is left.

256 decode tokens, 40 layers of top-6, 10,213 misses of 9,953,280 bytes in 4.97 s of reads; 9.57 to 10.07 and 9.33 to
10.01 tokens a second.
"""

from __future__ import annotations

from functools import cache

import attrs
import pytest

from expertcache_reference.timeline.calibrate import CannotCalibrate, Measured, calibrated, spread
from expertcache_reference.timeline.hardware import Hardware, load_hardware
from expertcache_spec.schedule import Costs, Discipline, Storage, parse_discipline

TOKENS, LAYERS, TOP_K, MISSES, RECORD = 256, 40, 6, 10_213, 9_953_280
RUNS = [(957, 1007), (933, 1001)]
"""Tokens a second before and after, in hundredths."""
DS4 = Hardware("ds4", storage=Storage(workers=9), gate_up=(3_041_280, 3_041_280), down=(3_870_720,))
WORLDS = {"one bandwidth for all": 1, "a lane for each thread": 9}


def report(before: int, after: int) -> Measured:
    """The report's figures for one pair of runs."""
    time, faster = (TOKENS * 100 * 10**9 // speed for speed in (before, after))
    events = spread(TOKENS * LAYERS, TOP_K, MISSES)
    return Measured(TOKENS, TOP_K, RECORD, events, 4_970_000_000, time, time - faster,
                    parse_discipline("split:3"), parse_discipline("split:1"))  # fmt: skip


@cache
def fitted(before: int, after: int, lanes: int) -> Hardware:
    """The costs under which the pair comes out."""
    return calibrated(report(before, after), attrs.evolve(DS4, storage=attrs.evolve(DS4.storage, lanes=lanes)))


def speed(before: int, after: int, lanes: int, name: str) -> float:
    """Tokens a second of that pair's costs under another discipline."""
    return report(before, after).forecast(fitted(before, after, lanes), parse_discipline(name)).speed


def test_independent_misses_are_spread_over_the_events_exactly() -> None:
    events = spread(10_240, 6, 10_213)
    assert events == {0: 3442, 1: 4113, 2: 2051, 3: 545, 4: 82, 5: 7, 6: 0}
    assert sum(events.values()) == 10_240
    assert sum(missing * count for missing, count in events.items()) == 10_213
    for misses in range(41):
        found = spread(10, 4, misses)
        assert (sum(found.values()), sum(m * n for m, n in found.items())) == (10, misses)
        assert min(found.values()) >= 0


@pytest.mark.parametrize("asked", [(10, 6, -1), (10, 6, 61), (0, 6, 0), (10, 0, 0)])
def test_misses_that_no_events_have_are_not_spread(asked: tuple[int, int, int]) -> None:
    with pytest.raises(CannotCalibrate, match="Cure"):
        spread(*asked)


@pytest.mark.parametrize("run", RUNS, ids=str)
@pytest.mark.parametrize("lanes", WORLDS.values(), ids=WORLDS)
def test_the_measured_speeds_come_out(run: tuple[int, int], lanes: int) -> None:
    assert speed(*run, lanes, "split:3") == pytest.approx(run[0] / 100, abs=0.001)
    assert speed(*run, lanes, "split:1") == pytest.approx(run[1] / 100, abs=0.001)
    wall = report(*run).forecast(fitted(*run, lanes), Discipline()).total.read_wall
    assert wall / TOKENS / 1e6 == pytest.approx(19.4, abs=0.05)


@pytest.mark.parametrize(("run", "saved"), [(RUNS[0], 5.2), (RUNS[1], 7.3)], ids=str)
def test_what_the_threshold_saved_is_the_residents_first_stage(run: tuple[int, int], saved: float) -> None:
    # Layers with one or two misses are newly split: each hides the gate and up of its five or four residents.
    machine, events = fitted(*run, 1), report(*run).events
    newly = events[1] * 5 + events[2] * 4
    assert newly * machine.costs.gate_up / TOKENS / 1e6 == pytest.approx(saved, abs=0.05)
    assert (events[1] + events[2]) / TOKENS == pytest.approx(24.1, abs=0.05)


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_both_worlds_of_reads_explain_the_figures_with_the_same_compute(run: tuple[int, int]) -> None:
    shared, apart = (fitted(*run, lanes) for lanes in WORLDS.values())
    assert (shared.costs.gate_up, shared.costs.down) == (apart.costs.gate_up, apart.costs.down)
    assert shared.storage.bandwidth / 2**30 == pytest.approx(19.05, abs=0.01)  # 94.67 GiB in 4.97 s
    assert apart.storage.bandwidth > 2 * shared.storage.bandwidth


@pytest.mark.parametrize(
    ("run", "lanes", "staged", "pipelined", "free"),
    [
        (RUNS[0], 1, 10.24, 10.45, 10.62),
        (RUNS[0], 9, 10.26, 10.45, 10.65),
        (RUNS[1], 1, 10.18, 10.46, 10.57),
        (RUNS[1], 9, 10.27, 10.54, 10.82),
    ],
)
def test_what_staged_and_pipelined_would_add(
    run: tuple[int, int], lanes: int, staged: float, pipelined: float, free: float
) -> None:
    found = [speed(*run, lanes, name) for name in ("staged", "pipelined", "free")]
    assert found == pytest.approx([staged, pipelined, free], abs=0.006)
    assert run[1] / 100 < found[0] < found[1] < found[2]


def overheaded(run: tuple[int, int], **overhead: int) -> tuple[int, list[float]]:
    """Gate and up as fitted where batches cost something, and the tokens a second of staged and pipelined then."""
    machine = calibrated(report(*run), attrs.evolve(DS4, costs=Costs(**overhead)))
    speeds = [report(*run).forecast(machine, parse_discipline(name)).speed for name in ("staged", "pipelined")]
    return machine.costs.gate_up, speeds


@pytest.mark.parametrize(("run", "moved"), [(RUNS[0], [-0.055, -0.026]), (RUNS[1], [-0.054, -0.062])], ids=str)
def test_a_launch_beside_the_reads_leaves_the_fit_and_slows_who_launches_more(
    run: tuple[int, int], moved: list[float]
) -> None:
    gate_up, speeds = overheaded(run, dispatch=20_000)
    assert gate_up == fitted(*run, 1).costs.gate_up == overheaded(run, dispatch=50_000)[0]
    before = [speed(*run, 1, name) for name in ("staged", "pipelined")]
    assert [after - was for after, was in zip(speeds, before, strict=True)] == pytest.approx(moved, abs=0.001)


@pytest.mark.parametrize(("run", "moved"), [(RUNS[0], [-0.055, 0.010]), (RUNS[1], [-0.054, -0.053])], ids=str)
def test_a_handoff_asks_for_dearer_experts_whose_down_pipelining_hides(
    run: tuple[int, int], moved: list[float]
) -> None:
    gate_up, speeds = overheaded(run, handoff=20_000)
    assert gate_up - fitted(*run, 1).costs.gate_up == 4285
    before = [speed(*run, 1, name) for name in ("staged", "pipelined")]
    assert [after - was for after, was in zip(speeds, before, strict=True)] == pytest.approx(moved, abs=0.001)


def test_misses_that_cluster_leave_less_to_hide_and_need_dearer_experts() -> None:
    even = report(*RUNS[0])
    clustered = attrs.evolve(even, events={0: 5_439, 1: 1_796, 2: 1_400, 3: 1_000, 4: 430, 5: 153, 6: 22})
    assert sum(missing * count for missing, count in clustered.events.items()) == MISSES
    assert sum(clustered.events.values()) == TOKENS * LAYERS
    costs = [calibrated(each, DS4).costs.gate_up for each in (even, clustered)]
    assert costs[1] > 1.5 * costs[0]


def test_the_shipped_machine_is_the_calibration_of_the_first_pair() -> None:
    shipped, found = load_hardware("builtin:ds4-m5-pro"), fitted(*RUNS[0], 1)
    assert (shipped.costs, shipped.storage) == (found.costs, found.storage)
    assert (shipped.gate_up, shipped.down) == (found.gate_up, found.down)


def test_figures_that_no_costs_explain_are_refused() -> None:
    good = report(*RUNS[0])
    for wrong in (
        attrs.evolve(good, saved=good.read_wall),  # more than all that there is to hide
        attrs.evolve(good, read_wall=0),
        attrs.evolve(good, time=good.read_wall),
    ):
        with pytest.raises(CannotCalibrate, match="Cure"):
            calibrated(wrong, DS4)
