"""`expertcache identify`: a real engine's recording, and one that nothing explains."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from tests.spec.logs import displacing
from tests.spec.strategies import random_trace

from expertcache_spec.history.writing import log_of
from expertcache_spec.model import Budget, Geometry
from expertcache_spec.replay import Replay
from expertcache_spec.residency import Settings

from .files import CSV, put
from .running import run, run_json

ENGINE = ("--budget", "4000MiB", "--scope", "global", "--policies", "fifo,lru")


@pytest.mark.rule("XC-ENGINE-001")
def test_a_real_engine_is_lru_with_touch_in_router_order() -> None:
    found = run_json("identify", "builtin:gemma-4-26b-a4b", *ENGINE)
    assert found["events"] == 3870
    explained = {(entry["policy"], entry["settings"]["touch"], entry["settings"]["repeats"]) for entry in
                 found["explanations"]}  # fmt: skip
    assert explained == {("lru", "router", "promote")}
    assert all(entry["agreed"] < 3870 and entry["difference"] for entry in found["others"])


def test_a_false_claim_is_told_where_it_shows(tmp_path: Path) -> None:
    ran = run("identify", put(tmp_path / "tiny.csv", CSV), "--slots", 9, "--policies", "lru,fifo", "--sold-as", "lru")
    assert ran.code in (0, 1)
    assert "sold as lru" in ran.out
    assert "candidates explain all" in ran.out
    ran = run("identify", "builtin:gemma-4-26b-a4b", "--slots", 900, "--policies", "lfu", "--touch", "router",
              "--scope", "global", "--repeats", "promote", "--sold-as", "lfu")  # fmt: skip
    assert ran.code == 1
    assert "differs at event" in ran.out
    assert "closest" in ran.out


def test_what_has_no_recording_is_refused(tmp_path: Path) -> None:
    assert run("identify", put(tmp_path / "tiny.csv", CSV), "--slots", 3, "--policies", "lur").code == 2
    assert run("identify", put(tmp_path / "tiny.csv", CSV), "--policies", "lru").code == 2


@pytest.mark.parametrize(("policy", "code"), [("fifo", 0), ("lru", 1)])
def test_an_event_log_says_its_budget_settings_and_claim_itself(tmp_path: Path, policy: str, code: int) -> None:
    run_of_fifo = Replay(random_trace(Random(3), Geometry(2, 8, 3), passes=60), "fifo", Budget(slots=7),
                         Settings(overflow="bypass"))  # fmt: skip
    records = log_of(run_of_fifo)
    header = {**next(records), "policy": {"name": policy, "parameters": {}}}
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in (header, *records)))
    ran = run("identify", path, "--policies", "fifo,lru")
    assert ran.code == code, ran.out + ran.err
    assert f"sold as {policy}" in ran.out
    assert "  fifo, overflow bypass\n" in ran.out


def logged(path: Path, **header: object) -> Path:
    """The log of a FIFO of seven slots, under a changed header."""
    run_of_fifo = Replay(random_trace(Random(3), Geometry(2, 8, 3), passes=60), "fifo", Budget(slots=7),
                         Settings(overflow="bypass"))  # fmt: skip
    records = log_of(run_of_fifo)
    lines = ({**next(records), **header}, *records)
    path.write_text("".join(json.dumps(record) + "\n" for record in lines))
    return path


@pytest.mark.rule("XC-PREFETCH-008")
def test_what_no_candidate_replays_is_named(tmp_path: Path) -> None:
    path = tmp_path / "guesses.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in displacing()))
    ran = run("identify", path, "--policies", "lru")
    assert "lines of prefetch, which no candidate replays" in " ".join(ran.err.split())
    assert ran.code == 1
    assert "differs at event 3: hits {}, not {(1,4)}" in ran.out  # which a guess had brought
    plain = run("identify", logged(tmp_path / "plain.jsonl"), "--policies", "fifo")
    assert "no candidate replays" not in plain.err


def test_a_log_of_a_policy_of_ones_own_is_tried_without_its_claim_and_says_how_to_name_it(tmp_path: Path) -> None:
    ran = run(
        "identify", logged(tmp_path / "own.jsonl", policy={"name": "mine", "parameters": {}}), "--policies", "fifo"
    )
    assert ran.code == 0, ran.err
    assert "sold as" not in ran.out
    assert "--sold-as module:CARD" in ran.err


def test_a_damaged_log_is_bad_input_and_an_empty_claim_no_claim(tmp_path: Path) -> None:
    path = logged(tmp_path / "run.jsonl")
    assert run("identify", path, "--policies", "fifo", "--sold-as", "").code == 2
    refused = run("identify", path, "--policies", "static:keys=9.1")
    assert (refused.code, "no routed layer 9" in refused.err) == (2, True)
    path.write_bytes(path.read_bytes()[:-30])
    damaged = run("identify", path, "--policies", "fifo")
    assert (damaged.code, "cut off" in damaged.err) == (1, True)


def test_a_claim_is_tried_under_the_settings_that_candidates_are_tried_under() -> None:
    # A prompt asks for more than 100 records: without bypass no claim would get beyond it.
    ran = run("identify", "builtin:gemma-4-26b-a4b", "--slots", 100, "--policies", "lru", "--sold-as", "lru", "--touch",
              "router", "--scope", "global", "--repeats", "promote")  # fmt: skip
    line = ran.out.splitlines()[0]
    assert line.startswith("sold as lru, overflow bypass: differs at event")
    assert len(line) < 250
