"""`expertcache replay --hotlist`, and what a profile of ds4 makes of a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from expertcache_reference.traces import write_trace
from expertcache_spec.engines_ds4 import GIB
from expertcache_spec.model import Geometry
from expertcache_spec.trace import Event, Trace

from .files import put
from .running import run, run_json

COUNTED = "# ds4 selected-id hotlist v1\n1 3 50 0.5\n0 1 40\n9 9 30\n0 4 20\n1 3 10\n0 2 0\n1 0 5\n"
BUILT_IN = "layer\texpert\n1\t3\n0\t1\n9\t9\n0\t4\n1\t0\n"
KEYS = [[0, 4], [0, 1], [1, 0], [1, 3]]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Two layers, a prompt and one token; records of 100 bytes."""
    events = tuple(
        Event(layer, ((5,),), 0, number, phase)
        for number, phase in enumerate(("prefill", "decode"))
        for layer in (0, 1)
    )
    path = tmp_path / "t.jsonl"
    write_trace(Trace(Geometry(2, 8, 1, (100, 100)), events, "t"), path)
    return path


@pytest.fixture
def lists(tmp_path: Path) -> dict[str, Path]:
    """A list of one's own, and one as ds4 has built in."""
    return {"counted": put(tmp_path / "own.txt", COUNTED), "built-in": put(tmp_path / "flash.tsv", BUILT_IN)}


def seeds(found: dict[str, Any]) -> list[list[int]]:
    given: list[list[int]] = found["manifest"]["start"]["seeds"]
    return given


@pytest.mark.rule("XC-EVICT-190", "XC-EVICT-191", "XC-EVICT-192")
@pytest.mark.parametrize(
    ("which", "options", "formula", "lent"),
    [
        ("counted", ("--profile", "ds4-a"), "hits", [20, 40, 5, 50]),
        ("counted", ("--profile", "ds4-b"), "hits", [20, 40, 5, 50]),
        ("built-in", ("--profile", "ds4-a"), "rank", [4, 5, 3, 6]),
        ("built-in", ("--profile", "ds4-b"), "scaled", [21, 26, 16, 32]),
        ("built-in", ("--policy", "route-hotness"), "scaled", [21, 26, 16, 32]),
        ("counted", ("--profile", "ds4-b", "--formula", "rank"), "rank", [4, 5, 3, 6]),
    ],
)
def test_a_list_is_seeded_in_ds4s_order_by_the_formula_of_its_kind(
    trace: Path, lists: dict[str, Path], which: str, options: tuple[str, ...], formula: str, lent: list[int]
) -> None:
    found = run_json("replay", trace, "--slots", 6, "--hotlist", lists[which], *options)
    groups = [[KEYS[i], lent[i]] for i in (1, 0, 3, 2)]  # one group of six for each layer, in the list's order
    assert seeds(found) == [[*key, priority] for key, priority in groups]
    assert found["formula"] == formula
    assert found["peak_slots"] == 6


@pytest.mark.rule("XC-EVICT-193")
def test_as_many_are_preloaded_as_is_said_and_none_in_cold_mode(trace: Path, lists: dict[str, Path]) -> None:
    begin = ("replay", trace, "--profile", "ds4-a", "--slots", 3, "--hotlist", lists["built-in"])
    assert seeds(run_json(*begin)) == [[0, 1, 2], [0, 4, 1], [1, 3, 3]]
    assert seeds(run_json(*begin, "--preload", 2)) == [[0, 1, 1], [1, 3, 2]]
    cold = run_json(*begin, "--cold")
    assert cold["manifest"]["start"] is None
    plain = run_json("replay", trace, "--profile", "ds4-a", "--slots", 3)
    assert {**cold, "formula": None} == {**plain, "formula": None}
    assert (
        "start     2 seeds of 5 listed, 1 of records that the model does not have, lent 2 to 1 (rank)"
        in run(*begin, "--preload", 2).out
    )
    assert "start     0 seeds of 5 listed" in run(*begin, "--cold").out


@pytest.mark.rule("XC-EVICT-194")
def test_under_ds4_a_size_is_spent_as_ds4_does_and_a_count_is_not(trace: Path) -> None:
    found = run_json("replay", trace, "--profile", "ds4-b", "--budget", "2100B")
    assert found["plan"] == {"headroom_bytes": 1600, "full_layers": 0, "full_bytes": 0, "slots": 5}
    assert (found["manifest"]["slots"], found["manifest"]["bytes"]) == (5, None)
    both = run_json("replay", trace, "--profile", "ds4-b", "--budget", "2100B", "--slots", 3)
    assert both["manifest"]["slots"] == 3
    assert "plan" not in run_json("replay", trace, "--profile", "ds4-b", "--slots", 5)
    assert run_json("replay", trace, "--policy", "lru", "--budget", "2100B")["manifest"]["bytes"] == 2100
    said = run("replay", trace, "--profile", "ds4-b", "--budget", "2100B").out
    assert "start     5 slots beside 1600 bytes of prefill headroom" in said
    short = run("replay", trace, "--profile", "ds4-b", "--budget", "1600B")
    assert (short.code, "1600 bytes of prefill headroom" in short.err) == (2, True)


