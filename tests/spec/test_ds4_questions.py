"""The tables of `ds4_questions` in the book are what the script prints, to the byte."""

from __future__ import annotations

import pytest

from . import ds4_questions
from .recordings import DATA
from .running import python


def table(name: str) -> list[str]:
    """The lines of a table as they are kept."""
    return (DATA / "ds4-questions" / f"{name}.txt").read_text().splitlines()


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["transfer", "comparison"])
def test_both_tables_are_measured_again(name: str) -> None:
    text = python("-m", "tests.spec.ds4_questions", name, EXPERTCACHE_CONTRACTS="off", timeout=3600)
    assert text.splitlines() == table(name)


def cells(line: str) -> list[str]:
    """The columns after the number of slots and the domain."""
    return line[15:].split()


def test_one_row_of_each_table_is_measured_every_day() -> None:
    # The domain of four requests: its own list, at the smallest size.
    (transferred,) = (cells(line) for line in table("transfer") if line.startswith("  154 facts"))
    asked = ds4_questions.count(ds4_questions.requests("facts")[1::2])
    share = 100 * ds4_questions.covered("facts", asked, 154) / asked.total()
    assert (transferred[0], transferred[-1]) == (str(asked.total()), f"{share:.2f}")
    compared = {
        line[15:45].strip(): line[45:].split() for line in table("comparison") if line.startswith("  154 facts")
    }
    for name, how in {
        "LRU per layer": ("lru", "layer", 154),
        "route-hotness, facts, scaled": ("route-hotness", "global", 154, "facts", "scaled"),
    }.items():
        lookups, hits, _ = ds4_questions.served("facts", *how)  # type: ignore[arg-type]
        assert compared[name][:2] == [str(lookups), str(hits)]


def test_what_the_book_says_about_the_tables_is_in_them() -> None:
    hit: dict[tuple[str, str, str], float] = {}
    first: dict[tuple[str, str, str], float] = {}
    for line in table("comparison")[1:]:
        slots, domain = line[:14].split()
        *_, whole, opening = line[45:].split()
        hit[slots, domain, line[15:45].strip()] = float(whole)
        first[slots, domain, line[15:45].strip()] = float(opening)
    places = {(slots, domain) for slots, domain, _ in hit}
    gains = sorted(hit[s, d, f"route-hotness, {d}, scaled"] - hit[s, d, "LRU per layer"] for s, d in places)
    assert (len(gains), [round(gain, 1) for gain in (gains[0], gains[1], gains[-1])]) == (12, [-1.0, 0.6, 4.3])
    seeds = sorted(hit[s, d, f"route-hotness, {d}, scaled"] - hit[s, d, "route-hotness, cold"] for s, d in places)
    assert [round(gain, 1) for gain in (seeds[0], seeds[-1])] == [-0.2, 0.9]
    costs = [
        first[s, d, "route-hotness, cold"] - first[s, d, f"route-hotness, {other}, scaled"]
        for s, d in places
        for other in ds4_questions.DOMAINS
        if other != d
    ]
    assert 17 < max(costs) < 18
    assert all(first[s, d, f"route-hotness, {d}, hits"] < first[s, d, f"route-hotness, {d}, scaled"] for s, d in places)
