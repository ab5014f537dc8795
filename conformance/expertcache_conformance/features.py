"""Features: when an implementation is right on plain passes and wrong here, what this program has that those have not.

A budget that seems exceeded after a failed read, a victim too many under a split quota: the difference shows in room or
recency, but the rule that broke is that of the feature. It is found by leaving features out, one kind at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from expertcache_conformance.adapters import Config, Implementation, PolicyAlone
from expertcache_conformance.adapters.claims import card_of
from expertcache_conformance.answers import Answer, Crashed, Malformed, Oracle, oracle_of, subject_of
from expertcache_conformance.program import Operation, Program, steps
from expertcache_conformance.suspects import claim, corpus
from expertcache_spec.admission import admission
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.trace import Event

OF_FEATURE = {
    "unpin": "XC-RES-019",
    "fail": "XC-RES-016",
    "seed": "XC-RES-020",
    "prefetch": "XC-RES-021",
    "resize": "XC-RES-011",
    "reset": "XC-RES-022",
    "rebind": "XC-RES-023",
    "pin": "XC-RES-018",
}
"""Operation to the rule that is broken when it is what makes the difference, the particular before the general."""


OF_PRIORITIES = {"route-hotness": "XC-EVICT-185"}
"""Policy to its rule about the priorities of seeds, where that is not the policy's own."""


OF_ADMISSION = {"reset": "XC-ADMIT-012", "seed": "XC-ADMIT-010", "prefetch": "XC-ADMIT-010"}
"""The same where an admission is declared that keeps books of its own."""


REFUSALS = {
    "event-too-large": "XC-RES-012",
    "must-wait": "XC-RES-024",
    "no-victim": "XC-RES-024",
    "still-in-use": "XC-RES-022",
    "invalid-budget": "XC-RES-011",
    "invalid-model": "XC-TRACE-003",
    "invalid-policy": "XC-RES-005",
}
"""Error code to the rule that demands, or forbids, the refusal."""


def blame(program: Program, implementation: Implementation) -> str | None:
    """The rule of the feature without which the implementation answers as the specification does; None if none is."""
    present = [
        *_operations(program, alone=isinstance(implementation.target, PolicyAlone)),
        *_refusals(program),
        *_of_budget(program.config),
    ]
    if not present or not right_on_plain_passes(implementation, program.config):
        return None
    for rule, without in present:
        if without is None or agrees(without, implementation):
            return rule
    return None


def aliased(program: Program, expected: Answer, got: Answer, implementation: Implementation) -> bool:
    """Whether a fresh cache that has served one record takes it for that of another layer: tried, not inferred.

    Tried are the keys about which the answers differ, each after every key of another layer that the program asks for.
    """
    wrong = expected.hits ^ got.hits | expected.victims ^ got.victims
    events = [operation.event for operation in program.operations if operation.event is not None]
    others = sorted({key for event in events for key in event.keys})
    pairs = [(other, key) for key in sorted(wrong)[:_TRIED] for other in others if other.layer != key.layer]
    return any(_is_taken_for(other, key, program.config, implementation) for other, key in pairs)


_TRIED = 4
"""Keys that are tried at most: the differences of one event have one cause."""


def _is_taken_for(other: Key, key: Key, config: Config, implementation: Implementation) -> bool:
    probe = steps(config, tuple(Event(each.layer, ((each.expert,),)) for each in (other, key)))
    try:
        subject = subject_of(implementation, probe.config)
        return key in [subject.apply(operation) for operation in probe.operations][-1].hits
    except (Malformed, Crashed):
        return False


def of_admission(program: Program, implementation: Implementation) -> str | None:
    """The rule of the declared admission, where the implementation is right without one; None otherwise."""
    chosen = program.config.settings.admission
    alone = isinstance(implementation.target, PolicyAlone)
    if alone or chosen == "always" or "always" not in implementation.profile.values("admission"):
        return None
    settings = attrs.evolve(program.config.settings, admission="always")
    plain = attrs.evolve(program, config=attrs.evolve(program.config, settings=settings))
    if not right_on_plain_passes(implementation, plain.config) or not agrees(plain, implementation):
        return None
    return admission(chosen)[0].rule


