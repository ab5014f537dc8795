"""`expertcache replay`, through the real command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from expertcache_spec.eviction import POLICIES
from expertcache_spec.residency import SETTINGS

from .files import CODE_CS, CSV, GEMMA, INSTRUCT_FACTS, QWEN, csv_lines, dumped, put, request
from .running import process, run, run_json

CLI = ("-m", "expertcache_reference.cli")
COUNTS = ("lookups", "hits", "evictions", "bytes_read", "peak_bytes")
PUBLISHED = {QWEN: (39526, 29597, 8469, 28535648256, 4387774464), GEMMA: (24578, 18872, 4645, 22585964544, 4467606528)}


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return put(tmp_path / "tiny.csv", CSV)


@pytest.mark.rule("XC-ENGINE-001", "XC-RES-025", "XC-METRIC-011")
@pytest.mark.parametrize("source", PUBLISHED, ids=lambda path: path.name)
def test_the_published_counts_come_out(source: Path) -> None:
    result = run_json("replay", source, "--policy", "lru", "--budget", "4000MiB", "--room", "trim")
    assert tuple(result[name] for name in COUNTS) == PUBLISHED[source]


@pytest.mark.rule("XC-ENGINE-001")
@pytest.mark.parametrize("source", PUBLISHED, ids=lambda path: path.name)
def test_the_profile_reproduces_every_recorded_key(source: Path) -> None:
    result = run_json("replay", source, "--budget", "4000MiB", "--profile", "bigmoe-on-edge", "--against-recording")
    assert result["against_recording"] == {"keys": PUBLISHED[source][0], "mismatches": 0, "first": []}
    assert tuple(result[name] for name in COUNTS) == PUBLISHED[source]


@pytest.mark.rule("XC-ENGINE-001")
@pytest.mark.parametrize(
    ("source", "options", "mismatches"),
    [
        (QWEN, ("--repeats", "ignore"), 7),
        (GEMMA, ("--repeats", "ignore"), 5),
        (QWEN, ("--policy", "fifo"), 4249),
        (GEMMA, ("--policy", "fifo"), 2345),
    ],
)
def test_a_near_miss_differs_and_exits_with_1(source: Path, options: tuple[str, str], mismatches: int) -> None:
    ran = run("replay", source, "--budget", "4000MiB", "--profile", "bigmoe-on-edge", *options, "--against-recording",
              "--json")  # fmt: skip
    compared = json.loads(ran.out)["against_recording"]
    assert ran.code == 1
    assert compared["mismatches"] == mismatches
    assert len(compared["first"]) == min(mismatches, 10)
    assert f"{mismatches} of" in ran.err


@pytest.mark.rule("XC-RES-001", "XC-RES-010")
def test_room_reserve_judges_the_recorded_keys_alike_and_stays_within_the_budget() -> None:
    """Evict-before-load differs in 9 rows of this trace where it goes key by key; a whole event leases its hits."""
    options = ("--budget", "4000MiB", "--profile", "bigmoe-on-edge", "--room", "reserve", "--against-recording")
    result = run_json("replay", GEMMA, *options)
    assert result["against_recording"]["mismatches"] == 0
    assert result["peak_bytes"] <= 4000 * 2**20 < PUBLISHED[GEMMA][-1]


def test_a_mismatch_is_printed_with_its_place(tmp_path: Path) -> None:
    lines = csv_lines()
    lines[15] = "0,1,3,0,0,1,0.6,0,100"
    path = put(tmp_path / "t.csv", "\n".join(lines))
    ran = run("replay", path, "--budget", "9kB", "--profile", "bigmoe-on-edge", "--against-recording")
    assert ran.code == 1
    assert "recording: 1 of 13 keys differ" in ran.out
    assert "stream 0 pass 2 layer 0 expert 1: recorded miss of 100 bytes, replayed hit of 0 bytes" in ran.out


@pytest.mark.rule("XC-EVICT-004")
def test_below_one_token_cycle_a_global_lru_never_hits() -> None:
    ran = process(*CLI, "replay", INSTRUCT_FACTS, "--slots", 76, "--policy", "lru", "--json", contracts="off")
    result = json.loads(ran.out)
    assert (result["lookups"], result["misses"], result["hits"]) == (127_776, 127_776, 0)
    assert "below one token cycle" in ran.err
    assert any("below one token cycle" in warning for warning in result["warnings"])


@pytest.mark.nightly
@pytest.mark.rule("XC-EVICT-004")
def test_below_one_token_cycle_all_708192_lookups_of_code_cs_miss() -> None:
    ran = process(*CLI, "replay", CODE_CS, "--slots", 76, "--policy", "lru", "--json", contracts="off")
    result = json.loads(ran.out)
    assert (result["lookups"], result["misses"]) == (708_192, 708_192)


def test_json_is_one_object_and_warnings_are_in_it_and_on_stderr(tiny: Path) -> None:
    ran = run("replay", tiny, "--policy", "lru", "--slots", "3", "--json")
    result = json.loads(ran.out)
    assert (result["per_layer"]["0"]["lookups"], result["per_phase"]["prefill"]["lookups"]) == (7, 5)
    assert result["manifest"]["settings"]["room"] == "reserve"
    assert len(result["warnings"]) == 1
    assert result["warnings"][0] in ran.err


def test_the_table_shows_every_phase_and_the_effective_configuration(tiny: Path) -> None:
    ran = run("replay", tiny, "--policy", "lfu", "--slots", "9", "--budget", "1kB", "--touch", "hits_first")
    assert ran.code == 0
    assert "policy    lfu, event replay, budget 9 slots and 1.00 kB (1000 bytes)" in ran.out
    assert "touch hits_first" in ran.out
    assert all(word in ran.out for word in ("prefill", "decode-first-token", "decode", "total", "bytes_read"))


@pytest.mark.rule("XC-MODEL-003")
def test_of_slots_and_budget_the_tighter_wins(tiny: Path) -> None:
    both = run_json("replay", tiny, "--policy", "lru", "--slots", "9", "--budget", "900B")
    assert both["peak_bytes"] <= 900
    both = run_json("replay", tiny, "--policy", "lru", "--slots", "4", "--budget", "1GB")
    assert both["peak_slots"] == 4


@pytest.mark.rule("XC-RES-014")
@pytest.mark.parametrize("policy", POLICIES)
def test_capacity_zero_serves_everything_and_keeps_nothing(policy: str, tiny: Path) -> None:
    for budget in (("--slots", "0"), ("--budget", "0B")):
        ran = run("replay", tiny, "--policy", policy, *budget, "--json")
        result = json.loads(ran.out)
        assert (ran.code, result["hits"], result["bypassed"], result["peak_slots"]) == (0, 0, 13, 0)
        assert "capacity 0" in ran.err


def test_an_explicit_option_wins_over_the_profile_even_at_its_default(tiny: Path) -> None:
    start = ("replay", tiny, "--budget", "1kB", "--profile", "bigmoe-on-edge")
    assert run_json(*start)["manifest"]["settings"]["room"] == "trim"
    explicit = run_json(*start, "--room", "reserve", "--policy", "fifo")["manifest"]
    assert (explicit["settings"]["room"], explicit["policy"]) == ("reserve", "fifo")


@pytest.mark.rule("XC-REPLAY-003")
def test_sequential_replay_looks_up_every_selection(tiny: Path) -> None:
    result = run_json("replay", tiny, "--policy", "lru", "--slots", "8", "--replay", "sequential")
    assert (result["lookups"], result["manifest"]["replay"]) == (14, "sequential")


def test_record_sizes_may_be_one_number_a_size_or_one_for_each_layer(tiny: Path) -> None:
    sizes = {"10": 10 * 7, "1kB": 1000 * 7, "10,20": 10 * 4 + 20 * 3}
    for text, read in sizes.items():
        result = run_json("replay", tiny, "--policy", "lru", "--slots", "99", "--record-bytes", text)
        assert result["bytes_read"] == read


def test_record_sizes_that_are_not_those_of_the_file_are_warned_about(tiny: Path) -> None:
    options = ("replay", tiny, "--policy", "lru", "--slots", "99", "--record-bytes")
    said = "the file states records of 100, 300 bytes, and 10 bytes were given: the given sizes are used"
    ran = run(*options, "10", "--json")
    assert f"WARNING: {said}" in ran.err
    assert said in json.loads(ran.out)["warnings"]
    assert run(*options, "100,300").err == ""
    unsized = put(tiny.with_name("unsized.jsonl"), dumped([request()]))
    assert run("replay", unsized, "--policy", "lru", "--slots", "999", "--record-bytes", "10").err == ""


USAGE: dict[str, tuple[tuple[str, ...], str]] = {
    "unknown policy": (("--policy", "lur", "--slots", "3"), f"policy 'lur'. Cure: one of {', '.join(POLICIES)}"),
    "no policy": (("--slots", "3"), "no policy. Cure: one of"),
    "unknown profile": (("--profile", "ds5", "--slots", "3"), "engine profile 'ds5'. Cure: one of bigmoe-on-edge"),
    "unknown replay": (("--policy", "lru", "--slots", "3", "--replay", "fast"), "one of event, sequential"),
    "no budget": (("--policy", "lru"), "neither slots nor bytes. Cure: give --slots"),
    "bare number as a budget": (("--policy", "lru", "--budget", "4000"), "no size '4000'"),
    "a budget of more digits than any": (("--policy", "lru", "--budget", "9" * 20 + "GiB"), "has too many digits"),
    "negative slots": (("--policy", "lru", "--slots", "-1"), "slots is -1"),
    "event too large": (("--policy", "lru", "--slots", "1"), "distinct experts, room for"),
    "record sizes of another model": (("--policy", "lru", "--slots", "9", "--record-bytes", "1,2,3"), "list 2 whole"),
    "record size without a unit": (("--policy", "lru", "--slots", "9", "--record-bytes", "1.5"), "no size '1.5'"),
    "refusable with a policy that cannot": (
        ("--policy", "lru", "--slots", "9", "--admission", "refusable"), "cannot refuse"),
    "recording in sequential replay": (
        ("--policy", "lru", "--slots", "9", "--replay", "sequential", "--against-recording"), "--replay event"),
    **{
        f"unknown {name}": (
            ("--policy", "lru", "--slots", "9", f"--{name.replace('_', '-')}", "odd"),
            f"{name} 'odd'. Cure: one of {', '.join(values)}")
        for name, values in SETTINGS.items()
    },
}  # fmt: skip


@pytest.mark.rule("XC-EVICT-001", "XC-MODEL-005")
@pytest.mark.parametrize("name", USAGE)
def test_a_bad_configuration_exits_with_2_and_says_the_cure(name: str, tiny: Path) -> None:
    options, expected = USAGE[name]
    ran = run("replay", tiny, *options)
    assert ran.code == 2
    assert expected in " ".join(ran.err.replace("│", " ").split())
    assert ran.out == ""


@pytest.mark.rule("XC-MODEL-004")
def test_a_byte_budget_without_record_sizes_is_refused() -> None:
    ran = run("replay", INSTRUCT_FACTS, "--policy", "lru", "--budget", "1GB")
    assert (ran.code, ran.out) == (2, "")
    assert "record size of this model is unknown" in ran.err
    assert "Cure: state the bytes of one record with --record-bytes, or budget in slots" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_bad_trace_exits_with_1_in_one_line(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", CSV.replace("0,0,1,0,0,1", "0,0,1,0,0,9"))
    ran = run("replay", path, "--policy", "lru", "--slots", "9")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"expertcache: {path}:8: expert 9 of 0 to 3")
    assert len(ran.err.splitlines()) == 1


def test_a_trace_without_recording_cannot_be_compared_with_one() -> None:
    ran = run(
        "replay", INSTRUCT_FACTS, "--policy", "lru", "--slots", "99", "--record-bytes", "1", "--against-recording"
    )
    assert (ran.code, ran.out) == (1, "")
    assert "no recording to compare with" in ran.err


def test_an_interrupt_exits_with_130_and_no_traceback() -> None:
    program = f"""
import os, signal, sys
from expertcache_reference.cli import main
from expertcache_spec.residency.ledger import Ledger
served, seen = Ledger.served, []
def interrupted(ledger, event, *booked):
    seen.append(event)
    if len(seen) == 1000:
        os.kill(os.getpid(), signal.SIGINT)
    return served(ledger, event, *booked)
Ledger.served = interrupted
sys.argv = ["expertcache", "replay", {str(GEMMA)!r}, "--policy", "lru", "--slots", "500"]
main()
"""
    ran = process("-c", program)
    assert (ran.code, ran.out) == (130, "")
    assert ran.err.splitlines() == ["expertcache: interrupted; nothing half-written is left"]
