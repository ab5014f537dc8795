"""The house: who imports whom, rules whose subjects exist, contracts that say their rule, no machine path anywhere."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pickle
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import expertcache_spec
from expertcache_spec import SPEC_VERSION
from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.rules import CHAPTERS, RULES, Rule

from .running import ROOT, python

PACKAGES = {"spec": "expertcache_spec", "reference": "expertcache_reference", "conformance": "expertcache_conformance"}
ARROWS = {
    "spec": set(),
    "reference": {"expertcache_spec"},
    "conformance": {"expertcache_spec"},
}
"""Folder to the sibling packages that it may import."""


def sources(*folders: str) -> list[Path]:
    """Every Python file under the folders."""
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


@cache
def tree(path: Path) -> ast.Module:
    """The file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(path: Path) -> set[str]:
    """The names of all modules that the file imports absolutely, wherever in it."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module or "")
    return found


def top(names: set[str]) -> set[str]:
    """Their top-level packages."""
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("folder", PACKAGES)
def test_each_package_imports_only_the_siblings_it_may(folder: str) -> None:
    files = sources(folder)
    assert files
    for path in files:
        strangers = top(imports(path)) & set(PACKAGES.values()) - {PACKAGES[folder]} - ARROWS[folder]
        assert not strangers, f"{path.relative_to(ROOT)} imports {strangers}"
        assert not top(imports(path)) & {"tests", "docs"}


def test_the_specification_does_no_input_output_and_knows_no_clock_thread_or_chance() -> None:
    pure = {
        "__future__", "bisect", "collections", "copy", "functools", "hashlib", "heapq", "itertools", "json", "math",
        "operator", "re", "types", "typing", "zlib", "attrs", "icontract", "sortedcontainers", "expertcache_spec",
    }  # fmt: skip
    for path in sources("spec"):
        # One reads its one switch, the other imports the module that somebody names for a policy of their own.
        extra = {"contracts.py": {"os"}, "spelling.py": {"importlib"}}.get(path.name, set())
        assert top(imports(path)) <= pure | extra, path


# ---------------------------------------------------------------------------------------------- rules


def resolve(subject: str) -> Any:
    """The object that a rule's `subject` names."""
    module, _, path = subject.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_a_rule_is_well_formed_and_its_subject_exists(rule: Rule) -> None:
    assert re.fullmatch(r"XC-[A-Z]+-\d{3}", rule.id)
    assert rule.chapter in CHAPTERS
    assert rule.level in ("MUST", "SHOULD", "MAY")
    assert rule.text.endswith(".")
    assert rule.text == rule.text.strip()
    assert rule.source
    assert tuple(map(int, rule.since.split("."))) <= tuple(map(int, SPEC_VERSION.split(".")))
    assert resolve(rule.subject) is not None


def test_rule_ids_are_unique_and_in_reading_order() -> None:
    chapters = list(CHAPTERS)
    order = [(chapters.index(rule.chapter), rule.id) for rule in RULES.values()]
    assert order == sorted(set(order))
    assert list(RULES) == [rule.id for rule in RULES.values()]


