"""What the book reads from code and tests without running them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import icontract
import pytest

SOURCE = '''
import pytest
pytestmark = pytest.mark.rule("XC-A-1")

@pytest.mark.rule("XC-A-2", "XC-A-3")
class TestMany:
    @pytest.mark.rule("XC-A-4")
    def test_one(self): ...
    def helper(self): ...

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.rule("XC-A-5"))])
async def test_two(x): ...

@pytest.mark.rule
def test_three():
    """Not a citation: "XC-A-6"."""

@pytest.mark.slow("XC-A-7")
def test_four(): ...

both = pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.rule("XC-A-8")), 2])

@both
def test_five(x): ...
'''


def cited(rulefacts: Any, folder: Path) -> dict[str, list[str]]:
    return {rule: [test.name for test in tests] for rule, tests in rulefacts.cited(folder, ["tests"]).items()}


def test_marks_of_module_class_function_parameter_and_name_are_found(rulefacts: Any, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text(SOURCE)
    assert cited(rulefacts, tmp_path) == {
        "XC-A-1": ["TestMany::test_one", "test_two", "test_three", "test_four", "test_five"],
        "XC-A-2": ["TestMany::test_one"],
        "XC-A-3": ["TestMany::test_one"],
        "XC-A-4": ["TestMany::test_one"],
        "XC-A-5": ["test_two"],
        "XC-A-8": ["test_five"],
    }


def test_the_scan_of_the_project_finds_its_own_suite(rulefacts: Any) -> None:
    found = rulefacts.cited(Path(__file__).parents[2], ["tests", "conformance"])
    assert any(test.file.startswith("conformance/") for tests in found.values() for test in tests)


def test_the_source_of_a_condition_is_its_own_text(rulefacts: Any) -> None:
    @icontract.require(lambda x: x > 0, "one")
    @icontract.require(
        lambda x, y: (
            x  # not the comment's business
            < y
        ),
        "two",
    )
    def checked(x: int, y: int) -> None: ...

    conditions = [contract.condition for group in checked.__preconditions__ for contract in group]  # type: ignore[attr-defined]
    assert sorted(map(rulefacts.condition_source, conditions))[1] == "lambda x: x > 0"
    assert "< y" in sorted(map(rulefacts.condition_source, conditions))[0]


def test_a_named_condition_is_shown_whole(rulefacts: Any) -> None:
    def is_small(x: int) -> bool:
        return x < 3

    assert "return x < 3" in rulefacts.condition_source(is_small)


def test_contracts_of_the_specification_carry_known_rules(rulefacts: Any) -> None:
    from expertcache_spec.contracts import ENABLED
    from expertcache_spec.rules import RULES

    if not ENABLED:
        pytest.skip("contracts are off")
    found = rulefacts.contracts("expertcache_spec")
    assert found.keys() <= RULES.keys()
    assert {contract.kind for contracts in found.values() for contract in contracts} >= {"after", "always"}


def test_an_inherited_subject_is_named_where_it_is_defined(rulefacts: Any) -> None:
    assert rulefacts.dotted("expertcache_spec.residency.machine:Residency.select").endswith("Selecting.select")


@pytest.mark.parametrize("path", ["", "expertcache_spec.model:Nothing", "expertcache_spec.nothing:Key", "a:b"])
def test_a_path_to_nothing_is_a_lookup_error(rulefacts: Any, path: str) -> None:
    with pytest.raises(LookupError):
        rulefacts.load(path)
