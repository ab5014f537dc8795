"""The suite without pytest: every test as a plain call, for the suite's own tests and for notebooks."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import attrs

from expertcache_conformance.adapters import Implementation
from expertcache_conformance.answers import Crashed
from expertcache_conformance.examination import Examination, NotClaimed, RulesBroken
from expertcache_conformance.judge import LUCK, Violation
from expertcache_conformance.logs import LogFinding, NotJudged
from expertcache_conformance.questions import Finding

MODULES = (
    "test_adapter",
    "test_budgets",
    "test_residency",
    "test_bytes",
    "test_eviction",
    "test_admission",
    "test_prefetch",
    "test_chunks",
    "test_layouts",
    "test_schedules",
    "test_log",
)


@attrs.frozen
class Case:
    """One test with its arguments: its name, the rules it is about, and what it does with an examination."""

    name: str
    rules: tuple[str, ...]
    run: Callable[[Examination], None]


def cases() -> Iterator[Case]:
    """Every test of the suite, parametrized as pytest would."""
    for module in MODULES:
        loaded = importlib.import_module(f"expertcache_conformance.{module}")
        for name, function in inspect.getmembers(loaded, inspect.isfunction):
            if name.startswith("test_"):
                yield from _expand(module, name, function)


def _expand(module: str, name: str, function: Callable[..., None]) -> Iterator[Case]:
    marks = getattr(function, "pytestmark", [])
    cited = tuple(rule for mark in marks if mark.name == "rule" for rule in mark.args)
    axes = [[_value(mark.args[0], raw) for raw in mark.args[1]] for mark in marks if mark.name == "parametrize"]
    for chosen in product(*axes):
        arguments = {axis: value for axis, value, _ in chosen}
        rules = cited + tuple(rule for _, _, more in chosen for rule in more)
        label = f"{module}::{name}" + (f"[{'-'.join(map(str, arguments.values()))}]" if arguments else "")
        yield Case(label, rules, lambda exam, a=arguments: function(exam, **a))  # type: ignore[misc]


def _value(axis: str, raw: Any) -> tuple[str, Any, tuple[str, ...]]:
    if not hasattr(raw, "values") or not hasattr(raw, "marks"):
        return axis, raw, ()
    return axis, raw.values[0], tuple(rule for mark in raw.marks if mark.name == "rule" for rule in mark.args)


@attrs.define
class Rundown:
    """What a whole run found: rule id to its shortest violation, crashes by test, tests not claimed, tests passed.

    not_judged: tests of logs that say too little, with what is missing.
    """

    broken: dict[str, Violation | Finding | LogFinding] = attrs.field(factory=dict)
    crashed: dict[str, str] = attrs.field(factory=dict)
    not_claimed: list[str] = attrs.field(factory=list)
    passed: list[str] = attrs.field(factory=list)
    not_judged: dict[str, str] = attrs.field(factory=dict)


def examine(implementation: Implementation, *, only: Callable[[Case], bool] = lambda case: True) -> Rundown:
    """Run every test, or those that `only` admits, and gather what they find."""
    found = Rundown()
    for case in filter(only, cases()):
        try:
            case.run(Examination(implementation))
        except NotClaimed:
            found.not_claimed.append(case.name)
        except NotJudged as missing:
            found.not_judged[case.name] = str(missing)
        except RulesBroken as broken:
            for violation in broken.violations:
                known = found.broken.get(violation.rule)
                if known is None or violation.size < known.size:
                    found.broken[violation.rule] = violation
        except Crashed as error:
            found.crashed[case.name] = str(error)
        else:
            found.passed.append(case.name)
    if LUCK in found.broken:
        found.broken = {LUCK: found.broken[LUCK]}
    return found
