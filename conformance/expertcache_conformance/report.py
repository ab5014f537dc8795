"""The report: what each test means for each rule, as JSON and in a few lines for people."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from expertcache_conformance import SUITE_VERSION
from expertcache_conformance.adapters import Implementation, PolicyAlone
from expertcache_conformance.answers import Crashed
from expertcache_conformance.examination import NotClaimed, RulesBroken
from expertcache_conformance.judge import LUCK, Violation
from expertcache_conformance.program import FORMAT, VERSION, InvalidReplay, Program, decode_program, encode_program
from expertcache_spec import SPEC_VERSION
from expertcache_spec.rules import RULES


class CannotRead(ValueError):
    """A file given to an option that does not hold what the option needs."""


def judge_outcome(item: pytest.Item, call: pytest.CallInfo[None], rules: list[str]) -> dict[str, Any]:
    """What a test's end means: plain data, so that it travels between processes.

    `pytest` is the outcome in pytest's terms; `outcome` one of passed, failed, expected, not claimed, error, skipped
    and would run.
    """
    name = f"{item.path.stem}::{item.name}"
    facts: dict[str, Any] = {"test": name, "rules": rules, "violations": [], "text": ""}
    raised = call.excinfo.value if call.excinfo is not None else None
    exam = getattr(item, "funcargs", {}).get("exam")
    if isinstance(raised, NotClaimed):
        return facts | {"pytest": "skipped", "outcome": "not claimed", "text": str(raised)}
    if isinstance(raised, pytest.skip.Exception):
        return facts | {"pytest": "skipped", "outcome": "skipped", "text": str(raised)}
    if isinstance(raised, RulesBroken):
        return facts | _failed(item, name, raised.violations)
    if isinstance(raised, Crashed):
        return facts | {"pytest": "failed", "outcome": "error", "text": f"{raised} (in {item.name})"}
    if raised is not None:
        return facts | {"pytest": "failed", "outcome": "error", "text": str(call.excinfo.getrepr())}  # type: ignore[union-attr]
    if exam is not None and exam.dry:
        return facts | {"pytest": "skipped", "outcome": "would run"}
    if exam is None or not exam.programs:
        return facts | {
            "pytest": "failed",
            "outcome": "error",
            "text": "the test asked for nothing",
        }
    return facts | {"pytest": "passed", "outcome": "passed", "programs": exam.programs}


def _failed(item: pytest.Item, name: str, violations: list[Violation]) -> dict[str, Any]:
    from expertcache_conformance.plugin import EXPECTED, IMPLEMENTATION

    implementation = item.config.stash[IMPLEMENTATION]
    expected = item.config.stash[EXPECTED]
    folder = item.config.invocation_params.dir / item.config.option.impl_failures
    found, texts = [], []
    replaying = item.name == "test_replay"
    option = "--policy" if isinstance(implementation.target, PolicyAlone) else "--impl"
    for violation in violations:
        record = describe(violation, implementation)
        file = None if replaying else write_replay(folder, name, record)
        found.append({**record, "replay": file.name if file is not None else None})
        again = (
            f"\n  again: pytest --pyargs expertcache_conformance {option} {implementation.spelled} --impl-replay {file}"
        )
        texts.append(violation.text() + (again if file is not None else ""))
    as_expected = all(violation.rule in expected for violation in violations)
    return {
        "pytest": "skipped" if as_expected else "failed",
        "outcome": "expected" if as_expected else "failed",
        "violations": found,
        "text": "\n\n".join(texts),
    }


def describe(violation: Violation, implementation: Implementation) -> dict[str, Any]:
    """The violation as the replay file's data."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "rule": violation.rule,
        "sentence": RULES[violation.rule].text,
        "implementation": implementation.profile.name,
        "spec_version": SPEC_VERSION,
        **encode_program(violation.program),
        "expected": violation.expected.describe(),
        "got": violation.got.describe(),
        "note": violation.note,
    }


def write_replay(folder: Path, test: str, record: dict[str, Any]) -> Path:
    """Write one replay file whole, under a name made of the rule and the witness; returns where."""
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(json.dumps([test, record["operations"], record["config"]]).encode()).hexdigest()[:8]
    path = folder / f"{record['rule']}-{digest}.json"
    _write(path, record)
    return path