def _operations(program: Program, *, alone: bool) -> Iterator[tuple[str, Program]]:
    """For each kind of operation beside serving events, the program without it.

    alone: a policy by itself is examined; the admission is the specification's.
    """
    present = {operation.op for operation in program.operations}
    if any(operation.priorities for operation in program.operations):
        kept = [attrs.evolve(operation, priorities=None) for operation in program.operations]
        yield OF_PRIORITIES.get(program.config.policy) or card_of(program.config.policy).rule, _with(program, kept)
    for kind in (kind for kind in OF_FEATURE if kind in present):
        if kind == "fail":
            kept = [attrs.evolve(o, op="complete") if o.op == kind else o for o in program.operations]
        else:
            dropped = ("pin", "unpin") if kind == "pin" else (kind,)
            kept = [o for o in program.operations if o.op not in dropped]
        plain = alone or program.config.settings.admission == "always"
        ruled = OF_FEATURE if plain else {**OF_FEATURE, **OF_ADMISSION}
        yield ruled[kind], _with(program, kept)


def _with(program: Program, operations: list[Operation]) -> Program:
    return attrs.evolve(program, operations=tuple(operations))


def _refusals(program: Program) -> Iterator[tuple[str, Program]]:
    """For each kind of refusal before the last operation, the program without the operations that are refused so."""
    oracle = Oracle(program.config)
    errors = [oracle.apply(operation).error for operation in program.operations]
    for error in dict.fromkeys(error for error in errors[:-1] if error in REFUSALS):
        kept = [o for o, its in zip(program.operations[:-1], errors, strict=False) if its != error]
        yield REFUSALS[str(error)], attrs.evolve(program, operations=(*kept, program.operations[-1]))


def _of_budget(config: Config) -> Iterator[tuple[str, None]]:
    """The rules that the configuration's budget brings into play."""
    sizes = set(config.geometry.record_bytes or ())
    if config.budget.is_zero:
        yield "XC-RES-014", None
    elif config.slots is not None and config.bytes is not None:
        yield "XC-MODEL-003", None
    elif config.bytes is not None and len(sizes) > 1:
        yield "XC-MODEL-004", None
    elif config.settings.scope == "layer" and (config.slots or 0) % len(config.geometry.routed):
        yield "XC-MODEL-006", None


_RIGHT: dict[tuple[object, ...], bool] = {}


def right_on_plain_passes(implementation: Implementation, config: Config) -> bool:
    """Whether nothing differs on the fixed corpus, in whole events on a plain budget; found once for each claim."""
    if config.future is not None:
        return False
    key = claim(implementation, config)
    if key not in _RIGHT:
        _RIGHT[key] = _right(implementation, config)
    return _RIGHT[key]


def _right(implementation: Implementation, config: Config) -> bool:
    by_slots = "slots" in implementation.profile.budgets
    model = Geometry(1, 8, min(config.geometry.top_k, 2), (1,))
    plain = attrs.evolve(config, geometry=model, budget=Budget(slots=4) if by_slots else Budget(bytes=4))
    return all(agrees(program, implementation) for program in corpus(plain, count=40))


def agrees(program: Program, implementation: Implementation) -> bool:
    """Whether hits, victims and refusals are the specification's, to the end of the program."""
    try:
        oracle, subject = oracle_of(implementation, program.config), subject_of(implementation, program.config)
        return all(_told(oracle.apply(o)) == _told(subject.apply(o)) for o in program.operations)
    except (Malformed, Crashed, KeyError):
        return False


def _told(answer: Answer) -> tuple[object, ...]:
    return answer.hits, answer.victims, answer.bypassed, answer.error
