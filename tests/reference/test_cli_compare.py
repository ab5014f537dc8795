"""`expertcache compare`: side by side, against Belady, and only like with like."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from expertcache_reference.cli.compare import Unlike, over_belady, refuse_unlike
from expertcache_spec.model import Budget
from expertcache_spec.replay import replay
from expertcache_spec.residency import Settings
from expertcache_spec.trace import decode_trace

from .files import CSV, GEMMA, put
from .running import run, run_json


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return put(tmp_path / "tiny.csv", CSV)


@pytest.mark.rule("XC-EVICT-050")
def test_every_combination_stands_beside_belady() -> None:
    many = ("--policies", "lru,lfu,belady", "--slots", "384", "--scopes", "global,layer", "--overflow", "bypass")
    result = run_json("compare", GEMMA, *many)
    rows = {(row["policy"], row["slots"], row["scope"]): row for row in result["rows"]}
    assert len(rows) == len(result["rows"]) == 6
    for (_, slots, scope), row in rows.items():
        best = rows["belady", slots, scope]
        assert row["absent"] == row["misses"] + row["bypassed"]
        assert row["over_belady"] == row["absent"] - best["absent"] >= 0
        assert row["lookups"] == row["hits"] + row["absent"] == 24578
    alone = run_json("replay", GEMMA, "--policy", "lfu", "--slots", "384", "--scope", "layer", "--overflow", "bypass")
    assert {name: rows["lfu", 384, "layer"][name] for name in alone} == alone


def test_without_belady_there_is_no_difference_to_it(tiny: Path) -> None:
    rows = run_json("compare", tiny, "--policies", "lru", "--budget", "1kB,2kB")["rows"]
    assert [(row["bytes"], row["over_belady"]) for row in rows] == [(1000, None), (2000, None)]


def test_the_table_names_phases_and_budgets_and_the_warnings_their_row(tiny: Path) -> None:
    ran = run("compare", tiny, "--policies", "lru,belady", "--slots", "3,9")
    assert ran.code == 0
    assert all(word in ran.out for word in ("3 slots", "9 slots", "over belady", "decode hits", "prefill hits"))
    assert "WARNING: 3 slots, scope global: budget below one token cycle" in ran.err


def test_a_mistyped_policy_does_not_run_under_its_own_column(tiny: Path) -> None:
    ran = run("compare", tiny, "--policies", "lru,lur", "--slots", "3")
    assert (ran.code, ran.out) == (2, "")
    assert "policy 'lur'. Cure: one of fifo, lru" in ran.err


@pytest.mark.parametrize("options", [(), ("--slots", "3", "--budget", "1kB"), ("--slots", "3,x"), ("--slots", "-3")])
def test_budgets_are_given_in_one_way(options: tuple[str, ...], tiny: Path) -> None:
    assert run("compare", tiny, "--policies", "lru", *options).code == 2


@pytest.mark.rule("XC-REPLAY-002")
def test_unlike_results_are_refused() -> None:
    trace = decode_trace([[0, 1], [1, 2]])
    first = replay(trace, "lru", Budget(2)).manifest
    refuse_unlike([first, replay(trace, "belady", Budget(3), Settings(scope="layer")).manifest])
    others = {
        "trace_sha256": replay(decode_trace([[0, 1], [2, 1]]), "lru", Budget(2)).manifest,
        "replay": replay(trace, "lru", Budget(2), mode="sequential").manifest,
        "settings": replay(trace, "lru", Budget(2), Settings(touch="hits_first")).manifest,
        "spec_version": attrs.evolve(first, spec_version="0.0"),
    }
    for name, other in others.items():
        with pytest.raises(Unlike, match=name):
            refuse_unlike([first, other])


def test_the_difference_to_belady_is_taken_at_the_same_budget() -> None:
    trace = decode_trace([[0], [1], [2], [0], [1], [2]])
    results = [replay(trace, policy, Budget(slots)) for slots in (2, 3) for policy in ("lru", "belady")]
    assert over_belady(results) == [2, 0, 0, 0]
    assert over_belady([results[0], results[3]]) == [None, 0]
