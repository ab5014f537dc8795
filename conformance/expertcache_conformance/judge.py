"""The judge: the specification and an implementation side by side, operation by operation, up to the first difference.

The verdict on a program is that nothing differs, or one `Violation`: the rule that broke, the operation at which it
showed, what the specification answers there and what the implementation answered.
"""

from __future__ import annotations

from typing import Any

import attrs

from expertcache_conformance import diagnosis, features, looking
from expertcache_conformance.adapters import Config, Implementation, PolicyAlone
from expertcache_conformance.adapters.claims import card_of
from expertcache_conformance.answers import Answer, Malformed, Oracle, oracle_of, subject_of
from expertcache_conformance.program import Operation, Program, count, encode_program, model_in_words
from expertcache_conformance.suspects import claim, identify
from expertcache_spec.errors import InvalidPolicy
from expertcache_spec.eviction.spelling import spell
from expertcache_spec.rules import RULES

LUCK = "XC-CONF-002"
"""The rule of repeatable answers. Where it is broken, nothing else that was found means anything."""


class IllFormed(ValueError):
    """A program that names an event which is not outstanding: a shortening went too far."""


@attrs.frozen
class Violation:
    """A broken rule, with its witness: the program up to and including the operation at which it shows."""

    rule: str
    program: Program
    expected: Answer
    got: Answer
    note: str = ""

    @property
    def size(self) -> tuple[int, int]:
        """How long the witness is: operations, then selections in them."""
        operations = self.program.operations
        return len(operations), sum(len(o.event.keys) for o in operations if o.event is not None)

    def data(self) -> dict[str, Any]:
        """The witness as a replay file has it."""
        return {
            **encode_program(self.program), "expected": self.expected.describe(), "got": self.got.describe(),
        }  # fmt: skip

    def text(self) -> str:
        """The finding for people: rule, sentence, program, expected and got at the step that differs."""
        config, operations = self.program.config, self.program.operations
        limits = (("slot", config.slots), ("byte", config.bytes))
        budget = ", ".join(count(number, noun) for noun, number in limits if number is not None)
        chosen = ", ".join(f"{name} {value}" for name, value in attrs.asdict(config.settings).items())
        lines = [
            f"{self.rule}: {RULES[self.rule].text}",
            f"  policy {_spelled(config)}, {budget}; {chosen}",
            f"  model of {model_in_words(config.geometry)}",
        ]
        shown = operations if len(operations) <= 40 else operations[-40:]
        lines += [] if shown is operations else [f"  ... {len(operations) - 40} operations before these"]
        lines += [f"  {len(operations) - len(shown) + i}: {operation}" for i, operation in enumerate(shown)]
        lines += [f"  expected {self.expected.describe()}", f"  got      {self.got.describe()}"]
        return "\n".join([*lines, *([f"  {self.note}"] if self.note else [])])


def _spelled(config: Config) -> str:
    """The policy with the parameters that are not its defaults."""
    usual = card_of(config.policy).complete()
    return spell(config.policy, {name: value for name, value in config.parameters.items() if value != usual.get(name)})


def differs(expected: Answer, got: Answer) -> bool:
    """Whether the two answers disagree; where one is a refusal, on nothing but which."""
    if expected.error or got.error:
        return expected.error != got.error
    return expected != got


def judge(program: Program, implementation: Implementation) -> Violation | None:
    """The first difference, as the rule that it breaks; None when there is none.

    Raises `Crashed` when the implementation raises, `IllFormed` when the program makes no sense.
    """
    try:
        oracle = oracle_of(implementation, program.config)
        subject = subject_of(implementation, program.config)
        victims = implementation.profile.victims
        for index, operation in enumerate(program.operations):
            expected = oracle.apply(operation)
            try:
                got = subject.apply(operation)
            except Malformed as error:
                return Violation("XC-CONF-001", _up_to(program, index), expected, Answer(), str(error))
            got = _as_claimed(expected, got, implementation)
            if not victims:
                expected, got = _hits_only(expected, operation), _hits_only(got, operation)
            if differs(expected, got):
                return Violation(*_name(_up_to(program, index), expected, got, implementation))
    except KeyError as error:
        raise IllFormed(f"event {error} is not outstanding, or does not hold what is asked for") from error
    return None


def _up_to(program: Program, index: int) -> Program:
    return attrs.evolve(program, operations=program.operations[: index + 1])


def _name(
    witness: Program, expected: Answer, got: Answer, implementation: Implementation
) -> tuple[str, Program, Answer, Answer, str]:
    """The rule that the difference breaks, with the note that says why, as the fields of a violation."""
    if expected.content is not None and got.content is not None:
        rule, note = looking.blame(witness, got.content, implementation)
        return rule, witness, expected, got, note
    if not implementation.profile.victims and expected.hits != got.hits and pressed(witness):
        verdict = diagnosis.of_hits(witness, expected, got)
    else:
        verdict = diagnosis.diagnose(witness, expected, got)
    if isinstance(implementation.target, PolicyAlone) and verdict.rule.startswith("XC-ADMIT"):
        # The admission is the specification's own: what it was told of the victim is not the policy's.
        verdict = diagnosis.Verdict(card_of(witness.config.policy).rule, verdict.note, of_policy=True)
    rule, note = verdict.rule, verdict.note
    if got.error == InvalidPolicy.code:
        pass  # the machine has said which victim, and why it may not leave
    elif verdict.of_policy and (suspect := known_as(implementation, witness)) is not None:
        rule, note = suspect[0], f"{note}; every answer {suspect[1]}"
    elif verdict.indirect and features.aliased(witness, expected, got, implementation):
        rule, note = "XC-MODEL-001", f"{note}; a fresh cache takes one layer's record for another's"
    elif verdict.indirect and (feature := features.blame(witness, implementation)) is not None:
        rule = feature
    elif verdict.indirect and not rule.startswith("XC-ADMIT"):
        rule = features.of_admission(witness, implementation) or rule
    return rule, witness, expected, got, note


def _hits_only(answer: Answer, operation: Operation) -> Answer:
    """What is left of an answer when victims are not reported: hits, and everything else that was asked for."""
    asked = frozenset(operation.event.keys) if operation.event is not None and not answer.error else frozenset()
    return Answer(hits=answer.hits, misses=asked - answer.hits, content=answer.content, error=answer.error)


def pressed(program: Program) -> bool:
    """Whether the specification has evicted, or not kept, anything before the last operation."""
    oracle = Oracle(program.config)
    answers = [oracle.apply(operation) for operation in program.operations[:-1]]
    return any(answer.victims or answer.refused or answer.bypassed for answer in answers)


_IDENTIFIED: dict[tuple[object, ...], tuple[str, str] | None] = {}


def known_as(implementation: Implementation, program: Program) -> tuple[str, str] | None:
    """What the implementation is instead of what it claims (`suspects.identify`); found once for each claim."""
    if any(operation.op != "step" for operation in program.operations) or program.config.future is not None:
        return None
    key = claim(implementation, program.config)
    if key not in _IDENTIFIED:
        _IDENTIFIED[key] = identify(implementation, program.config)
    return _IDENTIFIED[key]


def _as_claimed(expected: Answer, got: Answer, implementation: Implementation) -> Answer:
    """The answer with what the implementation does not report taken as right.

    `reads` and `joined` of a select follow from its misses for a cache that leaves them out.
    """
    filled = {name: getattr(expected, name) for name in ("reads", "joined") if not getattr(got, name)}
    if implementation.profile.replay == "sequential":
        filled |= {"reads": expected.reads, "joined": expected.joined}
    return attrs.evolve(got, **filled)
