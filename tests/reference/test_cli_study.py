"""`expertcache study`: one policy beside LRU, LFRU and Belady."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from expertcache_reference.traces import write_trace
from expertcache_spec.model import Geometry
from expertcache_spec.trace import Event, Trace

from .running import run, run_json


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two layers that each cycle through five experts, two at a time."""
    rows = [(n % 5, (n + 1) % 5) for n in range(40)]
    events = tuple(Event(layer, (row,), pass_index=n) for n, row in enumerate(rows) for layer in (0, 1))
    path = tmp_path_factory.mktemp("study") / "cycle.jsonl"
    write_trace(Trace(Geometry(2, 5, 2), events, "cycle"), path)
    return path


def rows(found: dict[str, Any]) -> dict[tuple[str, float], dict[str, Any]]:
    """Policy and cycles to row."""
    return {(row["policy"], row["cycles"]): row for row in found["traces"][0]["rows"]}


@pytest.mark.rule("XC-EVICT-004", "XC-EVICT-050")
def test_a_policy_stands_beside_lru_lfru_and_belady(trace: Path) -> None:
    found = run_json("study", "fifo", "--traces", trace, "--cycles", "0.5,1,2")
    table = rows(found)
    assert len(table) == 4 * 3
    assert {policy for policy, _ in table} == {"fifo", "lru", "lfru", "belady"}
    for row in table.values():
        best, lru = table["belady", row["cycles"]], table["lru", row["cycles"]]
        assert row["lookups"] == row["hits"] + row["absent"] == 160
        assert row["absent"] >= best["absent"]
        assert row["saved_of_lru"] == lru["absent"] - row["absent"]
        assert row["lru_over_belady"] == lru["absent"] - best["absent"]
    assert found["traces"][0]["cliff"]["lru"] == 0.5
    assert table["lru", 0.5]["decode_hits"] == 0


def test_the_table_says_where_the_cliff_is(trace: Path) -> None:
    ran = run("study", "lru", "--traces", trace, "--cycles", "0.5,2", "--against", "belady")
    assert ran.code == 0, ran.err
    assert "lru hits nothing on decode up to 0.5 token cycles" in ran.out
    for word in ("collisions", "gap recovered", "cost", "token cycle 4 records"):
        assert word in ran.out


@pytest.mark.parametrize("cycles", ["0", "-1", "x", "nan", "1e9"])
def test_budgets_that_are_none_are_refused(trace: Path, cycles: str) -> None:
    assert run("study", "lru", "--traces", trace, "--cycles", cycles).code == 2


@pytest.mark.rule("XC-EVICT-001")
def test_an_unknown_policy_is_refused_before_anything_runs(trace: Path) -> None:
    ran = run("study", "lur", "--traces", trace)
    assert (ran.code, ran.out) == (2, "")
