"""One question to a planner, its verdict, and the smaller questions that break the same rule."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import attrs

from expertcache_conformance.answers import CODES, Crashed, Malformed
from expertcache_conformance.bounded import TooMuch, brief, narrow, taken
from expertcache_conformance.judge import LUCK
from expertcache_spec.rules import RULES

EFFORT = 2_000
"""Questions that shortening one finding may ask."""


class Refused(Exception):
    """A declared refusal, by its code."""


class Wrong(NamedTuple):
    """A rule that an answer breaks, what was expected and what came, as plain data, and why."""

    rule: str
    expected: Any
    got: Any
    note: str = ""


class Question(ABC):
    """What is asked of a planner."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def size(self) -> tuple[int, ...]:
        """How large it is; the smaller of two tells more."""

    @abstractmethod
    def ask(self, target: Any) -> Any:
        """The answer, in one shape; raises `Malformed`, `Refused` or `Crashed`."""

    @abstractmethod
    def judge(self, answer: Any) -> Wrong | None:
        """What is wrong with the answer: the first rule that it breaks, from the most basic to the most particular."""

    def left_open(self, answer: Any) -> Mapping[str, str]:
        """Rules that the answer does not let be judged, each with what it lacks."""
        return {}

    @abstractmethod
    def smaller(self) -> Iterator[Question]:
        """Questions with less in them."""

    @abstractmethod
    def encode(self) -> dict[str, Any]:
        """The question as JSON data; `decoding` reads it."""

    @abstractmethod
    def __str__(self) -> str: ...


@attrs.frozen
class Finding:
    """A broken rule, with the question whose answer shows it. Stands where a cache's `Violation` does."""

    rule: str
    question: Question
    expected: Any
    got: Any
    note: str = ""

    @property
    def size(self) -> tuple[int, ...]:
        """That of the question."""
        return self.question.size

    def text(self) -> str:
        """The finding for people: rule, sentence, question, expected and got."""
        asked = "\n".join(f"  {line}" for line in str(self.question).splitlines())
        lines = [f"{self.rule}: {RULES[self.rule].text}", asked]
        lines += [f"  {name} {_shown(value)}" for name, value in (("expected", self.expected), ("got     ", self.got))]
        return "\n".join([*lines, *([f"  {self.note}"] if self.note else [])])

    def data(self) -> dict[str, Any]:
        """The witness as a replay file has it."""
        question = {"kind": self.question.kind, **self.question.encode()}
        return {"question": question, "asked": str(self.question).splitlines()[0], "expected": self.expected,
                "got": self.got}  # fmt: skip


def _shown(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], str):
        return "".join(f"\n    {line}" for line in value)
    return str(value)


def answered(question: Question, target: Any) -> Finding | None:
    """The question asked twice, and what is wrong with the answer; raises `Crashed`."""
    try:
        first, second = question.ask(target), question.ask(target)
    except Malformed as error:
        return Finding("XC-CONF-001", question, "an answer in the protocol's form", None, str(error))
    except Refused as error:
        return Finding("XC-CONF-003", question, "an answer", str(error), "what is claimed is refused")
    if first != second:
        return Finding(LUCK, question, str(first), str(second), "the same question is answered otherwise")
    wrong = question.judge(first)
    return None if wrong is None else Finding(wrong.rule, question, wrong.expected, wrong.got, wrong.note)


def shorten(finding: Finding, target: Any) -> Finding:
    """The same rule broken by a question with less in it."""
    best, effort = finding, EFFORT
    again = True
    while again and effort > 0:
        again = False
        for question in best.question.smaller():
            effort -= 1
            try:
                found = answered(question, target)
            except Crashed:
                found = None
            if found is not None and found.rule == finding.rule and found.size < best.size:
                best, again = found, True
                break
    return best


def call(target: Any, method: str, *arguments: Any) -> Any:
    """What the planner answers; raises `Crashed`, `Refused`, or `Malformed` where there is no such method."""
    if not callable(getattr(target, method, None)):
        raise Malformed(f"there is no method {method}, which the profile claims")
    try:
        raw = getattr(target, method)(*arguments)
        raw = taken(raw) if isinstance(raw, Iterator) else raw
    except TooMuch as error:
        raise Malformed(f"{method} answers {error}") from None
    except Exception as error:
        code = getattr(error, "code", None)
        if isinstance(code, str):
            raise Refused(code) from error
        raise Crashed(f"{method} raised {type(error).__name__}: {error}") from error
    if isinstance(raw, Mapping) and "error" in raw:
        if raw["error"] not in CODES:
            raise Malformed(f"error {brief(raw['error'])} is none of {', '.join(sorted(CODES))}")
        raise Refused(raw["error"])
    return raw


def rows(what: str, raw: Any, form: str) -> list[tuple[Any, ...]]:
    """The answer as tuples of `form`, a letter a value: `n` a whole number, `s` a text; raises `Malformed`."""
    return [_row(what, item, form) for item in listed(what, raw)]


def listed(what: str, raw: Any) -> list[Any]:
    """The values of an answer; raises `Malformed` where it is no list of them, or one without an end."""
    if isinstance(raw, str | bytes | Mapping) or not isinstance(raw, Iterable):
        raise Malformed(f"{what} is {brief(raw)}, not a list")
    try:
        return taken(raw)
    except TooMuch as error:
        raise Malformed(f"{what} holds {error}") from None


def _row(what: str, item: Any, form: str) -> tuple[Any, ...]:
    values = listed(what, item)
    if len(values) != len(form):
        raise Malformed(f"{what} holds {brief(item)}, not {len(form)} values")
    return tuple(
        whole(what, value) if kind == "n" else text(what, value) for value, kind in zip(values, form, strict=True)
    )


def whole(what: str, value: Any) -> int:
    """The value as a whole number; raises `Malformed`."""
    try:
        return narrow(operator.index(value))
    except TypeError:
        raise Malformed(f"{what} holds {brief(value)}, not a whole number") from None
    except TooMuch as error:
        raise Malformed(f"{what} holds {error}") from None


def text(what: str, value: Any) -> str:
    """The value as a text; raises `Malformed`."""
    if not isinstance(value, str):
        raise Malformed(f"{what} holds {brief(value)}, not a text")
    return value
