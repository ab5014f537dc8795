"""Prefetch, misses and admission on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from expertcache_reference.cli import axes
from expertcache_reference.traces import write_trace
from expertcache_spec.errors import ExpertCacheError, UnknownName
from expertcache_spec.misses import Misses
from expertcache_spec.model import Budget, Key
from expertcache_spec.prefetch import PREDICTORS, Prefetch
from expertcache_spec.trace import decode_trace

from .running import run, run_json


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Three layers in a cycle that LRU never hits."""
    path = tmp_path / "cycle.jsonl"
    write_trace(decode_trace([[0], [1], [2]] * 4, layers=3), path)
    return path


@pytest.mark.rule("XC-PREFETCH-010", "XC-PREFETCH-012")
def test_a_prefetch_runs_and_is_counted_and_named(trace: Path) -> None:
    found = run_json("replay", trace, "--policy", "lru", "--slots", 2, "--prefetch", "oracle:slots=2")
    assert found["prefetch"]["useful"] == found["adopted"] == 11
    assert found["manifest"]["prefetch"]["predictor"] == "oracle"
    assert run_json("replay", trace, "--policy", "lru", "--slots", 2)["manifest"]["prefetch"] is None
    shown = run("replay", trace, "--policy", "lru", "--slots", 2, "--prefetch", "oracle:slots=2").out
    assert "useful 11" in shown


@pytest.mark.rule("XC-MISS-002")
def test_a_lossy_mode_is_marked_before_anything_else(trace: Path) -> None:
    ran = run("replay", trace, "--policy", "lru", "--slots", 2, "--misses", "drop-rank:rank=2")
    assert ran.code == 0
    assert "WARNING: LOSSY" in ran.err
    assert "lossy True" in ran.out
    refused = run("replay", trace, "--policy", "lru", "--slots", 2, "--misses", "reroute")
    assert refused.code == 2
    assert "open_loop" in refused.err


@pytest.mark.rule("XC-ADMIT-001")
def test_an_admission_takes_its_parameters(trace: Path) -> None:
    found = run_json("replay", trace, "--policy", "lru", "--slots", 2, "--admission", "sightings:n=3")
    assert found["manifest"]["settings"]["admission"] == "sightings:n=3"


@pytest.mark.parametrize("text", ["[[0, 1, 32]]", '[["a", "b"]]', "[5]", "7", "[[0, true]]", '{"a": 1}'])
def test_a_profile_that_lists_no_pairs_is_refused_and_nothing_is_left_out_of_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "hot.json").write_text(text)
    with pytest.raises(UnknownName, match=r"hot\.json is no profile: .*Cure: a JSON file, .* --hotlist"):
        axes.prefetch(f"none:profile={tmp_path / 'hot.json'}")


def test_words_become_the_settings_that_they_name(tmp_path: Path) -> None:
    profile = tmp_path / "hot.json"
    profile.write_text("[[0, 3], [1, 2]]")
    words = f"pair-table:partners=4:home=slot:displace=stale:stamps=false:latency=0:profile={profile}"
    assert axes.prefetch(words) == Prefetch(
        "pair-table", {"partners": 4}, home="slot", displace="stale", stamps=False, latency=0,
        profile=(Key(0, 3), Key(1, 2)),
    )  # fmt: skip
    assert axes.prefetch("oracle:slots=3:bytes=2kB") == Prefetch("oracle", cap=Budget(3, 2000))
    assert axes.prefetch(None) is None
    assert axes.misses("drop-weight:factor=0.25") == Misses("drop-weight", factor=0.25)
    assert axes.misses("reroute:open_loop=true") == Misses("reroute", open_loop=True)
    assert axes.misses(None) is None
    assert set(PREDICTORS) >= {"none", "previous-token", "oracle"}


@pytest.mark.parametrize(
    ("option", "words", "said"),
    [
        ("--prefetch", "orakel", "one of none, previous-token"),
        ("--prefetch", "oracle", "without a cap"),
        ("--prefetch", "oracle:slots=x", "slots = 'x'"),
        ("--prefetch", "oracle:slts=3", "one of bytes"),
        ("--prefetch", "oracle:slots=1:slots=2", "slots is given twice"),
        ("--prefetch", "oracle:slots", "NAME:parameter=value"),
        ("--prefetch", "oracle:slots=1:stamps=maybe", "true or false"),
        ("--prefetch", "oracle:slots=1:profile=/no/such", "is no profile"),
        ("--misses", "skip", "one of fetch"),
        ("--misses", "drop-rank:depth=2", "one of factor"),
        ("--misses", "drop-rank:rank=0", "whole number from 1"),
    ],
)
def test_words_that_mean_nothing_are_refused_with_the_cure(trace: Path, option: str, words: str, said: str) -> None:
    ran = run("replay", trace, "--policy", "lru", "--slots", 2, option, words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_errors_are_the_specifications() -> None:
    with pytest.raises(ExpertCacheError):
        axes.misses("reroute")
