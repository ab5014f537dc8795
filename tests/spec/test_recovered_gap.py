"""The book's table of what causal predictors recover of the Belady gap: drawn from a file that is measured anew."""

from __future__ import annotations

import json

import pytest

from .recovered_gap import COLUMNS, FILE, lines
from .running import ROOT, python

KEPT = json.loads(FILE.read_text(encoding="utf-8"))
"""Column to row to misses; a * marks the row's control."""


def test_the_table_of_the_book_is_that_of_the_file() -> None:
    assert tuple(KEPT) == COLUMNS
    page = (ROOT / "docs/chapters/eviction/predictive.md").read_text(encoding="utf-8")
    assert "\n" + "\n".join(lines(KEPT)) + "\n\n" in page


@pytest.mark.nightly
@pytest.mark.rule("XC-EVICT-275", "XC-EVICT-278", "XC-REPLAY-001")
@pytest.mark.parametrize("where", COLUMNS)
def test_a_column_of_the_table_comes_out_anew(where: str) -> None:
    found = python("-m", "tests.spec.recovered_gap", "column", where, timeout=3600, EXPERTCACHE_CONTRACTS="off")
    assert json.loads(found) == KEPT[where]
