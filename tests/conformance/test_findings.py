"""Findings for people: short, in good English, and by the name of what is wrong."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import attrs
import pytest

from expertcache_conformance.adapters import Implementation, parse_profile
from expertcache_conformance.adapters.claims import split
from expertcache_conformance.adapters.own import load_policy
from expertcache_conformance.adapters.protocol import Config, InvalidProfile
from expertcache_conformance.answers import Answer
from expertcache_conformance.diagnosis import diagnose
from expertcache_conformance.examination import Examination, NotClaimed, RulesBroken
from expertcache_conformance.hunt import seeded
from expertcache_conformance.judge import judge
from expertcache_conformance.miniatures import MINIATURES, Miniature
from expertcache_conformance.miniatures.speculating import Speculating
from expertcache_conformance.program import Operation, Program, steps
from expertcache_conformance.scenarios import pressure, resets
from expertcache_conformance.suspects import suspects
from expertcache_spec.admission import ADMISSIONS
from expertcache_spec.eviction import POLICIES
from expertcache_spec.eviction.lfu import Lfu
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.trace import Event

SUBJECTS = {subject.name: subject for subject in MINIATURES}


def single(model: Geometry, slots: int, *keys: tuple[int, int]) -> Program:
    """Single-key events under LRU."""
    events = tuple(Event(layer, ((expert,),), pass_index=number) for number, (layer, expert) in enumerate(keys))
    return steps(Config("lru", Budget(slots), model), events)


def under(name: str) -> Implementation:
    """A miniature as an implementation."""
    return Implementation(name, parse_profile(SUBJECTS[name].PROFILE), SUBJECTS[name])


def test_a_finding_says_the_model_in_one_line_however_many_layers_it_has() -> None:
    sizes = tuple(3_000_000 + layer // 40 for layer in range(48))
    program = single(Geometry(48, 128, 1, sizes), 1, (0, 0), (0, 1), (0, 0))
    found = judge(program, under("budget_without_effect"))
    assert found is not None
    lines = found.text().splitlines()
    assert "  model of 48 layers, 128 experts each, top-1, records of 3000000 to 3000001 bytes" in lines
    assert all(len(line) < 200 for line in lines)
    assert any("policy lru, 1 slot;" in line for line in lines)


def test_the_model_is_told_with_what_is_not_known_and_not_routed() -> None:
    program = single(Geometry(3, 1, 1, None, (1, 2)), 1, (1, 0), (2, 0), (1, 0))
    found = judge(program, under("budget_without_effect"))
    assert found is not None
    assert "model of 3 layers, 2 of them routed, 1 expert each, top-1, records of unknown size" in found.text()


def test_a_key_taken_for_another_layers_is_named_so_after_an_eviction_too() -> None:
    # (1,0) is number 4, as is (0,4). It was resident and has left when (0,4) is taken for it.
    program = single(Geometry(2, 6, 1, (1, 1)), 1, (1, 0), (0, 4), (1, 0))
    found = judge(program, under("keys_by_arithmetic"))
    assert found is not None
    assert found.rule == "XC-MODEL-001"
    roomy = attrs.evolve(program, config=attrs.evolve(program.config, budget=Budget(4)))
    assert judge(attrs.evolve(roomy, operations=roomy.operations[:1]), under("keys_by_arithmetic")) is None


def test_a_phantom_hit_without_aliasing_keeps_its_name() -> None:
    program = single(Geometry(2, 6, 1, (1, 1)), 2, (1, 0), (0, 4), (1, 0))
    found = judge(program, under("budget_without_effect"))
    assert found is not None
    assert found.rule == "XC-RES-003"


@pytest.mark.rule("XC-EVICT-200")
def test_a_reading_of_least_stale_is_claimed_and_suspected_by_its_name() -> None:
    # A claim is complete, so another reading must change what the claimed one stands for, and not its name alone.
    card = POLICIES["least-stale"]
    claimed, wrong = split(["least-stale:reading=rnb", "least-stale:reading=spice:weight=1"])
    assert claimed == {
        "least-stale": (card.complete({"reading": "rnb"}), card.complete({"reading": "spice", "weight": 1.0}))
    }
    assert wrong == []
    config = Config("least-stale", Budget(3), Geometry(1, 4, 1), parameters=claimed["least-stale"][0])
    suspected = {words: build for _, words, build in suspects(config)}
    policy: Any = suspected["has reading spice"](config).machine.parts[-1].policy
    assert attrs.asdict(policy.choices) == card.complete({"reading": "spice"})


@pytest.mark.rule("XC-ADMIT-011")
def test_an_admission_is_claimed_with_its_parameters_in_any_spelling() -> None:
    claimed = {
        "policies": ["lru"],
        "name": "mine",
        "settings": {"admission": ["sightings:again=3:n=3", "sightings:n=2"]},
    }
    assert parse_profile(claimed).values("admission") == ("sightings:n=3:again=3", "sightings")
    assert parse_profile({"policies": ["lru"], "name": "mine"}).values("admission") == ("always",)
    for wrong in ("sightings:n=0", "sighting", "sightings:m=3", 3):
        with pytest.raises(InvalidProfile, match=str(wrong).partition(":")[0]):
            parse_profile({**claimed, "settings": {"admission": [wrong]}})


@pytest.mark.parametrize(
    ("name", "rule"),
    [("sightings_outlive_the_record", "XC-ADMIT-004"), ("swaps_without_a_margin", "XC-ADMIT-005"),
     ("evicts_for_what_it_declines", "XC-ADMIT-001")],
)  # fmt: skip
def test_a_wrong_admission_is_named_by_its_own_rule(name: str, rule: str) -> None:
    exam = Examination(under(name))
    configs = [c for card in ADMISSIONS for c in claimed_of(exam, card)]
    with pytest.raises(RulesBroken) as broken:
        exam.exhaust(program for config in configs for program in seeded(pressure, config, 40))
    assert {violation.rule for violation in broken.value.violations} == {rule}


def claimed_of(exam: Examination, name: str) -> list[Config]:
    """The configurations of a claimed admission."""
    try:
        return exam.admitting(name, pressure, slots=4, layers=1, experts=9, top_k=2)
    except NotClaimed:
        return []


@pytest.mark.rule("XC-PREFETCH-014")
def test_a_prefetch_of_what_is_there_or_under_way_must_start_nothing() -> None:
    model = Geometry(1, 6, 1, (1,))
    twice = Program(Config("lru", Budget(2), model), (Operation("prefetch", key=Key(0, 1)),) * 2)
    expected = Answer(outcome="in-flight")
    assert diagnose(twice, expected, Answer(outcome="started")).rule == "XC-PREFETCH-014"
    assert diagnose(twice, expected, Answer(outcome="refused")).rule == "XC-RES-021"


@pytest.mark.rule("XC-METRIC-004")
def test_prefetch_counts_that_are_no_numbers_are_malformed() -> None:
    class Wordy(Speculating):
        """Counts in words."""

        def prefetch_counts(self) -> Any:
            """One of them."""
            return {**super().prefetch_counts(), "late": "none"}

    claims = {"policies": ["lru"], "capabilities": ["leases", "prefetch", "prefetch-counts"]}
    subject = Miniature("wordy", "Counts in words.", "here", frozenset(), Wordy, claims)
    program = Program(Config("lru", Budget(2), Geometry(1, 6, 1, (1,))), (Operation("prefetch_counts"),))
    found = judge(program, Implementation("wordy", parse_profile(subject.PROFILE), subject))
    assert found is not None
    assert (found.rule, "numbers under issued" in found.note) == ("XC-CONF-001", True)


@pytest.mark.rule("XC-RES-022")
def test_a_policy_by_itself_is_not_blamed_for_the_admission_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Remembering(Lfu):
        """Keeps its counts over a reset of history."""

        def forget(self) -> None:
            """Nothing."""

    module = ModuleType("remembering_policies")
    lfu = POLICIES["lfu"]
    module.CARD = attrs.evolve(lfu, name="remembering", indexed=Remembering)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exam = Examination(load_policy("remembering_policies:CARD"))
    configs = exam.admitting("cold-slots", pressure, slots=4, layers=1, experts=9, top_k=2)
    with pytest.raises(RulesBroken) as broken:
        exam.exhaust(program for config in configs for program in seeded(resets, config, 200))
    assert not [v.rule for v in broken.value.violations if v.rule.startswith("XC-ADMIT")]
