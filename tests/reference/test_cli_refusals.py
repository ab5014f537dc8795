"""What a newcomer mistypes: each refusal names what is wrong and what would cure it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from expertcache_reference.traces import write_trace
from expertcache_spec.trace import decode_trace

from .running import process, run, run_json


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Three layers of two experts."""
    path = tmp_path / "cycle.jsonl"
    write_trace(decode_trace([[0], [1], [0, 1]] * 4, layers=3, experts=2), path)
    return path


def test_identify_opens_the_file_before_it_asks_for_a_budget(tmp_path: Path) -> None:
    ran = run("identify", tmp_path / "no-such.csv")
    assert ran.code == 1
    assert "no-such.csv" in ran.err
    assert "budget" not in ran.err


@pytest.mark.rule("XC-ADMIT-003")
def test_an_admission_that_the_policy_cannot_do_names_the_policies_that_can(trace: Path) -> None:
    ran = run("replay", trace, "--policy", "fifo", "--slots", 2, "--admission", "refusable")
    assert ran.code == 2
    cure = ran.err.partition("Cure: ")[2]
    assert "belady" in cure
    assert "static" in cure
    assert "fifo" not in cure


@pytest.mark.rule("XC-PREFETCH-010")
def test_prefetch_none_needs_no_cap_and_the_help_says_who_does(trace: Path) -> None:
    assert run_json("replay", trace, "--policy", "lru", "--slots", 2, "--prefetch", "none")["prefetch"]["issued"] == 0
    assert run("replay", trace, "--policy", "lru", "--slots", 2, "--prefetch", "oracle").code == 2
    help_ = " ".join(run("replay", "--help").out.replace("│", " ").split())
    assert "staging must be capped with slots or bytes" in help_


def test_limits_are_printed_exactly_and_with_their_kind(trace: Path) -> None:
    shown = run("policies", "hazard").out
    assert "e+0" not in shown + run("policies", "clock-lru-k").out
    assert "1048576" in run("policies", "clock-lru-k").out
    said = run("replay", trace, "--policy", "clock-lru-k:decay_every=0", "--slots", 2).err
    assert "a whole number from 1 to 1048576" in said
    said = run("replay", trace, "--policy", "clock-lru-k:adapt=yes", "--slots", 2).err
    assert "true or false" in said
    assert "inf" not in said.replace("infinite", "")
    assert "a number from 0 to 1;" in run("replay", trace, "--policy", "slru:protected=2", "--slots", 2).err


def test_one_policy_is_shown_with_the_values_given() -> None:
    shown = run("policies", "lfu-aged:every=77")
    assert shown.code == 0
    row = next(line for line in shown.out.splitlines() if "every" in line and "units" in line)
    assert "77" in row
    assert "16" in row
    parameters = run_json("policies", "lfu-aged:every=77")["policies"][0]["parameters"]
    assert [(p["value"], p["default"]) for p in parameters if p["name"] == "every"] == [(77, 16)]


@pytest.mark.rule("XC-EVICT-001")
@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("route-hotness:clock_layer=3", "the model has no layer 3"),
        ("score:clock_layer=9", "the model has no layer 9"),
        ("static:keys=0.0+3.1", "3.1"),
        ("static:keys=0.1-2", "0.1-2"),
        ("static:keys=*.0-9", "*.0-9"),
        ("farthest-layer:layers=2", "layers 2"),
        ("clock:initial=2", "initial 2 is above ceiling 1"),
        ("clock-lru-k:low=6000", "low 6000 is above high 5000"),
        ("clock-lru-k:bar=16", "bar 16 is above ceiling 15"),
    ],
)
def test_a_value_that_cannot_be_is_refused_where_the_model_is_known(trace: Path, policy: str, said: str) -> None:
    for command in (
        ("replay", trace, "--policy", policy, "--slots", 2),
        ("compare", trace, "--policies", f"lru,{policy}", "--slots", 2),
        ("study", policy, "--traces", trace),
        ("whatif", trace, "--hardware", "builtin:mac-32gb-qd1", "--policy", policy, "--slots", 2),
    ):
        ran = run(*command)
        assert (ran.code, ran.out) == (2, ""), command
        assert said in ran.err, ran.err


@pytest.mark.rule("XC-MODEL-005")
def test_bytes_without_a_unit_are_refused_with_the_units(trace: Path) -> None:
    for command in (("--budget", "4000"), ("--slots", 2, "--prefetch", "oracle:bytes=4000")):
        said = run("replay", trace, "--policy", "lru", *command).err
        for unit in ("KB", "KiB", "MB", "MiB", "GB", "GiB"):
            assert unit in said


