"""`expertcache whatif` and `expertcache timeline`, through the real command line."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from expertcache_reference.traces import write_trace
from expertcache_spec.trace import decode_trace

from .files import GEMMA
from .running import ROOT, run, run_json

ON = ("--hardware", "builtin:ds4-m5-pro", "--policy", "lru", "--budget", "4000MiB")


@pytest.mark.rule("XC-SCHED-022", "XC-SCHED-008")
def test_whatif_gives_every_discipline_and_threshold_with_its_parts() -> None:
    found = run_json("whatif", GEMMA, *ON)
    rows = {row["discipline"]: row for row in found["rows"]}
    assert list(rows) == ["sync", *(f"split:{t}" for t in (5, 4, 3, 2, 1)), "staged", "pipelined", "free"]
    for row in rows.values():
        assert row["makespan"] == row["compute"] + row["overhead"] + row["exposed"]
        assert row["read_wall"] == row["exposed"] + row["hidden"]
    times = [rows[f"split:{t}"]["makespan"] for t in (1, 2, 3, 4, 5)]
    assert times == sorted(times)
    assert rows["free"]["makespan"] < rows["pipelined"]["makespan"] < times[0] < times[-1] < rows["sync"]["makespan"]
    assert len({row["read_wall"] for name, row in rows.items() if name.startswith("s") and name != "staged"}) == 1
    assert found["manifest"]["policy"] == "lru"
    assert found["hardware"]["storage"]["workers"] == 9


def test_whatif_prints_a_table_of_milliseconds_a_token() -> None:
    ran = run("whatif", GEMMA, *ON, "--disciplines", "sync,split:2", "--min-tokens", "4")
    assert ran.code == 0
    assert "tokens of" in ran.out
    assert [line.split()[1] for line in ran.out.splitlines() if line.startswith("│")] == ["sync", "split:2"]


def test_fewer_slots_are_slower() -> None:
    speeds = [
        run_json("whatif", GEMMA, "--hardware", "builtin:ds4-m5-pro", "--policy", "lru", "--slots", slots,
                 "--disciplines", "sync")["rows"][0]["makespan"]
        for slots in (400, 1600)
    ]  # fmt: skip
    assert speeds[0] > speeds[1]


@pytest.mark.rule("XC-SCHED-008")
@pytest.mark.parametrize("policy", ["score", "probability-visits"])
def test_policies_that_look_at_weights_miss_as_often_as_in_a_replay(policy: str) -> None:
    given = ("builtin:tinymoe-italian", "--policy", policy, "--slots", "72")
    said = run("whatif", *given, "--hardware", "builtin:ds4-m5-pro", "--disciplines", "sync").out
    missed = run_json("replay", *given)["misses"]
    assert f"{missed} not resident, {missed} reads" in said


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Four decode tokens of one layer, each but the first with one resident of two experts; records of six pages."""
    trace = tmp_path / "tiny.jsonl"
    write_trace(decode_trace([[0, 1], [1, 2], [2, 3], [3, 4]], record_bytes=6 * 4096), trace)
    return trace


ON_TINY = ("--hardware", "builtin:ds4-m5-pro", "--policy", "lru", "--slots", "3")


def test_a_discipline_spelled_twice_is_one_row_of_both_commands(tiny: Path) -> None:
    for command in ("whatif", "timeline"):
        found = run_json(command, tiny, *ON_TINY, "--disciplines", "split,split:1,staged:1,sync,staged")
        assert [row["discipline"] for row in found["rows"]] == ["split:1", "staged", "sync"]


def test_the_guards_hold_in_a_timeline_too(tiny: Path) -> None:
    def rows(*guards: object) -> list[int]:
        found = run_json("timeline", tiny, *ON_TINY, "--pass", "2", "--disciplines", "sync,split:1", *guards)
        return [row["makespan"] for row in found["rows"]]

    sync, split = rows()
    assert split < sync
    assert rows("--min-tokens", 3, "--min-entries", 3) == [sync, split]  # the third token, with three records held
    assert rows("--min-tokens", 4) == rows("--min-entries", 4) == [sync, sync]


def test_a_fan_out_that_cuts_no_request_is_said(tiny: Path, tmp_path: Path) -> None:
    text = 'name = "a"\n[storage]\nbandwidth = 1000000000\n[record]\nfan_out = 8\n'
    (tmp_path / "large.toml").write_text(text)
    (tmp_path / "small.toml").write_text(text + "page = 4096\n")
    (tmp_path / "one.toml").write_text(text.replace("8", "1"))
    for command in ("whatif", "timeline"):
        for name, count in (("large", 1), ("small", 0), ("one", 0)):
            given = (tiny, "--hardware", tmp_path / f"{name}.toml", "--policy", "lru", "--slots", "3")
            assert run(command, *given).err.count("fan_out 8 cuts no request") == count
            assert sum("fan_out" in said for said in run_json(command, *given)["warnings"]) == count


