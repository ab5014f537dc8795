"""Suspects: policies and settings that differ from the claimed ones in one sentence, each with the rule it breaks."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import attrs

from expertcache_conformance.adapters import Config, Implementation
from expertcache_conformance.answers import Answer, Crashed, Malformed, Oracle, Subject
from expertcache_conformance.program import Program
from expertcache_conformance.scenarios import long_counts, pressure
from expertcache_spec.eviction import POLICIES, Policy
from expertcache_spec.eviction.lfu import Lfu, LfuReset
from expertcache_spec.eviction.lru import Lru
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.residency import Residency
from expertcache_spec.trace import Event

Suspect = tuple[str, str, Callable[[Config], Oracle]]
"""The rule it breaks, what it does in words, and the machine that does it."""


@attrs.define(slots=False)
class InsertsAtTheOldEnd(Lru):
    """LRU whose inserts come in as the least recent."""

    fresh: list[Key] = attrs.field(factory=list)

    def insert(self, key: Key, now: int) -> None:
        """Remember the insert until the event settles."""
        super().insert(key, now)
        self.fresh.append(key)

    def settle(self, keys: Sequence[Key]) -> None:
        """Touch the hits; file the inserts at the old end."""
        super().settle([key for key in keys if key not in self.fresh])
        for key in self.fresh:
            self.recency.move_to_end(key, last=False)
        self.fresh.clear()


class _Ties:
    """A stamp that the insert decides, whatever was touched since: its number in order of insertion."""

    first: dict[Key, int]

    def stamp(self, key: Key, fresh: bool) -> int:
        """The number of the key's insert; `fresh` gives it the next one."""
        if fresh:
            self.first[key] = 1 + max(self.first.values(), default=0)
        return self.first[key]


@attrs.define(slots=False)
class LfuInsertionTies(Lfu, _Ties):
    """LFU that breaks ties by age of insertion."""

    first: dict[Key, int] = attrs.field(factory=dict)

    def hit(self, key: Key, now: int) -> None:
        """Count, and keep the stamp."""
        super().hit(key, self.stamp(key, fresh=False))

    def insert(self, key: Key, now: int) -> None:
        """Stamp the insert."""
        super().insert(key, self.stamp(key, fresh=True))


@attrs.define(slots=False)
class LfuNewestTies(Lfu):
    """LFU that breaks ties towards the most recent."""

    def _place(self, key: Key, count: int, now: int) -> None:
        super()._place(key, count, -now)


@attrs.define(slots=False)
class LfuCeiling(Lfu):
    """LFU whose counts stop at 15."""

    ceiling: ClassVar[int] = 15

    def _place(self, key: Key, count: int, now: int) -> None:
        super()._place(key, min(count, self.ceiling), now)


@attrs.define(slots=False)
class LfuHitsOnly(Lfu):
    """LFU that counts hits and forgets the misses."""

    def begin(self, event: Event) -> None:
        """Count nothing yet."""

    def hit(self, key: Key, now: int) -> None:
        """Count the hit."""
        self.counts[key] = self.counts.get(key, 0) + 1
        super().hit(key, now)


@attrs.define(slots=False)
class LfuResetInsertionTies(LfuReset, _Ties):
    """LFU-reset that breaks ties by age of insertion."""

    first: dict[Key, int] = attrs.field(factory=dict)

    def hit(self, key: Key, now: int) -> None:
        """Count, and keep the stamp."""
        super().hit(key, self.stamp(key, fresh=False))

    def insert(self, key: Key, now: int) -> None:
        """Stamp the insert."""
        super().insert(key, self.stamp(key, fresh=True))


@attrs.define(slots=False)
class LfuResetNewestTies(LfuReset):
    """LFU-reset that breaks ties towards the most recent."""

    def _place(self, key: Key, count: int, now: int) -> None:
        super()._place(key, count, -now)


