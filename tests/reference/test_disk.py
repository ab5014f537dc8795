"""Cold and warm reads are told apart by evidence: on a simulated machine to the nanosecond, and on this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import attrs
import pytest

from expertcache_reference.disk import (
    CONDITIONS,
    CannotMeasure,
    Claim,
    Evidence,
    Line,
    Plan,
    Point,
    read_claim,
    scratch,
    summary,
    sweep,
    verdict,
)
from expertcache_reference.disk.places import places
from expertcache_reference.system import this_machine
from expertcache_reference.system.simulated import Device, Faults, Simulation, simulated
from expertcache_spec.errors import ExpertCacheError, InvalidBudget

from .running import ROOT, run, run_json, waited_for

PAGE, RECORD = 4096, 4 * 4096
WEIGHTS = bytes(range(256)) * (20 * RECORD // 256)
FILES = {"weights": WEIGHTS}
SMALL = Plan(RECORD, records=8, chunks=(1, 4), workers=(1, 4), rounds=2)


def on(plan: Plan = SMALL, **simulation: Any) -> list[Point]:
    """The sweep on a simulated machine whose device takes 1 ns a byte and 1000 ns a request, in four lanes."""
    device = Device(latency=1000, bandwidth=10**9, lanes=4)
    with simulated(Simulation(FILES, page=PAGE, device=device, **simulation)) as machine:
        return list(sweep(machine, Path("weights"), plan))


@pytest.mark.rule("XC-PAGE-003", "XC-PAGE-004")
def test_each_condition_is_what_its_evidence_says() -> None:
    points = on()
    assert len(points) == 2 * 2 * 2 * 3
    asked = 8 * RECORD
    for point in points:
        warm = point.condition == "warm"
        assert point.evidence == Evidence(asked, 0 if warm else asked, asked if warm else 0, PAGE if warm else 0)
        assert point.evidence.state == ("warm" if warm else "cold")
        assert point.requests == 8 * point.chunks


@pytest.mark.rule("XC-FANOUT-001")
def test_a_fan_out_is_as_fast_as_its_chunks_its_workers_and_the_lanes_allow() -> None:
    times = {(p.chunks, p.workers, p.condition): p.nanoseconds for p in on()}
    assert times[1, 1, "cold"] == times[1, 4, "cold"] == 8 * (1000 + RECORD)
    assert times[4, 1, "cold"] == 8 * 4 * (1000 + PAGE)
    assert times[4, 4, "cold"] == times[4, 4, "past"] == 8 * (1000 + PAGE)
    assert {times[chunks, workers, "warm"] for chunks in (1, 4) for workers in (1, 4)} == {0}


def test_odd_rounds_go_backwards() -> None:
    points = SMALL.points()
    forth, back = points[: len(points) // 2], points[len(points) // 2 :]
    assert [point[1:] for point in forth] == [point[1:] for point in reversed(back)]
    assert len(set(forth)) == len(forth) == 12


def test_records_asked_for_together_share_the_workers() -> None:
    plan = Plan(RECORD, records=8, at_once=4, chunks=(1,), workers=(4,), conditions=("cold",), rounds=1)
    assert [point.nanoseconds for point in on(plan)] == [2 * (1000 + RECORD)]
    odd = Plan(RECORD, records=7, at_once=4, chunks=(1,), workers=(4,), conditions=("cold",), rounds=1)
    assert [(point.records, point.nanoseconds) for point in on(odd)] == [(7, 2 * (1000 + RECORD))]


@pytest.mark.rule("XC-PAGE-003")
def test_a_machine_that_does_not_say_gives_unknown_and_no_verdict() -> None:
    points = on(says=False)
    assert {point.evidence.state for point in points} == {"unknown"}
    assert {point.evidence[1:] for point in points} == {(None, None, None)}
    lines = summary(points)
    assert {line.state for line in lines} == {"unknown"}
    assert verdict(lines, Claim(10**12, 1.0))[0] == "unknown"


@pytest.mark.rule("XC-PAGE-003")
@pytest.mark.parametrize(
    ("evidence", "state"),
    [
        (Evidence(100, 100, 0, 0), "cold"),
        (Evidence(100, 100, None, None), "unknown"),
        (Evidence(100, 100, None, 0), "unknown"),
        (Evidence(100, 100, None, 16), "mixed"),
        (Evidence(100, 4096, 0, None), "cold"),
        (Evidence(100, 100, 16, 0), "mixed"),
        (Evidence(100, 100, 0, 16), "mixed"),
        (Evidence(100, 99, 0, 0), "mixed"),
        (Evidence(100, 0, 100, 16), "warm"),
        (Evidence(100, 0, 0, 0), "warm"),
        (Evidence(100, None, 0, 0), "unknown"),
        (Evidence(100, None, 100, 16), "unknown"),
    ],
)
def test_no_run_is_cold_against_its_evidence(evidence: Evidence, state: str) -> None:
    assert evidence.state == state


def test_where_nothing_can_be_dropped_a_second_run_is_not_called_cold() -> None:
    plan = Plan(RECORD, records=19, chunks=(1,), workers=(1,), conditions=("cold",), rounds=2)
    first, second = on(plan, faults=Faults(advice=False))
    assert (first.evidence.state, first.evidence.resident) == ("cold", 0)
    assert second.evidence.state in ("mixed", "warm")
    assert second.evidence.resident
    (held,) = on(attrs.evolve(plan, rounds=1), faults=Faults(advice=False), warm=("weights",))
    assert held.evidence == Evidence(19 * RECORD, 0, 19 * RECORD, PAGE)
    assert [point.evidence.state for point in on(plan)] == ["cold", "cold"]


def test_rounds_are_medians_and_their_evidence_is_summed() -> None:
    def point(number: int, time: int, physical: int | None) -> Point:
        return Point(number, 2, 4, "cold", 8, 16, time, Evidence(100, physical, 0, None))

    (line,) = summary([point(0, 30, 100), point(1, 10, 110), point(2, 20, 120)])
    assert line == Line("cold", 2, 4, 8, 20, 10, 100, Evidence(300, 330, 0, None), "cold")
    assert (line.rate, line.best) == (5e9, 10e9)
    assert summary([point(0, 30, 100), point(1, 10, 50)])[0].state == "mixed"
    assert summary([point(0, 30, 100), point(1, 10, None)])[0].state == "unknown"


def test_a_claim_above_what_is_cold_by_evidence_is_warm() -> None:
    lines = summary(on())
    fastest = max(line.best for line in lines if line.state == "cold")
    assert verdict(lines, Claim(int(fastest), 1.0))[0] == "possible"
    assert verdict(lines, Claim(int(fastest * 1.2), 1.0)) == (
        "warm",
        "3.86 GB/s is 1.2 times the fastest cold run, 3.22 GB/s: on this disk such reads are warm, at least in part",
    )
    slower = lines[0]._replace(nanoseconds=2 * lines[0].fastest, state="cold")
    assert verdict([slower], Claim(int(slower.best), 1.0))[0] == "possible", "the fastest round says what it can"
    assert read_claim("94.67GiB/4.97s") == Claim(101_651_138_478, 4.97)
    assert read_claim(" 2 GB / 4 ") == Claim(2 * 10**9, 4.0)


@pytest.mark.parametrize("text", ["", "5GB", "5GB/", "5GB/0s", "GB/5", "5/5", "5GB/x", "5GB/-1"])
def test_a_claim_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(CannotMeasure, match=r"94\.67GiB/4\.97s"):
        read_claim(text)


def test_a_claim_in_an_unknown_unit_is_refused() -> None:
    with pytest.raises(InvalidBudget, match="no size"):
        read_claim("5parsec/5s")


@pytest.mark.parametrize("size", [0, 1, 5000, 10_000, 12_287, 12_288, 100_000])
def test_places_share_no_page_and_lie_in_the_file(size: int) -> None:
    if size < 4096 * 2 + 4096:
        with pytest.raises(CannotMeasure, match="larger file"):
            places("f", size, 4096, 5000, 4, "0")
        return
    chosen, beside = places("f", size, 4096, 4096, 4, "0")
    pages = [extent.offset // 4096 for extent in [*chosen, beside]]
    assert 1 <= len(chosen) <= 4
    assert len(set(pages)) == len(pages)
    assert beside.offset == max(extent.offset for extent in [*chosen, beside])
    assert all(extent.offset % 4096 == 0 and extent.end <= size for extent in [*chosen, beside])
    assert places("f", size, 4096, 4096, 4, "0") == (chosen, beside)


def test_a_read_that_fails_leaves_nothing_open() -> None:
    with simulated(Simulation(FILES, page=PAGE, faults=Faults(end_at={"weights": 5 * RECORD}))) as machine:
        with pytest.raises(ExpertCacheError, match="weights"):
            list(sweep(machine, Path("weights"), SMALL))
        with pytest.raises(FileNotFoundError):
            list(sweep(machine, Path("nothing"), SMALL))


# ---------------------------------------------------------------------------------------------- on this machine


def test_a_scratch_file_is_whole_and_goes_whatever_happens(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    with scratch(tmp_path, 5 << 20, lambda done, of: told.append((done, of))) as path:
        assert path.stat().st_size == 5 << 20
        assert len(set(path.read_bytes()[:4096])) > 200
    assert told[-1] == (5 << 20, 5 << 20)
    with pytest.raises(ZeroDivisionError), scratch(tmp_path, 100):
        _ = 1 // 0
    with pytest.raises(CannotMeasure, match="no room"), scratch(tmp_path, 1 << 60):
        pass
    with pytest.raises(CannotMeasure, match="folder that can be written"), scratch(tmp_path / "no", 1):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_scratch_file_whose_maker_was_killed_goes_with_the_next_one(tmp_path: Path) -> None:
    command = ["-m", "expertcache_reference.cli", "io", str(tmp_path), "--scratch", "16MiB", "--rounds", "100000"]
    with subprocess.Popen([sys.executable, *command], stderr=subprocess.DEVNULL, cwd=ROOT) as child:
        waited_for(lambda: any(path.stat().st_size == 16 << 20 for path in tmp_path.iterdir()))
        with scratch(tmp_path, 100) as path:
            assert len(list(tmp_path.iterdir())) == 2
        child.kill()
    assert len(list(tmp_path.iterdir())) == 1
    with scratch(tmp_path, 100) as path:
        assert list(tmp_path.iterdir()) == [path]
    assert list(tmp_path.iterdir()) == []


SMALL_RUN = ("--scratch", "2MiB", "--record", "64KiB", "--records", "4", "--chunks", "1,2", "--workers", "2")


def test_the_command_says_every_run_and_keeps_both_kinds_of_bytes_apart(tmp_path: Path) -> None:
    said = run_json("io", tmp_path, *SMALL_RUN, "--rounds", "2", "--claim", "1TB/1s")
    assert len(said["runs"]) == 2 * 2 * len(CONDITIONS)
    assert [line["condition"] for line in said["lines"]] == ["cold"] * 2 + ["past"] * 2 + ["warm"] * 2
    for each in said["runs"]:
        assert each["evidence"]["application"] == 4 * 65_536
        assert each["nanoseconds"] > 0
        physical, resident = each["evidence"]["physical"], each["evidence"]["resident"]
        assert (each["state"] == "unknown") == (physical is None)
        assert each["state"] != "cold" or (physical >= 4 * 65_536 and not resident)
    assert said["claim"]["verdict"] in ("warm", "unknown")
    assert (said["page"], said["plan"]["rounds"]) == (this_machine().page, 2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("way", ["pread", "mmap"])
def test_the_command_prints_a_table_and_measures_a_file_of_ones_own(tmp_path: Path, way: str) -> None:
    path = tmp_path / "weights"
    path.write_bytes(bytes(range(256)) * 4096)
    ran = run("io", path, *SMALL_RUN, "--rounds", "1", "--way", way, "--claim", "1TB/1s")
    assert ran.code == 0, ran.err
    assert ran.out.count("│ cold") == 2
    assert ran.out.count("│ warm") == 2
    assert "claim: " in ran.out
    assert path.read_bytes() == bytes(range(256)) * 4096


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--record", "3MiB"), "larger file or a smaller record"),
        (("--record", "0B"), "give 1 byte or more"),
        (("--record", "5"), "write a number and a unit"),
        (("--chunks", "0"), "whole numbers from 1"),
        (("--workers", "1,1000000"), "a whole number from 1 to 256"),
        (("--workers", "a"), "is no whole number"),
        (("--conditions", "lukewarm"), "one of cold, past, warm"),
        (("--way", "telepathy"), "one of pread, mmap"),
        (("--claim", "fast"), "94.67GiB/4.97s"),
    ],
)
def test_a_command_line_that_cannot_be_measured_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    ran = run("io", tmp_path, *SMALL_RUN, *arguments)
    assert ran.code == 2
    assert words in " ".join(ran.err.replace("│", " ").split())
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    ran = run("io", tmp_path / "nothing", *SMALL_RUN)
    assert (ran.code, "No such file" in ran.err) == (2, True)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    ran = run("io", tmp_path / "pipe", *SMALL_RUN)
    assert (ran.code, "neither a folder nor a regular file" in ran.err) == (2, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_nothing_is_left_behind(tmp_path: Path, number: signal.Signals) -> None:
    command = ["-m", "expertcache_reference.cli", "io", str(tmp_path), "--scratch", "16MiB", "--rounds", "100000"]
    with subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as child:
        waited_for(lambda: any(path.stat().st_size == 16 << 20 for path in tmp_path.iterdir()))
        time.sleep(0.3)
        child.send_signal(number)
        _, said = child.communicate(timeout=60)
    assert child.returncode == 128 + number
    assert "nothing half-written is left" in said
    assert list(tmp_path.iterdir()) == []
