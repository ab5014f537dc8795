"""The benchmark's arithmetic, traces, tables and picture; that it measures is not tested, nor how fast anything is."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.benchmarks import __main__ as command
from tests.benchmarks import plot
from tests.benchmarks.floors import BY_TOUCHES, floor
from tests.benchmarks.growth import Growth, exponent, growth, logarithm
from tests.benchmarks.measuring import commands, costs, growing, speeds
from tests.benchmarks.peers import PEERS
from tests.benchmarks.tables import growth_table, speed_table
from tests.benchmarks.traces import CAPACITIES, steady

from expertcache_spec.eviction import POLICIES
from expertcache_spec.model import Budget
from expertcache_spec.replay import replay

MADE = {
    "lru": {64: 1.0, 1024: 1.0, 15_360: 2.0},
    "square root": {64: 8.0, 1024: 32.0, 15_360: 123.935},
}
"""Microseconds by capacity."""
ROOT = Path(__file__).parents[2]


def printed(table: object) -> str:
    console = Console(width=200, record=True, file=StringIO())
    console.print(table)
    return console.export_text()


def test_every_policy_and_every_peer_is_a_contender() -> None:
    found = commands(tuple(POLICIES), 256, Path("trace"))
    assert found.keys() == {*POLICIES, *PEERS, "lru, contracts on"}
    assert {name for name, (_, contracts) in found.items() if contracts == "on"} == {"lru, contracts on"}
    assert growing(tuple(POLICIES), 10).keys() == POLICIES.keys()
    assert POLICIES.keys() > BY_TOUCHES


def test_the_floor_is_half_the_plugin_or_what_the_order_costs() -> None:
    assert [floor("lru", 3.0), floor("lru", None), floor("fifo", 1.5)] == [1.5, 0.3, 0.75]
    assert [floor("lfu", None), floor("lfru", 3.0), floor("belady", None)] == [0.3, 0.1, 0.1]


def test_a_fit_finds_the_power_that_made_the_costs() -> None:
    assert exponent(MADE["square root"]) == pytest.approx(0.5, abs=0.001)
    assert exponent({64: 3.0, 15_360: 3.0}) == 0
    assert logarithm({64: 1.0, 15_360: 1.0}) == pytest.approx(2.318, abs=0.001)


def test_growth_is_held_against_that_of_lru() -> None:
    found = growth(MADE)
    assert found["lru"].beside_baseline == 1
    assert found["square root"].factor == pytest.approx(15.49, abs=0.01)
    assert found["square root"].beside_baseline == pytest.approx(7.75, abs=0.01)
    assert growth({"lfu": MADE["lru"]})["lfu"].beside_baseline is None


def test_the_median_of_rounds_is_kept_for_speed_and_the_least_for_growth() -> None:
    runs = [{"seconds": seconds, "misses": 5} for seconds in (9.0, 1.0, 2.0)]
    assert speeds({"lru": runs, "absent": []}) == {"lru": {"seconds": 2.0, "misses": 5}}
    both = [{str(slots): {"seconds": seconds} for slots in CAPACITIES} for seconds in (2.0, 1.0)]
    assert costs({"lru": both}, 1_000_000)["lru"] == {str(slots): 1.0 for slots in CAPACITIES}


def test_what_misses_its_floor_is_marked() -> None:
    seconds = {"libcachesim_plugin_lru": 1.0, "lru": 2.5, "lfru": 9.0, "belady": 11.0}
    text = printed(speed_table(1_000_000, {name: {"seconds": each, "misses": 7} for name, each in seconds.items()}))
    assert {line.split()[0] for line in text.splitlines() if "!" in line} == {"lru", "belady"}
    assert "square root" in printed(growth_table(growth(MADE)))


def test_under_lru_half_of_the_lookups_of_the_growth_trace_hit_at_the_smallest_capacity() -> None:
    trace, warm = steady(64, 3_200)
    assert (len(trace.geometry.routed) * trace.geometry.experts, warm) == (128, 32)
    total = replay(trace, "lru", Budget(slots=64)).total
    assert 0.45 < total.hits / total.lookups < 0.55


def kept(folder: Path) -> Path:
    """A file of what was measured."""
    path = folder / "kept.json"
    path.write_text(json.dumps({"lookups": 10, "speed": {}, "growth": MADE}))
    return path


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def test_the_picture_is_drawn_whole_or_its_absence_is_said(tmp_path: Path) -> None:
    picture = tmp_path / "growth.svg"
    console = Console(width=200, record=True, file=StringIO())
    command.show(json.loads(kept(tmp_path).read_text()), picture, console)
    assert "square root" in console.export_text(clear=False)
    if find_spec("matplotlib") is None:
        assert "pip install" in console.export_text()
        assert not picture.exists()
        return
    first = picture.read_bytes()
    assert b"</svg>" in first
    plot.draw(growth(MADE), picture)
    assert picture.read_bytes() == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["growth.svg", "kept.json"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--plot", "growth.gif"), "a plot ends in"),
        (("--save", "no/such/folder.json"), "its folder does not exist"),
        (("--load", "no-such-file.json"), "Cure: a file that --save has written"),
        (("--load", "pyproject.toml"), "Cure: a file that --save has written"),
        (("--policy", "least-recent"), "invalid choice"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_measured(arguments: tuple[str, ...], said: str) -> None:
    done = run(*arguments)
    assert done.returncode != 0
    assert said in done.stderr


def test_an_interrupt_ends_it_and_leaves_nothing(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks", "--policy", "lru", "--save", str(tmp_path / "kept.json")],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "measuring; Ctrl-C ends it\n"
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert (process.returncode, rest.strip()) == (130, "interrupted: nothing is written")
    assert list(tmp_path.iterdir()) == []


def test_the_run_that_the_book_shows_has_every_policy_and_every_peer() -> None:
    found = json.loads((ROOT / "docs" / "bench.json").read_text(encoding="utf-8"))
    assert found["speed"].keys() == {*POLICIES, *PEERS, "lru, contracts on"}
    assert found["growth"].keys() == POLICIES.keys()
    assert all(costs.keys() == {str(slots) for slots in CAPACITIES} for costs in found["growth"].values())
    picture = (ROOT / "docs" / "growth.svg").read_text(encoding="utf-8")
    assert all(f"<!-- {policy}  ^{each.exponent:.2f} -->" in picture for policy, each in shown(found).items())


def shown(found: dict[str, Any]) -> dict[str, Growth]:
    """What the growth of a kept run says."""
    return growth({policy: {int(slots): cost for slots, cost in by.items()} for policy, by in found["growth"].items()})
