"""The report: what each test means for each rule, as JSON and in a few lines for people."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from expertcache_conformance import SUITE_VERSION
from expertcache_conformance.adapters import Implementation, PolicyAlone
from expertcache_conformance.answers import Crashed
from expertcache_conformance.examination import NotClaimed, RulesBroken
from expertcache_conformance.files import CannotWrite, write, write_replay
from expertcache_conformance.judge import LUCK, Violation
from expertcache_conformance.logs import LogFinding, NotJudged
from expertcache_conformance.program import FORMAT, VERSION, count
from expertcache_conformance.questions import Finding
from expertcache_spec import SPEC_VERSION
from expertcache_spec.rules import RULES


def judge_outcome(item: pytest.Item, call: pytest.CallInfo[None], rules: list[str]) -> dict[str, Any]:
    """What a test's end means: plain data, so that it travels between processes.

    `pytest` is the outcome in pytest's terms; `outcome` one of passed, failed, expected, not claimed, not judged,
    error, skipped and would run.
    """
    name = f"{item.path.stem}::{item.name}"
    facts: dict[str, Any] = {"test": name, "rules": rules, "violations": [], "text": ""}
    raised = call.excinfo.value if call.excinfo is not None else None
    exam = getattr(item, "funcargs", {}).get("exam")
    if isinstance(raised, NotClaimed):
        return facts | {"pytest": "skipped", "outcome": "not claimed", "text": str(raised)}
    if isinstance(raised, NotJudged):
        known = {"pytest": "failed" if raised.whole else "skipped", "outcome": "not judged"}
        return facts | known | {"text": f"not judged: {raised}", "whole": raised.whole}
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


def _failed(item: pytest.Item, name: str, violations: list[Violation | Finding | LogFinding]) -> dict[str, Any]:
    from expertcache_conformance.plugin import EXPECTED, IMPLEMENTATION

    implementation = item.config.stash[IMPLEMENTATION]
    expected = item.config.stash[EXPECTED]
    folder = item.config.invocation_params.dir / item.config.option.impl_failures
    found, texts = [], []
    replaying = item.name == "test_replay"
    option = "--policy" if isinstance(implementation.target, PolicyAlone) else "--impl"
    for violation in violations:
        record = describe(violation, implementation)
        file, again = None, ""
        if not (replaying or isinstance(violation, LogFinding)):  # the log is its own witness
            file, again = _keep(folder, name, record, f"{option} {implementation.spelled}")
        found.append({**record, "replay": file})
        texts.append(violation.text() + again)
    as_expected = all(violation.rule in expected for violation in violations)
    return {
        "pytest": "skipped" if as_expected else "failed",
        "outcome": "expected" if as_expected else "failed",
        "violations": found,
        "text": "\n\n".join(texts),
    }


def _keep(folder: Path, test: str, record: dict[str, Any], subject: str) -> tuple[str | None, str]:
    """Write the replay file; its name, and what to tell of it under the finding."""
    try:
        file = write_replay(folder, test, record)
    except CannotWrite as error:
        return None, f"\n  no replay file: {error}"
    return file.name, f"\n  again: pytest --pyargs expertcache_conformance {subject} --impl-replay {file}"


def describe(violation: Violation | Finding | LogFinding, implementation: Implementation) -> dict[str, Any]:
    """The violation as the replay file's data."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "rule": violation.rule,
        "sentence": RULES[violation.rule].text,
        "implementation": implementation.profile.name,
        "spec_version": SPEC_VERSION,
        **violation.data(),
        "note": violation.note,
    }


@attrs.define
class Report:
    """The facts of one run, gathered test by test."""

    implementation: Implementation
    replaying: bool = False
    """Whether all that is run is one replay file."""
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
        verdicts = {rule: _verdict(rule in violated, heard[rule]) for rule in sorted(heard)}
        if LUCK in violated:  # what is not claimed stays so: the score is of what is
            return {r: "not judged" if r != LUCK and verdicts[r] != "not claimed" else verdicts[r] for r in verdicts}
        return verdicts

    def unexpected_passes(self, expected: dict[str, str]) -> list[str]:
        """Rules that were expected to fail, that a test of this run is about, and that nothing found broken."""
        violated, verdicts = self.violated(), self.verdicts()
        return [rule for rule in expected if rule not in violated and rule in verdicts]

    def write(self, path: Path, expected: dict[str, str]) -> None:
        """Write the JSON report; the same run writes the same bytes. Raises `CannotWrite`."""
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
        write(
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
        failed = [rule for rule, verdict in verdicts.items() if verdict == "failed"]
        if self.replaying:
            return f"{profile.name}: {self._of_witness(failed)}"
        scores = []
        for level in ("MUST", "SHOULD"):
            heard = [verdict for rule, verdict in verdicts.items() if RULES[rule].level == level]
            claimed = [verdict for verdict in heard if verdict != "not claimed"]
            scores += [f"{claimed.count('passed')}/{len(claimed)} {level}"] if claimed else []
        score = ", ".join(scores)
        claims = ", ".join((*profile.policies, *profile.capabilities))
        replay = f"replay {profile.replay}; " if profile.policies else ""
        claim = f"expertcache {SPEC_VERSION} {{{replay}{claims}}}"
        errors = len(self.broken) + sum(facts["outcome"] == "error" for facts in self.tests)
        open_ = [str(facts["text"]) for facts in self.tests if facts.get("whole")]
        if failed:
            return f"{profile.name} does not conform to {claim}: breaks {', '.join(failed)}; {score}"
        if errors:
            return f"{profile.name}: no verdict, {count(errors, 'test')} ended in an error; {score}"
        if open_:
            return f"{profile.name}: no verdict, {'; '.join(open_)}; {score}"
        return f"{profile.name} conforms to {claim}: {score}"

    def _of_witness(self, failed: list[str]) -> str:
        """The same of one replay file, which says nothing of conforming."""
        if failed:
            return f"the witness still fails: {', '.join(failed)}"
        passed = not self.broken and {facts["outcome"] for facts in self.tests} == {"passed"}
        return "the witness no longer fails" if passed else "no verdict on the witness"

    def summary(self, expected: dict[str, str]) -> Iterator[str]:
        """The verdict and what else a person must know."""
        if not self.tests:
            return
        yield ""
        for rule, violations in self.violated().items():
            yield f"{rule} is broken{' (expected)' if rule in expected else ''}: {RULES[rule].text}"
            shortest = min(violations, key=lambda violation: len(violation.get("operations", ())))
            file = f", {shortest['replay']}" if shortest["replay"] is not None else ""
            asked = shortest.get("asked") or count(len(shortest["operations"]), "operation")
            yield f"    shortest witness: {asked}{file}"
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
