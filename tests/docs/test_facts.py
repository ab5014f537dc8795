"""The facts that the book lists: their tests exist, and no number stands there that its test does not have.

Of a written fact the numbers stand in the test's own function, in the fact's order; of a series, whose rows are read
out of a test's data, in the test's file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NUMBER = re.compile(r"(?<![\w.-])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")


@pytest.fixture(name="facts")
def _facts(rulefacts: Any) -> Any:
    return pytest.importorskip("facts")


@cache
def tree(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


def numbers(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in NUMBER.findall(text)]


def within(constant: ast.Constant) -> Iterable[float]:
    """The numbers of a constant of the code, those of a text included."""
    value = constant.value
    if isinstance(value, str):
        return numbers(value)
    return [float(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []


@cache
def asserted(file: str) -> set[float]:
    """Every number in the code and the strings of a test's file, and in the JSON files of tests/data that they name.

    Those of names like `test_35_1` are left out.
    """
    found: set[float] = set()
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Constant):
            found.update(within(node))
            if isinstance(node.value, str) and node.value.endswith(".json"):
                found.update(numbers((ROOT / "tests" / "data" / node.value).read_text(encoding="utf-8")))
    return found


def bound(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.AST]]:
    """The names of an assignment, each with its own part of the value."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, part in zip(target.elts, value.elts, strict=True):
            yield from bound(one, part)


@cache
def defined(file: str) -> dict[str, ast.AST]:
    """What a module's names stand for: its functions, and the values of its constants."""
    found: dict[str, ast.AST] = {}
    for node in tree(file).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                found.update(bound(target, node.value))
    return found


def told(file: str, name: str, inside: frozenset[str] = frozenset()) -> Iterator[float]:
    """The numbers of a function in the order of its text, docstrings and comments left out.

    What it uses of its module, constants and functions, is read where it is used.
    """
    node = defined(file)[name]
    leaves = [leaf for leaf in ast.walk(node) if isinstance(leaf, ast.Constant | ast.Name)]
    docstrings = {id(each.value) for each in ast.walk(node) if isinstance(each, ast.Expr)}
    for leaf in sorted(leaves, key=lambda leaf: (leaf.lineno, leaf.col_offset)):
        if isinstance(leaf, ast.Constant):
            yield from () if id(leaf) in docstrings else within(leaf)
        elif leaf.id in defined(file) and leaf.id not in inside:
            yield from told(file, leaf.id, inside | {name, leaf.id})


def missing(facts: Any, fact: Any) -> list[str]:
    """What is wrong with a row of a series."""
    file, _, name = fact.test.partition("::")
    if name not in defined(file):
        return [f"no test {fact.test}"]
    # Names of documents and of parameters are no figures.
    figures = {*numbers(fact.what), *numbers(fact.published), *numbers(facts.ROLE.sub("", fact.ours))}
    return [f"{figure:g} is not in {file}" for figure in sorted(figures - asserted(file))]


def unsaid(facts: Any, fact: Any) -> list[str]:
    """What is wrong with a written fact: no such test, a number that it has not, figures in another order."""
    file, _, name = fact.test.partition("::")
    if name not in defined(file):
        return [f"no test {fact.test}"]
    has = list(told(file, name))
    wrong = [f"{figure:g} is not in {name}" for figure in sorted(set(numbers(fact.what)) - set(has))]
    for text in dict.fromkeys((fact.published, facts.ROLE.sub("", fact.ours))):
        rest = iter(has)
        if not all(figure in rest for figure in numbers(text)):  # `in` takes what it passes: each after the one before
            wrong.append(f"{text!r} is not in {name}, in this order")
    return wrong


def test_every_written_fact_names_a_test_that_has_its_numbers(facts: Any) -> None:
    found = facts.written()
    assert len(found) > 30
    assert {fact.what: wrong for fact in found if (wrong := unsaid(facts, fact))} == {}


def test_every_series_is_the_data_of_a_test_that_exists(facts: Any) -> None:
    for name, series in facts.SERIES.items():
        found = list(series())
        assert len(found) >= 6, name
        assert {fact.what: wrong for fact in found if (wrong := missing(facts, fact))} == {}


def test_a_fact_without_its_test_or_with_a_number_of_its_own_is_found(facts: Any) -> None:
    good = facts.written()[0]
    for judge in (missing, unsaid):
        assert judge(facts, good._replace(test=good.test + "_not")) == [f"no test {good.test}_not"]
    assert missing(facts, good._replace(ours="31,415")) == ["31415 is not in tests/spec/test_vectors.py"]


@pytest.mark.parametrize(
    ("what", "changed"),
    [
        ("432 pages in 4", {"published": "86 each / 108, 87, 87, 54, 86 / 54 each"}),
        ("432 pages in 4", {"published": "87, 87, 86, 86, 86 / 108 each / 54 each"}),
        ("staged and pipelined", {"ours": "10.54 and 10.65; 10.82 and 10.57"}),
        ("16,385 bytes", {"what": "16,385 bytes asked for in 9"}),
        ("Reads a token", {"published": "161.9 / 485.8 / 54.0"}),
    ],
)
def test_numbers_of_another_test_or_in_another_order_are_found(facts: Any, what: str, changed: dict[str, str]) -> None:
    (good,) = [fact for fact in facts.written() if what in fact.what]
    assert unsaid(facts, good) == []
    assert unsaid(facts, good._replace(**changed))
    assert missing(facts, good._replace(**changed)) == []  # each of them stands somewhere in the file


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
