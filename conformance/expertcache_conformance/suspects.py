"""Suspects: policies and settings that differ from the claimed ones in one sentence, each with the rule it breaks."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from expertcache_conformance.adapters import Config, Implementation
from expertcache_conformance.adapters.claims import card_of
from expertcache_conformance.adapters.own import PolicyAlone
from expertcache_conformance.answers import Answer, Crashed, Malformed, Oracle, subject_of
from expertcache_conformance.program import Program
from expertcache_conformance.scenarios import conversations, long_counts, pressure
from expertcache_spec.eviction import POLICIES, Card, Value, make
from expertcache_spec.eviction.variants import VARIANTS
from expertcache_spec.identify import turns
from expertcache_spec.model import Budget, Geometry
from expertcache_spec.residency import Residency, Settings

Suspect = tuple[str, str, Callable[[Config], Oracle]]
"""The rule it breaks, what it does in words, and the machine that does it."""


SETTING_SUSPECTS = (
    ("XC-RES-006", "touch", {"router": "hits_first", "hits_first": "router"}),
    ("XC-RES-007", "repeats", {"promote": "ignore", "ignore": "promote"}),
)


def suspects(config: Config, *, alone: bool = False) -> Iterator[Suspect]:
    """Everything that differs from `config` in one sentence. alone: a policy by itself, to which no setting belongs."""
    for variant in VARIANTS:
        if variant.policy == config.policy:
            yield variant.rule, variant.words, partial(_under, variant.card, config.parameters)
    for rule, name, opposite in () if alone else SETTING_SUSPECTS:
        chosen = opposite[getattr(config.settings, name)]
        changes: dict[str, Any] = {name: chosen}
        yield rule, f"has {name} {chosen}", partial(_with_settings, attrs.evolve(config.settings, **changes))
    claimed = card_of(config.policy)
    for name, value in turns(claimed, config.parameters):
        turned = claimed.turned(config.parameters, name, value)
        yield claimed.rule, f"has {name} {value}", partial(_under, claimed, turned)
    for other in POLICIES.values():
        if other is not claimed and not other.offline:
            yield claimed.rule, f"is {other.name}", partial(_under, other, other.complete())


def _under(card: Card, parameters: Mapping[str, Value], config: Config) -> Oracle:
    policy = make(card, parameters=parameters)
    return Oracle(config, Residency(config.geometry, config.budget, policy, config.settings))


def _with_settings(settings: Settings, config: Config) -> Oracle:
    return Oracle(attrs.evolve(config, settings=settings))


def corpus(config: Config, count: int = 80, layers: int = 1) -> list[Program]:
    """The fixed programs that a suspect must explain: small, under the policy and settings of `config`.

    Conversations walk `layers` layers, the others one; a model of top-1 has none, since it may take single keys only.
    """
    top_k = min(config.geometry.top_k, 2)
    kind = "slots" if config.slots is not None else "bytes"
    kinds = [(pressure, 4, 1), (long_counts, 2, 1), *([(conversations, 6, layers)] if top_k > 1 else [])]
    return [
        scenario(
            attrs.evolve(config, geometry=Geometry(deep, 8, top_k, (1,) * deep), budget=Budget(**{kind: room})),
            random.Random(f"{scenario.__name__} corpus {number}").randrange,
        )
        for scenario, room, deep in kinds
        for number in range(count // 2)
    ]


def claim(implementation: Implementation, config: Config) -> tuple[object, ...]:
    """What the fixed corpus depends on: findings on it are made once for each of these."""
    return (
        id(implementation.target),
        config.policy,
        tuple(sorted(config.parameters.items())),
        config.settings,
        config.geometry.top_k == 1,
        config.slots is None,
    )


def identify(implementation: Implementation, config: Config) -> tuple[str, str] | None:
    """The rule and words of the suspect that gives every answer the implementation gives; None when none does."""
    layers = min(3, implementation.profile.limits.get("max_layers", 3))
    heard = [(program, _hear(implementation, program)) for program in corpus(config, layers=layers)]
    if all(answers is not None and _explains(Oracle, program, answers) for program, answers in heard):
        return None  # right on all of these: nothing here tells the suspects apart
    for rule, words, build in suspects(config, alone=isinstance(implementation.target, PolicyAlone)):
        if all(answers is not None and _explains(build, program, answers) for program, answers in heard):
            return rule, words
    return None


def _hear(implementation: Implementation, program: Program) -> list[Answer] | None:
    try:
        subject = subject_of(implementation, program.config)
        return [subject.apply(operation) for operation in program.operations]
    except (Malformed, Crashed):
        return None


def _explains(build: Callable[[Config], Oracle], program: Program, answers: Sequence[Answer]) -> bool:
    oracle = build(program.config)
    return all(
        (own.hits, own.victims, own.error) == (answer.hits, answer.victims, answer.error)
        for own, answer in zip(map(oracle.apply, program.operations), answers, strict=True)
    )
