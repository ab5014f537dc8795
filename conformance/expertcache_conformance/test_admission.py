"""Chapter admission: every claimed admission under every claimed set of its parameters, step by step."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import pytest

from expertcache_conformance import scenarios
from expertcache_conformance.adapters import Config
from expertcache_conformance.examination import Examination
from expertcache_conformance.hunt import seeded
from expertcache_conformance.scenarios import Scenario, passes, pressure

SHAPE: dict[str, Any] = {"slots": 4, "layers": 1, "experts": 9, "top_k": 2}
"""Room for two events: most misses need a victim."""


def ask(exam: Examination, scenario: Scenario, configs: Iterable[Config], volume: int) -> None:
    """Run that many seeded programs under each configuration."""
    exam.exhaust(chain.from_iterable(seeded(scenario, config, volume) for config in configs))


@pytest.mark.rule("XC-ADMIT-001", "XC-ADMIT-002")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("always", marks=pytest.mark.rule("XC-RES-028")),
        pytest.param("refusable", marks=pytest.mark.rule("XC-ADMIT-003")),
        pytest.param("sightings", marks=pytest.mark.rule("XC-ADMIT-004")),
        pytest.param("hysteresis", marks=pytest.mark.rule("XC-ADMIT-005")),
        pytest.param("cold-slots", marks=pytest.mark.rule("XC-ADMIT-006")),
        pytest.param("free-slots", marks=pytest.mark.rule("XC-ADMIT-007")),
        pytest.param("never", marks=pytest.mark.rule("XC-ADMIT-008")),
    ],
)
def test_an_admission_keeps_what_it_says_and_declines_the_rest(exam: Examination, name: str) -> None:
    configs = [exam.config(admission=name, **SHAPE)] if name == "always" else exam.admitting(name, pressure, **SHAPE)
    ask(exam, pressure, configs, 40)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("sightings", marks=pytest.mark.rule("XC-ADMIT-004")),
        pytest.param("never", marks=pytest.mark.rule("XC-ADMIT-008")),
    ],
)
def test_what_an_admission_declines_needs_no_room(exam: Examination, name: str) -> None:
    # These two decline before room is looked for: an event larger than the cache is served if little of it is kept.
    exam.events_only()
    ask(exam, passes, exam.admitting(name, passes, slots=2, layers=1), 80)


@pytest.mark.rule("XC-ADMIT-009")
def test_an_event_that_does_not_fit_is_kept_whole_or_not_at_all(exam: Examination) -> None:
    exam.events_only()
    ask(exam, passes, exam.admitting("whole-events", passes, slots=3, layers=1, overflow="bypass"), 80)


BESIDE: dict[str, Scenario] = {
    "reset": scenarios.resets,
    "seeds": scenarios.seeds,
    "prefetch": scenarios.prefetches,
}
"""Capability to the scenario that has events and nothing else beside it."""


@pytest.mark.parametrize(
    "capability",
    [
        pytest.param("reset", marks=pytest.mark.rule("XC-ADMIT-012")),
        pytest.param("seeds", marks=pytest.mark.rule("XC-ADMIT-010")),
        pytest.param("prefetch", marks=pytest.mark.rule("XC-ADMIT-010")),
    ],
)
@pytest.mark.parametrize("name", ["sightings", "hysteresis", "cold-slots"])
def test_what_an_admission_has_counted_is_history_and_is_asked_for_demand_alone(
    exam: Examination, name: str, capability: str
) -> None:
    if capability == "prefetch":
        exam.events_only()
    configs = exam.admitting(name, pressure, capability=capability, **SHAPE)
    ask(exam, BESIDE[capability], configs[:2], 100)
