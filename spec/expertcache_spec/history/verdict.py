"""Verdicts: legal, illegal with line, rule and witness, or unknown."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import attrs

Answer = Literal["legal", "illegal", "unknown"]


@attrs.frozen(slots=False)
class Verdict:
    """What the checker says about a log.

    answer: `legal` when every line obeys every rule, `illegal` at the first line that does not, `unknown` when no line
    breaks a rule but some rule could not be judged. records: lines checked, header and end apart. line, rule, what:
    the first offence. witness: numbers of the few lines, the offending one last, between which the rule is broken.
    undecided: rule id to why it could not be judged.
    """

    answer: Answer
    records: int
    line: int | None = None
    rule: str | None = None
    what: str = ""
    witness: tuple[int, ...] = ()
    undecided: Mapping[str, str] = MappingProxyType({})


class Offence(Exception):
    """A line that breaks a rule; ends the checking."""

    def __init__(self, rule: str, line: int, what: str, *witness: int) -> None:
        self.rule, self.line, self.what = rule, line, what
        self.witness = tuple(sorted({*witness, line} - {0}))
        super().__init__(what)
