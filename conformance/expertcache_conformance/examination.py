"""One examination of one implementation: what tests ask through, and where findings are collected."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from itertools import islice
from typing import Any

import attrs

from expertcache_conformance.adapters import Config, Implementation, PolicyAlone
from expertcache_conformance.adapters.claims import card_of
from expertcache_conformance.adapters.recorded import RecordedLog
from expertcache_conformance.answers import Answer, Crashed, Malformed, Oracle, subject_of
from expertcache_conformance.hunt import AFTER_FIRST, VOLUME, search, seeded, shorten, survey
from expertcache_conformance.judge import LUCK, Violation
from expertcache_conformance.logs import ABOUT, LogFinding, NotJudged, offence, told
from expertcache_conformance.logsteps import compare, undecided
from expertcache_conformance.program import Program, steps
from expertcache_conformance.questions import Finding, Question, answered
from expertcache_conformance.questions import shorten as simplify
from expertcache_conformance.scenarios import Scenario
from expertcache_spec.admission import ADMISSIONS, admission
from expertcache_spec.eviction import POLICIES
from expertcache_spec.model import Budget, Geometry
from expertcache_spec.residency.settings import SETTINGS, Settings
from expertcache_spec.trace import Trace, sequential
from expertcache_spec.traceformat import decode

REAL_TRACE = "qwen3-30b-a3b"
OWN = "own"
"""Stands for every claimed policy that is a card of the implementation's own."""


class NotClaimed(Exception):
    """The implementation does not claim what a test is about."""


class RulesBroken(AssertionError):
    """At least one rule is broken; carries the shortened violations."""

    def __init__(self, violations: Iterable[Violation | Finding | LogFinding]) -> None:
        self.violations = sorted(violations, key=lambda violation: violation.rule)
        super().__init__("\n\n".join(violation.text() for violation in self.violations))


TELLING = 3
"""Seeded programs on which two values of a setting must differ before a test may speak about the setting."""


def _changed(settings: Settings, name: str, value: str) -> Settings:
    changes: dict[str, Any] = {name: value}
    return attrs.evolve(settings, **changes)


def _outcome(program: Program, settings: Settings) -> list[Answer]:
    oracle = Oracle(attrs.evolve(program.config, settings=settings))
    return [oracle.apply(operation) for operation in program.operations]


@cache
def real_trace(name: str = REAL_TRACE) -> Trace:
    """The real trace shipped with the specification."""
    packed = resources.files("expertcache_spec").joinpath("data", f"{name}.jsonl.gz").read_bytes()
    lines = gzip.decompress(packed).decode().splitlines()
    return decode((f"{name}:{number}", json.loads(line)) for number, line in enumerate(lines, 1))