def test_timeline_writes_a_trace_of_a_token_for_perfetto(tmp_path: Path) -> None:
    target = tmp_path / "token.json"
    found = run_json("timeline", GEMMA, *ON, "--pass", "3", "--disciplines", "sync,pipelined", "--to", target)
    assert [row["discipline"] for row in found["rows"]] == ["sync", "pipelined"]
    slices = [event for event in json.loads(target.read_text())["traceEvents"] if event["ph"] == "X"]
    assert sum(event["name"].startswith("route") and event["pid"] == 1 for event in slices) == 30
    refused = run("timeline", GEMMA, *ON, "--pass", "3", "--to", target)
    assert (refused.code, "the file exists" in refused.err) == (2, True)
    assert run("timeline", GEMMA, *ON, "--pass", "3", "--layer", "4", "--to", target, "--force").code == 0
    assert len(json.loads(target.read_text())["traceEvents"]) < len(slices)


def test_timeline_draws_a_layer(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="charts are in the extra `plot`")
    png, svg = tmp_path / "layer.png", tmp_path / "layer.svg"
    ran = run("timeline", GEMMA, *ON, "--pass", "2", "--layer", "3", "--to", png, "--to", svg)
    assert ran.code == 0, ran.err
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in svg.read_text()


def test_without_matplotlib_no_file_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ran = run("timeline", GEMMA, *ON, "--layer", "0", "--to", tmp_path / "a.json", "--to", tmp_path / "a.png")
    assert ran.code == 2
    assert "pip install 'expertcache[plot]'" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_every_target_is_looked_at_before_any_is_written(tmp_path: Path) -> None:
    taken, fine = tmp_path / "taken.json", tmp_path / "fine.json"
    taken.write_text("mine")
    for wrong, said in ((taken, "the file exists"), (fine, "named twice"), (tmp_path / "no" / "a.json", "cannot write"),
                        (tmp_path / "a.gif", "one of .png")):  # fmt: skip
        ran = run("timeline", GEMMA, *ON, "--layer", "0", "--to", fine, "--to", wrong)
        assert (ran.code, said in ran.err) == (2, True), ran.err
        assert [path.name for path in tmp_path.iterdir()] == ["taken.json"]
    assert taken.read_text() == "mine"


def test_a_small_cache_is_cured_by_an_option_that_is_there() -> None:
    small = ("--hardware", "builtin:ds4-m5-pro", "--policy", "lru", "--slots", "3", "--disciplines", "sync")
    for command in ("whatif", "timeline"):
        refused = run(command, GEMMA, *small)
        assert (refused.code, "overflow bypass or waves" in refused.err) == (2, True), refused.err
        assert run(command, GEMMA, *small, "--overflow", "bypass").code == 0


def test_the_lines_of_the_readme_run_as_they_are_written(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    lines = [line.split()[1:] for line in readme.splitlines() if re.match("    expertcache (whatif|timeline) ", line)]
    assert [line[0] for line in lines] == ["whatif", "timeline"]
    for line in lines:
        assert run(*line, "--disciplines", "sync").code == 0


@pytest.mark.parametrize("command", ["whatif", "timeline"])
def test_the_help_says_what_is_required(command: str) -> None:
    said = " ".join(run(command, "--help").out.replace("│", " ").split())
    assert "this or --profile is required" in said
    assert "this or --slots is required" in said


def test_only_events_that_miss_something_count_as_overlapped() -> None:
    found = run_json("whatif", GEMMA, *ON, "--disciplines", "split:1,free")
    split, free = (row["overlapped"] for row in found["rows"])
    assert 0 < split <= free < found["events"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--pass", "100000"), "has 129 passes"),
        (("--layer", "30"), "layers are"),
        (("--stream", "9"), "has 0 passes"),
        (("--to", "picture.gif"), "one of .png, .svg, .json"),
        (("--disciplines", "spilt"), "one of sync, split"),
        (("--disciplines", "free:3"), "free takes none"),
        (("--disciplines", "split:1000000000000000000000"), "from 1 to 1000000000"),
        (("--hardware", "builtin:abacus"), "builtin:ds4-m5-pro"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(arguments: tuple[str, ...], said: str) -> None:
    ran = run("timeline", GEMMA, *ON, *arguments)
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_times_need_the_size_of_a_record(tmp_path: Path) -> None:
    trace = tmp_path / "tiny.jsonl"
    write_trace(decode_trace([[0, 1], [1, 2]], record_bytes=None), trace)
    ran = run("whatif", trace, "--hardware", "builtin:ds4-m5-pro", "--policy", "lru", "--slots", "2")
    assert ran.code == 2
    assert "record size" in ran.err
    assert "state the bytes of one record with --record-bytes" in ran.err
    assert "budget in slots" not in ran.err
    assert run_json("whatif", trace, "--hardware", "builtin:ds4-m5-pro", "--policy", "lru", "--slots", "2",
                    "--record-bytes", "300")["tokens"] == 2  # fmt: skip
