"""What a recorded log is judged by: the checker's verdict as a finding, and what could not be judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from expertcache_conformance.adapters.recorded import RecordedLog
from expertcache_spec.rules import RULES

ABOUT = {
    "XC-HIST-001": "end",
    "XC-HIST-002": "end",
    "XC-HIST-003": "select",
    "XC-HIST-004": "select",
    "XC-HIST-005": "select",
    "XC-HIST-006": "read_start",
    "XC-HIST-007": "read_start",
    "XC-HIST-008": "compute_start",
    "XC-HIST-009": "combine",
    "XC-HIST-010": "prefetch",
    "XC-HIST-011": "end",
    "XC-FANOUT-005": "read_end",
    "XC-TRACE-002": "select",
    "XC-RES-002": "select",
    "XC-RES-003": "hit",
    "XC-RES-005": "evict",
    "XC-RES-008": "evict",
    "XC-RES-010": "miss",
    "XC-RES-011": "resize",
    "XC-RES-013": "resume",
    "XC-RES-015": "publish",
    "XC-RES-016": "fail",
    "XC-RES-017": "release",
    "XC-RES-018": "pin",
    "XC-RES-019": "unpin",
    "XC-RES-020": "seed",
    "XC-RES-022": "reset",
    "XC-RES-023": "rebind",
}
"""Rule to an operation without whose lines a log has nothing to say about it."""


class NotJudged(Exception):
    """A log in which no line breaks the rule, and the rule could not be judged; `whole` where that is the verdict."""

    def __init__(self, text: str, whole: bool = False) -> None:
        self.whole = whole
        super().__init__(text)


@attrs.frozen
class LogFinding:
    """A broken rule, with the line that breaks it and the few lines that show it."""

    rule: str
    log: str
    line: int
    what: str
    witness: dict[int, str]
    expected: Any = None
    got: Any = None
    why: str = ""

    @property
    def note(self) -> str:
        """Why, in a line."""
        return self.why or self.what

    @property
    def size(self) -> tuple[int, ...]:
        """The earlier of two tells more."""
        return (self.line,)

    def text(self) -> str:
        """The finding for people: rule, sentence, line, what is wrong, the lines between which it is wrong."""
        lines = [f"{self.rule}: {RULES[self.rule].text}", f"  {self.log}:{self.line}: {self.what}"]
        lines += [f"  {number}: {said}" for number, said in self.witness.items()]
        if self.expected is not None:
            lines += [f"  expected {self.expected}", f"  got      {self.got}"]
        return "\n".join([*lines, *([f"  {self.why}"] if self.why else [])])

    def data(self) -> dict[str, Any]:
        """The finding as a report has it."""
        return {
            "asked": f"line {self.line} of {self.log}", "line": self.line, "what": self.what,
            "witness": {str(number): said for number, said in self.witness.items()},
            "expected": self.expected, "got": self.got,
        }  # fmt: skip


def offence(log: RecordedLog) -> LogFinding | None:
    """The first line that breaks a rule."""
    verdict = log.judged[0]
    if verdict.rule is None or verdict.line is None:
        return None
    witness = log.quoted(verdict.witness)
    return LogFinding(verdict.rule, log.path.name, verdict.line, verdict.what, witness)


def told(missing: Mapping[str, str]) -> str:
    """What could not be judged, by reason."""
    reasons: dict[str, list[str]] = {}
    for rule, why in missing.items():
        reasons.setdefault(why, []).append(rule)
    return "; ".join(f"{', '.join(rules)}: {why}" for why, rules in reasons.items())
