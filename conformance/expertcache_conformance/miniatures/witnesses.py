"""Witnesses: the short programs that told the miniatures from right caches, as data; what a cache is asked first.

`witnesses.jsonl` has one a line. `python -m expertcache_conformance.miniatures.witnesses` writes it anew: for every
miniature and every rule that it breaks, the witness that the first test to find it leaves after shortening.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path

import attrs

from expertcache_conformance.adapters import Config, Implementation, Profile, parse_profile
from expertcache_conformance.adapters.claims import card_of
from expertcache_conformance.answers import Crashed, Oracle
from expertcache_conformance.decoding import decode_program
from expertcache_conformance.examination import OWN, Examination, NotClaimed, RulesBroken
from expertcache_conformance.features import REFUSALS
from expertcache_conformance.judge import Violation
from expertcache_conformance.miniatures.subject import Miniature
from expertcache_conformance.program import Operation, Program, encode_program
from expertcache_conformance.rundown import Case, cases
from expertcache_spec.eviction import POLICIES, Value

NAME = "witnesses.jsonl"
LONGEST = 60
"""Operations of a witness that is kept."""
OF_OPERATION = {
    "step": (), "select": ("leases",), "complete": ("leases",), "release": ("leases",), "resume": ("leases",),
    "fail": ("faults",), "prefetch": ("prefetch",), "pin": ("pins",), "unpin": ("pins",), "seed": ("seeds",),
    "prefetch_counts": ("prefetch-counts",), "read": ("bytes",),
    "resize": ("resize",), "reset": ("reset",), "rebind": ("rebind",),
}  # fmt: skip
"""Operation to the capability that it needs."""


@attrs.frozen
class Witness:
    """A program with the miniature that it told apart and the rule that it showed broken."""

    miniature: str
    rule: str
    program: Program

    def line(self) -> str:
        """The witness as a line of the file."""
        record = {"miniature": self.miniature, "rule": self.rule, **encode_program(self.program)}
        return json.dumps(record, separators=(",", ":"))


@cache
def read() -> tuple[Witness, ...]:
    """The shipped witnesses; raises `InvalidReplay` naming the line of a damaged file."""
    text = resources.files("expertcache_conformance.miniatures").joinpath(NAME).read_text(encoding="utf-8")
    records = [(number, json.loads(line)) for number, line in enumerate(text.splitlines(), 1)]
    return tuple(Witness(r["miniature"], r["rule"], decode_program(r, f"{NAME}:{number}")) for number, r in records)


def gather(subjects: Iterable[Miniature]) -> Iterator[Witness]:
    """The witnesses of the subjects now, by the name of the rule for each; those of the conversation are left out."""
    for subject in subjects:
        found = _violations(subject)
        for rule in sorted(found):
            program = found[rule].program
            if not rule.startswith("XC-CONF") and len(program.operations) <= LONGEST:
                yield Witness(subject.name, rule, program)


def _violations(subject: Miniature) -> dict[str, Violation]:
    """A violation of each rule that the subject breaks, from the tests that cite the rule, else from the others."""
    implementation = Implementation(subject.name, parse_profile(subject.PROFILE), subject)
    found: dict[str, Violation] = {}
    asked = [case for case in cases() if "real_trace" not in case.name and "the_traces_that_told" not in case.name]
    for case in sorted(asked, key=lambda case: not subject.breaks & set(case.rules)):
        for violation in _found_by(case, implementation):
            if violation.rule in subject.breaks:
                found.setdefault(violation.rule, violation)
        if found.keys() == subject.breaks:
            break
    return found


def _found_by(case: Case, implementation: Implementation) -> list[Violation]:
    try:
        case.run(Examination(implementation))
    except RulesBroken as broken:
        return [violation for violation in broken.violations if isinstance(violation, Violation)]
    except (NotClaimed, Crashed):
        pass
    return []


def programs_for(exam: Examination, policy: str) -> list[Program]:
    """The witnesses that the implementation can be asked, under each claimed set of the policy's parameters.

    Raises `NotClaimed` where there is none.
    """
    profile = exam.implementation.profile
    names = [name for name in profile.claims if name not in POLICIES] if policy == OWN else [policy]
    found = [
        program
        for name in names
        for parameters in profile.claims.get(name, ())
        for witness in read()
        if askable(program := _under(witness.program, name, parameters), profile)
    ]
    if not found:
        raise NotClaimed(f"policy {policy} with what a witness needs")
    return found


def _under(program: Program, policy: str, parameters: Mapping[str, Value]) -> Program:
    events = tuple(operation.event for operation in program.operations if operation.event is not None)
    future = events if card_of(policy).offline else None
    config = attrs.evolve(program.config, policy=policy, parameters=parameters, future=future)
    return attrs.evolve(program, config=config)


def askable(program: Program, profile: Profile) -> bool:
    """Whether everything that the program needs is claimed, and every operation may be done under its policy."""
    config, operations = program.config, program.operations
    needed = {capability for operation in operations for capability in OF_OPERATION[operation.op]}
    needed |= {"priorities"} if any(operation.priorities is not None for operation in operations) else set()
    settings = attrs.asdict(config.settings)
    budgets = [name for name in ("slots", "bytes") if getattr(config.budget, name) is not None]
    return (
        needed <= set(profile.capabilities)
        and all(value in profile.values(name) for name, value in settings.items())
        and set(budgets) <= set(profile.budgets)
        and (profile.replay == "event" or all(_is_access(operation) for operation in operations))
        and (config.future is None or not needed)
        and _within(config, profile)
        and _is_well_formed(program)
    )


def _is_access(operation: Operation) -> bool:
    event = operation.event
    return operation.op == "step" and event is not None and event.rows == (event.rows[0][:1],)


def _within(config: Config, profile: Profile) -> bool:
    model, limits = config.geometry, profile.limits
    sizes = {"max_layers": model.layers, "max_experts": model.experts, "max_top_k": model.top_k}
    sizes |= {} if config.slots is None else {"max_slots": config.slots}
    fits = all(value <= limits.get(name, value) for name, value in sizes.items())
    return fits and (config.slots is None or config.slots >= limits.get("min_slots", 0))


def _is_well_formed(program: Program) -> bool:
    """Whether the specification does every operation, or refuses it as a full cache may."""
    oracle = Oracle(program.config)
    try:
        return all(oracle.apply(operation).error in (None, *REFUSALS) for operation in program.operations)
    except KeyError:
        return False


def main() -> None:
    """Write the file anew."""
    from expertcache_conformance.miniatures import MINIATURES

    place = Path(__file__).with_name(NAME)
    lines = []
    for witness in gather(MINIATURES):
        lines.append(witness.line() + "\n")
        print(witness.miniature, witness.rule, len(witness.program.operations), flush=True)
    place.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