@pytest.mark.parametrize("number", ["٤", "1_000", "+4", "4 4", "4.0", "0x4", ""])
@pytest.mark.parametrize(
    "command",
    [
        ("replay", "--policy", "lru", "--slots", "{}"),
        ("replay", "--policy", "lfu-aged:every={}", "--slots", "2"),
        ("replay", "--policy", "lru", "--slots", "2", "--admission", "sightings:n={}"),
        ("replay", "--policy", "lru", "--slots", "2", "--prefetch", "oracle:slots={}"),
        ("replay", "--policy", "lru", "--slots", "2", "--prefetch", "oracle:slots=2:width={}"),
        ("replay", "--policy", "lru", "--slots", "2", "--misses", "drop-rank:rank={}"),
        ("compare", "--policies", "lru", "--slots", "2,{}"),
        ("study", "lru", "--cycles", "1,{}x"),
        ("whatif", "--hardware", "builtin:mac-32gb-qd1", "--policy", "lru", "--slots", "2", "--min-tokens", "{}"),
        ("timeline", "--hardware", "builtin:mac-32gb-qd1", "--policy", "lru", "--slots", "2", "--min-entries", "{}"),
    ],
)
def test_a_whole_number_is_digits_and_nothing_else(trace: Path, command: tuple[str, ...], number: str) -> None:
    name, *rest = (part.format(number) for part in command)
    where = ["--traces", str(trace)] if name == "study" else []
    ran = run(name, *([] if where else [trace]), *rest, *where)
    assert (ran.code, ran.out) == (2, "")


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("compare", "TRACE", "--policies", "lru,", "--slots", "2"), "--policies"),
        (("compare", "TRACE", "--policies", "", "--slots", "2"), "--policies"),
        (("compare", "TRACE", "--policies", "lru", "--slots", "2", "--scopes", ""), "--scopes"),
        (("compare", "TRACE", "--policies", "lru", "--slots", "2,,3"), "--slots"),
        (("compare", "TRACE", "--policies", "lru", "--budget", ""), "--budget"),
        (("study", "lru", "--traces", ""), "--traces"),
        (("study", "lru", "--traces", "TRACE", "--against", ""), "--against"),
        (("study", "lru", "--traces", "TRACE", "--cycles", "1,"), "--cycles"),
        (("identify", "TRACE", "--slots", "2", "--policies", "fifo,"), "--policies"),
        (("whatif", "TRACE", "--hardware", "builtin:mac-32gb-qd1", "--policy", "lru", "--slots", "2",
          "--disciplines", ""), "--disciplines"),
    ],
)  # fmt: skip
def test_an_empty_item_of_a_list_is_named(trace: Path, command: tuple[str, ...], option: str) -> None:
    ran = run(*(str(trace) if part == "TRACE" else part for part in command))
    assert (ran.code, ran.out) == (2, "")
    assert option in ran.err
    assert "empty" in ran.err


OWN = """
from expertcache_spec.eviction import POLICIES
FIRST = POLICIES["lfu-aged"].setting("mine", every=2)
SECOND = POLICIES["lfu-aged"].setting("mine", every=3)
"""


def test_two_cards_of_one_name_are_told_apart_and_a_missing_attribute_is_said(trace: Path) -> None:
    (trace.parent / "own_cards.py").write_text(OWN)
    ran = process("-m", "expertcache_reference.cli", "compare", trace.name, "--slots", 2, "--policies",
                  "own_cards:FIRST,own_cards:SECOND,lru", folder=trace.parent)  # fmt: skip
    assert ran.code == 0, ran.err
    assert "own_cards:FIRST" in ran.out
    assert "own_cards:SECOND" in ran.out
    ran = process("-m", "expertcache_reference.cli", "study", "own_cards:FIRST", "--against", "own_cards:SECOND,lru",
                  "--traces", trace.name, "--cycles", "1", "--json", folder=trace.parent)  # fmt: skip
    assert [row["policy"] for row in json.loads(ran.out)["traces"][0]["rows"]] == [
        "own_cards:FIRST", "own_cards:SECOND", "lru",
    ]  # fmt: skip
    ran = process("-m", "expertcache_reference.cli", "policies", "own_cards:nope", folder=trace.parent)
    assert ran.code == 2
    assert "has no attribute 'nope'" in ran.err
    assert "FIRST, SECOND" in ran.err
