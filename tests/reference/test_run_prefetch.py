"""`expertcache run --prefetch` reads guesses of the model's own gates, and no logit changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from expertcache_spec import history

from .running import run, run_json

FEW = ("--tokens", 8, "--prompt", "Don Abbondio ", "--slots", 40)


@pytest.mark.rule("XC-PREFETCH-008", "XC-PREFETCH-010", "XC-PREFETCH-012")
def test_guesses_of_the_gates_spare_misses_and_every_logit_stays_the_same() -> None:
    plain = run_json("run", *FEW)
    found = run_json("run", *FEW, "--verify", "--prefetch", "gate-top-k:home=slot:displace=any")
    assert found["verified"]["differ"] == 0
    assert found["text"] == plain["text"]
    assert plain["prefetch"] is None
    counts, report = found["prefetch"]["counts"], found["report"]
    assert report["misses"] + counts["useful"] <= plain["report"]["misses"] + counts["evicted"]
    assert report["misses"] < plain["report"]["misses"]
    assert counts["issued"] == counts["useful"] + counts["late"] + counts["wasted"] + counts["outstanding"]
    assert counts["routes_recalled"] > 0.5 * counts["routes"]


def test_what_is_read_into_free_room_is_legal_in_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    ran = run("run", *FEW, "--log", path, "--prefetch", "gate-percentile:home=slot:percentile=90")
    assert ran.code == 0
    assert "prefetch  gate-percentile, predictions " in ran.out
    with path.open("rb") as file:
        header, lines = history.read_log(file)
        told = list(lines)
    assert history.check(header, iter(told)).answer == "legal"
    assert any(record["op"] == "prefetch" and record["state"] == "adopted" for _, record in told)


@pytest.mark.rule("XC-PREFETCH-008", "XC-HIST-010")
@pytest.mark.parametrize("displace", ["any", "stale"])
def test_what_gives_way_to_a_guess_is_in_the_log_which_check_finds_legal(tmp_path: Path, displace: str) -> None:
    path = tmp_path / "log.jsonl"
    ran = run_json("run", *FEW, "--log", path, "--prefetch", f"gate-top-k:home=slot:displace={displace}")
    counts = ran["prefetch"]["counts"]
    told = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    begun = [record for record in told if record.get("op") == "prefetch" and record["state"] == "reading"]
    assert sum("ticket" in record for record in begun) == counts["evicted"] > 0  # all records have one size
    checked = run("check", path)
    assert checked.code == 0, checked.out
    assert "legal" in checked.out
    guess = next(n for n, record in enumerate(told) if record.get("op") == "prefetch" and "ticket" in record)
    del told[guess]["ticket"]
    path.write_text("".join(json.dumps(record) + "\n" for record in told), encoding="utf-8")
    checked = run("check", path)
    assert checked.code == 1
    assert f"line {guess + 1} breaks XC-RES-021" in checked.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("oracle", "to come"),
        ("gate-top-k:home=staging:slots=4", "home=slot"),
        ("previous-token:stamps=false", "stamps"),
        ("gate-top-k:slots=4", "leave slots and bytes out"),
        ("gate-top-k:latency=2", "latency 2"),
    ],
)
def test_what_the_runtime_cannot_do_is_refused_before_a_byte_is_decoded(tmp_path: Path, words: str, said: str) -> None:
    path = tmp_path / "log.jsonl"
    ran = run("run", *FEW, "--log", path, "--prefetch", words)
    assert ran.code == 2
    assert said in ran.err
    assert not ran.out
    assert list(tmp_path.iterdir()) == []