def _write(path: Path, record: dict[str, Any]) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)
            file.write("\n")
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_replay(name: str | None) -> Program | None:
    """The program of a replay file; raises `CannotRead`."""
    if name is None:
        return None
    try:
        record = json.loads(Path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CannotRead(f"{name} is no readable replay file: {error}") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT or record.get("version") != VERSION:
        raise CannotRead(f"{name} is no replay file of format {FORMAT} version {VERSION}")
    try:
        return decode_program(record, name)
    except InvalidReplay as error:
        raise CannotRead(str(error)) from error


def read_expected(name: str | None) -> dict[str, str]:
    """Rule id to reason, from a TOML file of `[[expected]]` tables with `rule` and `reason`; raises `CannotRead`."""
    if name is None:
        return {}
    try:
        tables = tomllib.loads(Path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CannotRead(f"{name} is no readable TOML file: {error}") from error
    listed = tables.get("expected")
    if set(tables) != {"expected"} or not isinstance(listed, list) or not listed:
        raise CannotRead(f"{name} must hold [[expected]] tables and nothing else")
    expected: dict[str, str] = {}
    for entry in listed:
        if set(entry) != {"rule", "reason"} or entry["rule"] not in RULES or entry["rule"] in expected:
            raise CannotRead(f"{name}: {entry} needs a known rule, listed once, and a reason")
        expected[entry["rule"]] = entry["reason"]
    return expected


@attrs.define
class Report:
    """The facts of one run, gathered test by test."""

    implementation: Implementation
    tests: list[dict[str, Any]] = attrs.field(factory=list)
    broken: list[str] = attrs.field(factory=list)
    """Tests that failed outside of their call: a fixture, the suite itself."""

    def add(self, facts: dict[str, Any]) -> None:
        """Keep one test's facts."""
        self.tests.append(facts)

    def violated(self) -> dict[str, list[dict[str, Any]]]:
        """Rule id to violations, in order of rule and test."""
        found: dict[str, list[dict[str, Any]]] = {}
        for facts in sorted(self.tests, key=lambda facts: str(facts["test"])):
            for violation in facts["violations"]:
                found.setdefault(violation["rule"], []).append(violation)
        return {LUCK: found[LUCK]} if LUCK in found else dict(sorted(found.items()))

    def verdicts(self) -> dict[str, str]:
        """Rule id to verdict, for every rule that a test of the run is about or found broken."""
        violated = self.violated()
        heard: dict[str, set[str]] = {rule: set() for rule in violated}
        for facts in self.tests:
            for rule in facts["rules"]:
                heard.setdefault(rule, set()).add(facts["outcome"])
        if LUCK in violated:
            return {rule: "failed" if rule == LUCK else "not judged" for rule in sorted(heard)}
        return {rule: _verdict(rule in violated, heard[rule]) for rule in sorted(heard)}

    def unexpected_passes(self, expected: dict[str, str]) -> list[str]:
        """Rules that were expected to fail, that a test of this run is about, and that nothing found broken."""
        violated, verdicts = self.violated(), self.verdicts()
        return [rule for rule in expected if rule not in violated and rule in verdicts]

    def write(self, path: Path, expected: dict[str, str]) -> None:
        """Write the JSON report, whole; the same run writes the same bytes."""
        violated, profile = self.violated(), attrs.asdict(self.implementation.profile)
        rules = {
            rule: {
                "level": RULES[rule].level,
                "sentence": RULES[rule].text,
                "verdict": verdict,
                "tests": {f["test"]: f["outcome"] for f in self._tests() if rule in f["rules"]},
                "violations": violated.get(rule, []),
            }
            for rule, verdict in self.verdicts().items()
        }
        _write(
            path,
            {
                "format": "expertcache-report",
                "version": 1,
                "header": {
                    "suite_version": SUITE_VERSION,
                    "spec_version": SPEC_VERSION,
                    "implementation": {"spelled": self.implementation.spelled, **profile},
                    "python": platform.python_version(),
                    "platform": platform.system(),
                    "seed": "fixed: every random choice is derived from the names of scenario and number",
                },
                "rules": rules,
                "expected": {"failures": expected, "unexpected_passes": self.unexpected_passes(expected)},
                "footer": {
                    "verdict": self.verdict(),
                    "tests": len(self.tests),
                    "programs": sum(facts.get("programs", 0) for facts in self.tests),
                    "errors": [f["test"] for f in self._tests() if f["outcome"] == "error"] + sorted(self.broken),
                    "complete": True,
                },
            },
        )

    def _tests(self) -> list[dict[str, Any]]:
        return sorted(self.tests, key=lambda facts: str(facts["test"]))

    def verdict(self) -> str:
        """One line: conforms, to what and how much of it; or the rules that are broken."""
        profile, verdicts = self.implementation.profile, self.verdicts()
        scores = []
        for level in ("MUST", "SHOULD"):
            heard = [verdict for rule, verdict in verdicts.items() if RULES[rule].level == level]
            claimed = [verdict for verdict in heard if verdict != "not claimed"]
            scores += [f"{claimed.count('passed')}/{len(claimed)} {level}"] if claimed else []
        score = ", ".join(scores)
        claims = ", ".join((*profile.policies, *profile.capabilities))
        claim = f"expertcache {SPEC_VERSION} {{replay {profile.replay}; {claims}}}"
        failed = [rule for rule, verdict in verdicts.items() if verdict == "failed"]
        errors = len(self.broken) + sum(facts["outcome"] == "error" for facts in self.tests)
        if failed:
            return f"{profile.name} does not conform to {claim}: breaks {', '.join(failed)}; {score}"
        if errors:
            return f"{profile.name}: no verdict, {errors} tests ended in an error; {score}"
        return f"{profile.name} conforms to {claim}: {score}"

    def summary(self, expected: dict[str, str]) -> Iterator[str]:
        """The verdict and what else a person must know."""
        if not self.tests:
            return
        yield ""
        for rule, violations in self.violated().items():
            yield f"{rule} is broken{' (expected)' if rule in expected else ''}: {RULES[rule].text}"
            shortest = min(violations, key=lambda violation: len(violation["operations"]))
            yield f"    shortest witness: {len(shortest['operations'])} operations, {shortest['replay']}"
            yield f"    {shortest['note']}"
        for rule in self.unexpected_passes(expected):
            yield f"{rule} was expected to fail ({expected[rule]}) and did not: take it off the list"
        yield self.verdict()

    def listing(self) -> Iterator[str]:
        """What would run, and what is not claimed."""
        yield ""
        for facts in self._tests():
            yield f"{facts['outcome']:12} {facts['test']}  {' '.join(facts['rules'])}  {facts['text']}".rstrip()


def _verdict(violated: bool, outcomes: set[str]) -> str:
    if violated:
        return "failed"
    if "passed" in outcomes:
        return "passed"
    return "not claimed" if outcomes <= {"not claimed"} else "not judged"