POLICY_SUSPECTS: dict[str, tuple[tuple[str, str, Callable[[], Policy]], ...]] = {
    "fifo": (("XC-EVICT-010", "is LRU", POLICIES["lru"].indexed),),
    "lru": (
        ("XC-EVICT-021", "is FIFO: a hit does not refresh", POLICIES["fifo"].indexed),
        ("XC-EVICT-022", "inserts at the least recent end", InsertsAtTheOldEnd),
    ),
    "lfu": (
        ("XC-EVICT-031", "drops the count at eviction", LfuReset),
        ("XC-EVICT-032", "breaks ties by insertion", LfuInsertionTies),
        ("XC-EVICT-032", "breaks ties towards the most recent", LfuNewestTies),
        ("XC-EVICT-033", "stops counting at 15", LfuCeiling),
        ("XC-EVICT-033", "counts hits only", LfuHitsOnly),
    ),
    "lfu-reset": (
        ("XC-EVICT-041", "keeps the count across evictions", Lfu),
        ("XC-EVICT-042", "breaks ties by insertion", LfuResetInsertionTies),
        ("XC-EVICT-042", "breaks ties towards the most recent", LfuResetNewestTies),
    ),
}

SETTING_SUSPECTS = (
    ("XC-RES-006", "touch", {"router": "hits_first", "hits_first": "router"}),
    ("XC-RES-007", "repeats", {"promote": "ignore", "ignore": "promote"}),
)


def suspects(config: Config) -> Iterator[Suspect]:
    """Everything that differs from `config` in one sentence."""
    for rule, words, factory in POLICY_SUSPECTS.get(config.policy, ()):
        yield rule, words, lambda c, factory=factory: _oracle(c, factory)  # type: ignore[misc]
    for rule, name, other in SETTING_SUSPECTS:
        value = other[getattr(config.settings, name)]
        changes: dict[str, Any] = {name: value}
        flipped = attrs.evolve(config.settings, **changes)
        yield rule, f"has {name} {value}", lambda c, s=flipped: Oracle(attrs.evolve(c, settings=s))  # type: ignore[misc]


def _oracle(config: Config, factory: Callable[[], Policy]) -> Oracle:
    return Oracle(config, Residency(config.geometry, config.budget, factory, config.settings))


def corpus(config: Config, count: int = 80) -> list[Program]:
    """The fixed programs that a suspect must explain: small, under the policy and settings of `config`."""
    model = Geometry(1, 8, min(config.geometry.top_k, 2), (1,))
    kind = "slots" if config.slots is not None else "bytes"
    return [
        scenario(
            attrs.evolve(config, geometry=model, budget=Budget(**{kind: room})),
            random.Random(f"{scenario.__name__} corpus {number}").randrange,
        )
        for scenario, room, share in ((pressure, 4, count // 2), (long_counts, 2, count // 2))
        for number in range(share)
    ]


def identify(implementation: Implementation, config: Config) -> tuple[str, str] | None:
    """The rule and words of the suspect that gives every answer the implementation gives; None when none does."""
    heard = [(program, _hear(implementation, program)) for program in corpus(config)]
    if all(answers is not None and _explains(Oracle, program, answers) for program, answers in heard):
        return None  # right on all of these: nothing here tells the suspects apart
    for rule, words, build in suspects(config):
        if all(answers is not None and _explains(build, program, answers) for program, answers in heard):
            return rule, words
    return None


def _hear(implementation: Implementation, program: Program) -> list[Answer] | None:
    try:
        subject = Subject(implementation, program.config)
        return [subject.apply(operation) for operation in program.operations]
    except (Malformed, Crashed):
        return None


def _explains(build: Callable[[Config], Oracle], program: Program, answers: Sequence[Answer]) -> bool:
    oracle = build(program.config)
    return all(
        (own.hits, own.victims, own.error) == (answer.hits, answer.victims, answer.error)
        for own, answer in zip(map(oracle.apply, program.operations), answers, strict=True)
    )
