"""The facts that the book lists: their tests exist, and no number stands there that its test does not have."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NUMBER = re.compile(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?")


@pytest.fixture(name="facts")
def _facts(rulefacts: Any) -> Any:
    return pytest.importorskip("facts")


@cache
def tree(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


def numbers(text: str) -> set[float]:
    return {float(found.rstrip(",").replace(",", "")) for found in NUMBER.findall(text)}


@cache
def asserted(file: str) -> set[float]:
    """Every number in the code and the strings of a test's file, and in the JSON files of tests/data that they name.

    Those of names like `test_35_1` are left out.
    """
    found: set[float] = set()
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Constant):
            value = node.value
            if isinstance(value, str):
                found |= numbers(value)
                if value.endswith(".json"):
                    found |= numbers((ROOT / "tests" / "data" / value).read_text(encoding="utf-8"))
            elif isinstance(value, int | float):
                found.add(float(value))
    return found


def missing(facts: Any, fact: Any) -> list[str]:
    """What is wrong with a fact."""
    file, _, name = fact.test.partition("::")
    functions = {node.name for node in ast.walk(tree(file)) if isinstance(node, ast.FunctionDef)}
    wrong = [] if name in functions else [f"no test {fact.test}"]
    # Names of documents and of parameters are no figures.
    figures = numbers(fact.what) | numbers(fact.published) | numbers(facts.ROLE.sub("", fact.ours))
    return wrong + [f"{figure:g} is not in {file}" for figure in sorted(figures - asserted(file))]


def test_every_written_fact_names_a_test_that_has_its_numbers(facts: Any) -> None:
    found = facts.written()
    assert len(found) > 30
    assert {fact.what: wrong for fact in found if (wrong := missing(facts, fact))} == {}


def test_every_series_is_the_data_of_a_test_that_exists(facts: Any) -> None:
    for name, series in facts.SERIES.items():
        found = list(series())
        assert len(found) >= 6, name
        assert {fact.what: wrong for fact in found if (wrong := missing(facts, fact))} == {}


def test_a_fact_without_its_test_or_with_a_number_of_its_own_is_found(facts: Any) -> None:
    good = facts.written()[0]
    assert missing(facts, good._replace(test=good.test + "_not")) == [f"no test {good.test}_not"]
    assert missing(facts, good._replace(ours="31,415")) == ["31415 is not in tests/spec/test_vectors.py"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [("ours = 'other'", "explain the difference"), ("size = 3", "fields are"), ("mode = 'event'", "fields are")],
)
def test_a_fact_that_lacks_a_field_or_hides_a_difference_is_refused(
    facts: Any, tmp_path: Path, changed: str, said: str
) -> None:
    entry = {field: f"{field} = 'x'" for field in facts.REQUIRED}
    if changed.startswith("mode"):
        del entry["test"]
    path = tmp_path / "facts.toml"
    path.write_text("\n".join(["[[fact]]", *(line for line in entry.values() if line[:4] != changed[:4]), changed]))
    with pytest.raises(ValueError, match=said):
        facts.written(path)