def markers(path: Path) -> Iterator[str]:
    """The rule ids that the file's `pytest.mark.rule(...)` calls cite; all of them literal."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "rule":
            if ast.unparse(node.func) != "pytest.mark.rule":
                continue
            for argument in node.args:
                if isinstance(argument, ast.Starred) and path.name == "test_eviction.py":
                    continue  # the suite cites what the registry says of a policy's module: it exists
                assert isinstance(argument, ast.Constant), f"{path}:{node.lineno} cites a rule that no scan can see"
                yield str(argument.value)


def files_of_tests(*folders: str) -> list[Path]:
    """Every file of tests under the folders."""
    return [path for path in sources(*folders) if path.name.startswith("test_")]


def test_every_cited_rule_exists() -> None:
    for path in files_of_tests("tests", "conformance"):
        unknown = set(markers(path)) - set(RULES)
        assert not unknown, f"{path.relative_to(ROOT)} cites {unknown}"


def test_every_must_rule_is_cited_by_a_test() -> None:
    cited = {rule for path in files_of_tests("tests", "conformance") for rule in markers(path)}
    missing = [rule.id for rule in RULES.values() if rule.level == "MUST" and rule.id not in cited]
    assert not missing


def test_every_rule_about_the_specification_itself_is_cited_by_its_own_tests() -> None:
    # Chapter CONF is about the conversation with an implementation: only the suite can test it.
    cited = {rule for path in files_of_tests("tests/spec") for rule in markers(path)}
    assert [rule for rule in RULES if rule not in cited and not rule.startswith("XC-CONF-")] == []


# ---------------------------------------------------------------------------------------------- contracts


def modules() -> list[ModuleType]:
    """Every module of the specification."""
    names = pkgutil.walk_packages(expertcache_spec.__path__, "expertcache_spec.")
    return [importlib.import_module(name.name) for name in names]


def contracts() -> dict[str, str]:
    """Where a contract stands, to what it says."""
    found: dict[str, str] = {}
    for module in modules():
        for name, value in vars(module).items():
            if getattr(value, "__module__", "") != module.__name__:
                continue
            members = {name: value} | (
                {f"{name}.{k}": v for k, v in vars(value).items()} if inspect.isclass(value) else {}
            )
            for where, member in members.items():
                groups = [*getattr(member, "__preconditions__", [])]
                stated = [each for group in groups for each in group] + list(getattr(member, "__postconditions__", []))
                stated += list(vars(member).get("__invariants__", [])) if inspect.isclass(member) else []
                found |= {f"{module.__name__}.{where}#{n}": each.description or "" for n, each in enumerate(stated)}
    return found


def test_every_contract_says_its_rule_in_the_registrys_words() -> None:
    stated = contracts()
    assert len(stated) >= 8
    for where, description in stated.items():
        rule_id, _, text = description.partition(": ")
        assert rule_id in RULES, where
        assert text == RULES[rule_id].text, where


PROBE = """
import json, sys
from expertcache_spec.errors import InvalidModel, WrongState
from expertcache_spec.eviction import make
from expertcache_spec.model import Budget, Geometry, Key, quotas
from expertcache_spec.residency import Residency
from expertcache_spec.trace import Event
cache = Residency(Geometry(1, 4, 2), Budget(slots=2), make("lru"))
refused = []
for act, refusal in ((lambda: cache.select(Event(0, ((9,),))), InvalidModel), (lambda: cache.release(3), WrongState)):
    try:
        act()
    except refusal as error:
        refused.append(error.code)
checked = [hasattr(x, "__postconditions__") for x in (quotas, Residency.complete)]
checked.append(hasattr(Residency, "__invariants__"))
print(json.dumps({"refused": refused, "checked": checked}))
"""


@pytest.mark.parametrize(
    ("switch", "flags", "checked"),
    [("on", [], True), ("", [], True), ("off", [], False), ("OFF", [], False), ("0", [], False), ("on", ["-O"], False)],
)
def test_one_switch_removes_the_contracts_and_typed_errors_stay(switch: str, flags: list[str], checked: bool) -> None:
    found = json.loads(python(*flags, "-c", PROBE, EXPERTCACHE_CONTRACTS=switch))
    assert found == {"refused": ["invalid-model", "wrong-state"], "checked": [checked] * 3}


@pytest.mark.rule("XC-REPLAY-001")
def test_without_contracts_every_result_is_the_same() -> None:
    on, off = (python("-m", "tests.spec.fingerprints", EXPERTCACHE_CONTRACTS=switch) for switch in ("on", "off"))
    assert on == off


# ---------------------------------------------------------------------------------------------- errors


def kinds(base: type[ExpertCacheError] = ExpertCacheError) -> Iterator[type[ExpertCacheError]]:
    """The class and everything below it."""
    yield base
    for kind in base.__subclasses__():
        yield from kinds(kind)


@pytest.mark.parametrize("kind", [kind for kind in kinds() if kind.__module__ == "expertcache_spec.errors"])
def test_an_error_says_what_where_and_the_cure_and_survives_pickling(kind: type[ExpertCacheError]) -> None:
    error = kind("too much", where="here", cure="less")
    assert str(error) == "here: too much. Cure: less"
    assert str(kind("too much")) == "too much"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.cure) == (kind, str(error), "less")


def test_error_codes_are_unique() -> None:
    codes = [kind.code for kind in kinds() if kind.__module__ == "expertcache_spec.errors"]
    assert len(codes) == len(set(codes)) == 12


# ---------------------------------------------------------------------------------------------- the tree


def is_made(name: str) -> bool:
    """Whether a file or folder is a tool's product, not ours."""
    return name.startswith((".", "__pycache__", "_build")) or name.endswith(".egg-info")


def test_no_machine_path_is_left_in_the_tree() -> None:
    folders = ("spec", "reference", "conformance", "tests", "docs", ".github", ".ci")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    files += [path for path in ROOT.iterdir() if path.is_file()]
    kept = [path for path in files if path.suffix != ".gz" and not any(map(is_made, path.relative_to(ROOT).parts[1:]))]
    assert len(kept) > 100
    personal = re.compile("/" + r"(?:home|Users|root|work)/[\w.-]+/")
    for path in kept:
        found = personal.search(path.read_text(encoding="utf-8", errors="replace"))
        assert not found, f"{path.relative_to(ROOT)}: {found}"