@attrs.define
class Examination:
    """The implementation under examination and how many programs it was given; a dry one is given none.

    Its methods raise `NotClaimed` for what the profile leaves out, `RulesBroken` when something differs.
    """

    implementation: Implementation
    dry: bool = False
    programs: int = 0

    @property
    def sequential(self) -> bool:
        """Whether the implementation takes one key at a time."""
        return self.implementation.profile.replay == "sequential"

    def config(
        self, policy: str | None = None, *, slots: int | None = 4, size: int | None = None, layers: int = 2,
        experts: int = 6, top_k: int = 3, record_bytes: tuple[int, ...] | None = None, capability: str = "",
        settings: Mapping[str, str] | None = None, number: int = 0, **more: str,
    ) -> Config:  # fmt: skip
        """A configuration of what is claimed; `size` is a byte budget; settings that matter are named.

        `number` chooses among the sets of parameters that are claimed for the policy.
        """
        wanted = {**(settings or {}), **more}
        profile = self.implementation.profile
        offered = profile.claims
        if not offered:
            raise NotClaimed("a cache")
        policy = policy or next((name for name in offered if not card_of(name).offline), next(iter(offered)))
        claims = [("policy", policy, tuple(offered))]
        claims += [("capability", capability, profile.capabilities)] if capability else []
        claims += [(name, value, profile.values(name)) for name, value in wanted.items()]
        claims += [("budget", "slots", profile.budgets)] if slots is not None else []
        claims += [("budget", "bytes", profile.budgets)] if size is not None else []
        for kind, value, claimed in claims:
            if value not in claimed:
                raise NotClaimed(f"{kind} {value}")
        if not set(wanted) <= set(SETTINGS):
            raise TypeError(f"no such setting: {sorted(set(wanted) - set(SETTINGS))}")
        top_k = 1 if self.sequential else top_k
        self._within_limits(layers, experts, top_k, slots)
        model = Geometry(layers, experts, top_k, record_bytes or (1,) * layers)
        return Config(
            policy,
            Budget(slots, size),
            model,
            profile.settings_like(**wanted),
            offered[policy][number],
            () if card_of(policy).offline else None,
        )

    def configs(self, policy: str, **shape: Any) -> list[Config]:
        """A configuration for each set of parameters claimed for the policy; `own` is every card of one's own."""
        offered = self.implementation.profile.claims
        names = [name for name in offered if name not in POLICIES] if policy == OWN else [policy]
        if not names:
            raise NotClaimed("a policy of its own")
        return [
            self.config(name, number=number, **shape)
            for name in names
            for number in range(max(1, len(offered.get(name, ()))))
        ]

    def _within_limits(self, layers: int, experts: int, top_k: int, slots: int | None) -> None:
        limits = self.implementation.profile.limits
        asked = {
            "max_layers": layers,
            "max_experts": experts,
            "max_top_k": top_k,
            "max_slots": slots,
            "min_slots": slots,
        }
        for name, limit in limits.items():
            value = asked[name]
            if value is not None and (value > limit if name.startswith("max") else value < limit):
                raise NotClaimed(f"{name} {limit}: this test needs {value}")

    def telling(self, setting: str, value: str, scenario: Scenario, **shape: Any) -> Config:
        """A configuration with the value of a setting under the first claimed policy to which it makes a difference.

        A difference: on the scenario's seeded programs the specification answers otherwise under another value, at
        least `TELLING` times. Raises `NotClaimed` when no claimed policy tells the values apart.
        """
        for policy in self.implementation.profile.claims:
            config = self.config(policy, settings={setting: value}, **shape)
            others = [_changed(config.settings, setting, other) for other in SETTINGS[setting] if other != value]
            told = sum(
                _outcome(program, config.settings) != _outcome(program, other)
                for program in seeded(scenario, config, VOLUME)
                for other in others
            )
            if told >= TELLING:
                return config
        raise NotClaimed(f"{setting} {value} with a policy to which it makes a difference")

    def admitting(self, name: str, scenario: Scenario, **shape: Any) -> list[Config]:
        """A configuration for each claimed set of parameters of an admission, under the rooms that it is defined for.

        The policy is the first claimed one under which the admission makes a difference to admission `always`, on the
        scenario's seeded programs; where there is none, that set of parameters is left out. Raises `NotClaimed` when
        nothing is left.
        """
        profile, card = self.implementation.profile, ADMISSIONS[name]
        claimed = [value for value in profile.values("admission") if admission(value)[0] is card]
        if not claimed:
            raise NotClaimed(f"admission {name}")
        rooms = [room for room in card.rooms if room in profile.values("room")]
        found = [self._telling_admission(value, room, scenario, shape) for value in claimed for room in rooms]
        configs = [config for config in found if config is not None]
        if not configs:
            raise NotClaimed(f"admission {name} with a policy and a room to which it makes a difference")
        return configs

    def _telling_admission(self, value: str, room: str, scenario: Scenario, shape: Mapping[str, Any]) -> Config | None:
        for policy in self.implementation.profile.claims:
            if admission(value)[0].needs and not card_of(policy).can_refuse:
                continue
            config = self.config(policy, admission=value, room=room, **shape)
            plain = _changed(config.settings, "admission", "always")
            programs = seeded(scenario, config, VOLUME // 4)
            told = (1 for each in programs if _outcome(each, config.settings) != _outcome(each, plain))
            if len(list(islice(told, TELLING))) == TELLING:
                return config
        return None

    def for_policy(self, program: Program) -> Program:
        """The program under the policy that is examined by itself; under its own policy for an implementation."""
        if not isinstance(self.implementation.target, PolicyAlone):
            return program
        policy, (parameters, *_) = next(iter(self.implementation.profile.claims.items()))
        events = tuple(operation.event for operation in program.operations if operation.event is not None)
        future = events if card_of(policy).offline else None
        config = attrs.evolve(program.config, policy=policy, parameters=parameters, future=future)
        return attrs.evolve(program, config=config)

    def events_only(self) -> None:
        """Raise `NotClaimed` for an implementation that takes one key at a time."""
        if self.sequential:
            raise NotClaimed("replay event")

    def hunt(self, scenario: Scenario, *configs: Config, volume: int = VOLUME) -> None:
        """Run the scenario under each configuration, by seeds and then by hypothesis."""
        found: dict[str, Violation] = {}
        for config in () if self.dry else configs:
            ran, broken = survey(seeded(scenario, config, volume), self.implementation)
            if not broken:
                more, broken = search(scenario, config, self.implementation)
                ran += more
            self._note(ran, broken, found)
        self._conclude(found)

    def repeat(self, program: Program, times: int = 1) -> None:
        """Run the program on two fresh caches, `times` times; `RulesBroken` where their answers differ."""
        for _ in range(0 if self.dry else times):
            first, second = (subject_of(self.implementation, program.config) for _ in range(2))
            self.programs += 1
            for index, operation in enumerate(program.operations):
                try:
                    one, two = first.apply(operation), second.apply(operation)
                except Malformed:
                    break  # another test's finding
                if one != two:
                    witness = attrs.evolve(program, operations=program.operations[: index + 1])
                    raise RulesBroken([Violation(LUCK, witness, one, two, "two fresh caches differ")])

    def exhaust(self, programs: Iterable[Program], *, keep: bool = False) -> None:
        """Run every program, the short ones first; `keep` leaves a failing one as it is."""
        if self.dry:
            return
        found: dict[str, Violation] = {}
        self._note(*survey(programs, self.implementation), found)
        if keep and found:
            raise RulesBroken(found.values())
        self._conclude(found)

    def replay_real_trace(
        self, policy: str, *, slots: int | None = None, size: int | None = None, events: int | None = None
    ) -> None:
        """Run the shipped trace, or its first `events`, under each claimed set of the policy's parameters."""
        shape = real_trace().geometry
        configs = self.configs(
            policy, slots=slots, size=size, layers=shape.layers, experts=shape.experts, top_k=shape.top_k,
            record_bytes=shape.record_bytes,
        )  # fmt: skip
        if not self.dry:
            trace = real_trace()
            taken = trace.events[:events]
            asked = tuple(sequential(taken)) if self.sequential else taken
            self.exhaust(steps(attrs.evolve(config, geometry=trace.geometry), asked) for config in configs)

    def plans(self, capability: str, **kind: str) -> None:
        """Raise `NotClaimed` unless the planning capability, and of `layouts` or `disciplines` the kind, is claimed."""
        profile = self.implementation.profile
        if capability not in profile.capabilities:
            raise NotClaimed(f"capability {capability}")
        for name, value in kind.items():
            if value not in getattr(profile, name):
                raise NotClaimed(f"{name} {value}")

    def ask(self, questions: Iterable[Question], *, keep: bool = False) -> None:
        """Ask the planner every question; `keep` leaves one that is answered wrongly as it is.

        Raises `Crashed` where it crashes on one, unless it answers another wrongly: that tells more.
        """
        target, found, left, ran = self.implementation.target, dict[str, Finding](), AFTER_FIRST, 0
        crash: Crashed | None = None
        for question in () if self.dry else questions:
            ran += 1
            try:
                finding = answered(question, target)
            except Crashed as error:
                finding, crash = None, crash or error
            if finding and (finding.rule not in found or finding.size < found[finding.rule].size):
                found[finding.rule] = finding
            left -= bool(found or crash)
            if not left:
                break
        if not ran and not self.dry:
            raise AssertionError("no question was asked: a check that runs nothing proves nothing")
        self.programs += ran
        if found:
            raise RulesBroken(each if keep else simplify(each, target) for each in found.values())
        if crash is not None:
            raise crash

    def ask_about(self, rule: str, questions: Iterable[Question]) -> None:
        """As `ask`, for a rule that answers may leave open; raises `NotJudged` where every answer does."""
        asked = list(questions)
        self.ask(asked)
        target, why = self.implementation.target, ""
        for question in () if self.dry else asked:
            why = question.left_open(question.ask(target)).get(rule, "")
            if not why:
                return
        if why:
            raise NotJudged(why)

    def _log(self) -> RecordedLog:
        target = self.implementation.target
        if not isinstance(target, RecordedLog):
            raise NotClaimed("a recorded log")
        return target

    def judge_log(self, rule: str = "") -> None:
        """Judge the whole log, or one rule of `logs.ABOUT` where the log has something to say about it.

        Raises `NotJudged` where no line breaks the rule and it could not be judged.
        """
        log = self._log()
        if self.dry:
            return
        verdict, counts = log.judged
        self.programs += verdict.records
        found = offence(log)
        if found is not None and rule in ("", found.rule):
            raise RulesBroken([found])
        missing = undecided(log)
        if rule and "XC-HIST-012" in missing:
            raise NotJudged(missing["XC-HIST-012"])
        if rule in missing:
            raise NotJudged(missing[rule])
        if found is not None:
            raise NotJudged(f"line {found.line} breaks {found.rule}, and nothing behind it is judged")
        if rule and not counts[ABOUT[rule]]:
            raise NotClaimed(f"a log with a line of {ABOUT[rule]}")
        if missing and not rule:
            raise NotJudged(told(missing), whole=True)

    def compare_log(self) -> None:
        """Compare the log with the specification's replay of its declared policy, decision by decision."""
        log = self._log()
        if self.dry:
            return
        if log.judged[0].rule == "XC-HIST-002":
            raise NotJudged("the log cannot be read")
        if not log.judged[0].records:
            raise NotJudged("the log says nothing")
        steps, found = compare(log)
        self.programs += steps
        if found is not None:
            raise RulesBroken([found])

    def _note(self, ran: int, broken: dict[str, Violation], found: dict[str, Violation]) -> None:
        if not ran:
            raise AssertionError("the scenario produced no program: a check that runs nothing proves nothing")
        self.programs += ran
        for rule, violation in broken.items():
            if rule not in found or violation.size < found[rule].size:
                found[rule] = violation

    def _conclude(self, found: dict[str, Violation]) -> None:
        if found:
            raise RulesBroken(shorten(violation, self.implementation) for violation in found.values())