@pytest.mark.rule("XC-EVICT-195")
def test_full_layers_stay_and_take_no_seeds(trace: Path, lists: dict[str, Path]) -> None:
    begin = ("replay", trace, "--profile", "ds4-b", "--budget", "3300B", "--hotlist", lists["built-in"])
    found = run_json(*begin, "--full-layers", 2)
    assert found["plan"] == {"headroom_bytes": 1600, "full_layers": 1, "full_bytes": 800, "slots": 9}
    assert found["manifest"]["slots"] == 9 + 8
    assert found["manifest"]["start"]["resident"] == [[0, expert] for expert in range(8)]
    assert [key[:2] for key in seeds(found)] == [[1, 3], [1, 0]]
    assert (found["per_layer"]["0"]["hits"], found["per_layer"]["1"]["hits"]) == (2, 1)
    assert "and 1 whole layer of 800 bytes" in run(*begin, "--full-layers", 2).out


@pytest.fixture
def glm(tmp_path: Path) -> Path:
    """Four layers of 1 GiB each."""
    path = tmp_path / "glm.jsonl"
    events = tuple(Event(layer, ((5,),)) for layer in range(4))
    write_trace(Trace(Geometry(4, 8, 1, (GIB // 8,) * 4), events, "glm"), path)
    return path


@pytest.mark.rule("XC-EVICT-195")
@pytest.mark.parametrize(("profile", "layers"), [("ds4-a", 2), ("ds4-b", 0)])
def test_full_layers_on_auto_are_those_of_the_version(glm: Path, profile: str, layers: int) -> None:
    found = run_json("replay", glm, "--profile", profile, "--budget", "14GiB", "--full-layers", "auto")
    assert found["plan"]["full_layers"] == layers


@pytest.mark.rule("XC-EVICT-193", "XC-EVICT-195")
def test_no_more_is_preloaded_than_fits_beside_the_full_layers(glm: Path, lists: dict[str, Path]) -> None:
    found = run_json("replay", glm, "--profile", "ds4-a", "--budget", "5GiB", "--full-layers", 1, "--hotlist",
                     lists["built-in"])  # fmt: skip
    assert (found["plan"]["slots"], seeds(found)) == (16, [[1, 3, 16], [1, 0, 15]])


@pytest.mark.parametrize(
    ("text", "options", "code", "said"),
    [
        ("0 1\n", (), 1, "list.txt, line 1: no hotlist entry '0 1'. Cure: write: layer expert hits"),
        ("layer expert\n0 1\n0 1 7\n", (), 1, "list.txt, line 3: no hotlist entry '0 1 7'. Cure: write: layer expert"),
        (f"0 1 {'9' * 5000}\n", (), 1, "list.txt, line 1: no hotlist entry"),
        ("[[0, 1, 32]]", (), 1, "list.txt, line 1: no hotlist entry '[[0, 1, 32]]'"),
        (b"\xff\xfe", (), 1, "list.txt: no text in UTF-8. Cure: name a hotlist"),
        (None, (), 1, "list.txt: No such file or directory. Cure: name a hotlist"),
        ("layer expert\n0 1\n", ("--formula", "hits"), 1, "list.txt: a list without hits. Cure: --formula"),
        ("0 1 2\n", ("--formula", "percent"), 2, "--formula: formula 'percent'. Cure: one of scaled, rank, hits"),
        ("0 1 2\n", ("--preload", "-1"), 2, "--preload -1: a whole number from 0"),
        ("0 1 2\n", ("--full-layers", "1"), 2, "--full-layers: of a --budget, under --profile ds4-a or ds4-b"),
    ],
)  # fmt: skip
def test_a_bad_start_is_refused_with_its_place_and_cure(
    trace: Path, tmp_path: Path, text: str | bytes | None, options: tuple[str, ...], code: int, said: str
) -> None:
    path = tmp_path / "list.txt"
    if text is not None:
        put(path, text)
    ran = run("replay", trace, "--policy", "route-hotness", "--slots", 4, "--hotlist", path, *options)
    assert (ran.code, ran.out) == (code, "")
    assert said in " ".join(ran.err.replace("│", "").split())


def test_what_is_about_a_list_needs_one(trace: Path) -> None:
    for options in (("--formula", "rank"), ("--preload", "3")):
        ran = run("replay", trace, "--policy", "lru", "--slots", 4, *options)
        assert (ran.code, "give --hotlist" in " ".join(ran.err.replace("│", "").split())) == (2, True)


def test_entries_of_another_model_are_counted_and_a_mark_of_utf_8_is_no_entry(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "list").write_text("\ufeff0 1 5\n0 2000 7\n99 0 1\n", encoding="utf-8")
    said = run("replay", trace, "--slots", 3, "--policy", "route-hotness", "--hotlist", tmp_path / "list").out
    assert "start     1 seed of 3 listed, 2 of records that the model does not have, lent 5 to 5 (hits)" in said
