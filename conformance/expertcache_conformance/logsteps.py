"""A log step by step: every decision that it records beside the specification's own, from select to release."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any

import attrs

from expertcache_conformance import diagnosis
from expertcache_conformance.adapters.protocol import Config
from expertcache_conformance.adapters.recorded import RecordedLog
from expertcache_conformance.answers import OF_OPERATION, Answer, Oracle
from expertcache_conformance.logs import LogFinding, NotJudged
from expertcache_conformance.program import Operation, Program
from expertcache_spec.errors import ExpertCacheError, InvalidTrace
from expertcache_spec.eviction import POLICIES
from expertcache_spec.history.following import FOLLOWERS, event_of
from expertcache_spec.model import Key

_FIELDS = {"hit": "hits", "bypass": "bypassed", "evict": "victims", "refuse": "refused", "miss": "misses",
           "read": "reads", "join": "joined", "defer": "deferred"}  # fmt: skip
ANSWERED = {name: fields for name, fields in OF_OPERATION.items() if name not in ("step", "seed")}
"""Operation to what a log says of its answer; of the others it has no words for one."""


@attrs.define
class Step:
    """A cause: its line, the last line that belongs to it, the operation that it is, and what is said of its answer."""

    line: int
    operation: Operation
    last: int = attrs.field(default=attrs.Factory(lambda self: self.line, takes_self=True))
    said: dict[str, set[Key]] = attrs.field(
        default=attrs.Factory(
            lambda self: {name: set() for name in ANSWERED.get(self.operation.op, ())}, takes_self=True
        )
    )

    def note(self, line: int, record: dict[str, Any]) -> None:
        """Take a line that belongs to it."""
        self.last = line
        for name in (record["op"], record.get("how", record["op"])):
            if _FIELDS[name] in self.said:
                self.said[_FIELDS[name]].add(Key(*record["key"]))


@cache
def compare(log: RecordedLog) -> tuple[int, LogFinding | None]:
    """How many steps were compared with the specification's replay of the declared policy, and the first that differs.

    Raises `NotJudged` where the log declares no policy of the specification.
    """
    config = _config(log)
    oracle, number = Oracle(config), 0
    try:
        for number, step in enumerate(_legal(log), 1):
            expected = oracle.apply(step.operation)
            said: dict[str, Any] = {name: frozenset(keys) for name, keys in step.said.items()}
            got = attrs.evolve(expected, error=None, **said)
            if expected != got:
                program = Program(config, tuple(each.operation for each in islice(steps(log), number)))
                return number, _finding(log, number, step, diagnosis.diagnose(program, expected, got), expected, got)
    except (KeyError, InvalidTrace):
        if log.judged[0].answer != "illegal":
            raise
    return number, None  # what is no event, or names no open one, is the checker's finding


def _legal(log: RecordedLog) -> Iterator[Step]:
    """The steps up to the first line that breaks a rule: what comes behind it is its consequence."""
    last = log.judged[0].line
    return (step for step in steps(log) if last is None or step.line <= last)


def _finding(
    log: RecordedLog, number: int, step: Step, found: diagnosis.Verdict, expected: Answer, got: Answer
) -> LogFinding:
    """The step that differs, under the rule that the checker names where it stops at the same step."""
    verdict = log.judged[0]
    same = verdict.rule is not None and verdict.line is not None and step.line <= verdict.line <= step.last
    rule = str(verdict.rule) if same else found.rule
    what, told = f"step {number}, {step.operation}", (expected.describe(), got.describe())
    return LogFinding(rule, log.path.name, step.line, what, log.quoted([step.line]), *told, found.note)


def _config(log: RecordedLog) -> Config:
    header = log.header
    if header.policy is None or header.policy not in POLICIES:
        raise NotJudged("the log declares no policy of the specification")
    card, future = POLICIES[header.policy], None
    if card.offline:
        future = tuple(each.operation.event for each in steps(log) if each.operation.event is not None)
    try:
        parameters = card.complete(header.parameters)
    except ExpertCacheError as error:
        raise NotJudged(str(error)) from error
    # A log does not name the model that it begins with.
    return Config(card.name, header.budget, header.geometry, header.settings, parameters, future, fingerprint="")


def steps(log: RecordedLog) -> Iterator[Step]:
    """The log's causes in order, each with what follows it."""
    labels: dict[int, int] = {}
    step: Step | None = None
    for line, record in log.lines():
        if record["op"] in FOLLOWERS:
            if step is not None:
                step.note(line, record)
            continue
        if step is not None:
            yield step
        outside = record["op"] == "prefetch" and log.header.prefetch == "staging"  # the cache knows nothing of it
        operation = None if outside else _operation(record, labels)
        step = None if operation is None else Step(line, operation)
    if step is not None:
        yield step


def _operation(record: dict[str, Any], labels: dict[int, int]) -> Operation | None:
    """The operation of a cause; None for one that the machine has no word for."""
    op, key = record["op"], Key(*record["key"]) if "key" in record else None
    if op == "select":
        labels[record["ticket"]] = record["ticket"]
        return Operation(op, event=event_of(record), label=record["ticket"])
    if op == "resume":
        labels[record["ticket"]] = labels.get(record["after"], -1)
    if op in ("resume", "release", "abandon"):
        return Operation("resume" if op == "resume" else "release", label=labels.get(record["ticket"], -1))
    if op == "fail" and "ticket" in record:
        return None
    if op in ("publish", "fail"):
        return Operation("complete" if op == "publish" else op, key=key)
    if op == "seed" and key is not None:
        return Operation("install", keys=(key,), priorities=(record["priority"],) if record["priority"] else None)
    if op == "prefetch":
        label = labels.get(record["ticket"], -1) if "ticket" in record else None
        found = Operation(op if label is None else "displace", label=label, key=key)
        return found if record["state"] in ("reading", "present") else None
    if op in ("pin", "unpin"):
        return Operation(op, key=key)
    if op == "resize":
        return Operation(op, slots=record.get("slots"), bytes=record.get("bytes"))
    return (
        Operation(op, text=record["scope" if op == "reset" else "fingerprint"]) if op in ("reset", "rebind") else None
    )


def undecided(log: RecordedLog) -> dict[str, str]:
    """Rule to why it could not be judged; a policy that must know the future is judged step by step."""
    found = dict(log.judged[0].undecided)
    offline = log.header.policy in POLICIES and POLICIES[str(log.header.policy)].offline
    if offline and compare(log)[1] is None:
        found.pop("XC-HIST-005", None)
    return found
