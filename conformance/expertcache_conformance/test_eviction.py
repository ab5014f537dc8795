"""Chapter eviction: every claimed policy under every claimed set of its parameters, hits and victims step by step."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest

from expertcache_conformance.examination import OWN, Examination
from expertcache_conformance.hunt import seeded
from expertcache_conformance.miniatures.witnesses import programs_for
from expertcache_conformance.scenarios import (
    ceilings,
    conversations,
    endurance,
    every_sequence,
    every_set_sequence,
    joins,
    long_counts,
    passes,
    priorities,
)
from expertcache_spec.eviction import POLICIES
from expertcache_spec.rules import RULES

CLAUSES = {
    "lfu": ("XC-EVICT-030", "XC-EVICT-031", "XC-EVICT-032", "XC-EVICT-033"),
    "lfu-reset": ("XC-EVICT-040", "XC-EVICT-041", "XC-EVICT-042"),
    "belady": ("XC-EVICT-050",),
    "route-hotness": ("XC-EVICT-180", "XC-EVICT-181", "XC-EVICT-183", "XC-EVICT-187"),
}
"""The rules of policies whose module states rules of something else too, or not all of their own."""
WHOLE = ("fifo", "lru", "lfu")
"""Policies that see the whole real trace; the others see its first `PART` events, which fill the cache and evict."""
PART = 2000


def _rules(policy: str) -> tuple[str, ...]:
    """The rules that a step-by-step comparison of the policy is about: those that its module states."""
    card = POLICIES[policy]
    module, homes = card.indexed.__module__, Counter(other.indexed.__module__ for other in POLICIES.values())
    if policy in CLAUSES or homes[module] > 1:
        return CLAUSES.get(policy, (card.rule,))
    stated = (rule.id for rule in RULES.values() if rule.subject.partition(":")[0] == module)
    return tuple(dict.fromkeys((card.rule, *stated)))


def _claims() -> Iterator[Any]:
    for policy in POLICIES:
        yield pytest.param(policy, marks=pytest.mark.rule(*_rules(policy)))
    yield pytest.param(OWN, marks=pytest.mark.rule("XC-EVICT-002"))


policies = pytest.mark.parametrize("policy", list(_claims()))
online = pytest.mark.parametrize("policy", [claim for claim in _claims() if claim.values != ("belady",)])
"""The policies without a future, which only whole events have."""


@pytest.mark.rule("XC-EVICT-002")
@policies
def test_every_short_sequence_of_single_keys(exam: Examination, policy: str) -> None:
    configs = [c for slots in (2, 3) for c in exam.configs(policy, slots=slots, layers=1, experts=4, top_k=1)]
    exam.exhaust(chain.from_iterable(every_sequence(config, keys=4, length=4) for config in configs))


@pytest.mark.rule("XC-EVICT-002")
@policies
def test_every_short_sequence_of_sets(exam: Examination, policy: str) -> None:
    exam.events_only()
    configs = [c for slots in (2, 3) for c in exam.configs(policy, slots=slots, layers=1, experts=4, top_k=2)]
    exam.exhaust(chain.from_iterable(every_set_sequence(config, keys=3, length=3) for config in configs))


@policies
def test_generated_passes(exam: Examination, policy: str) -> None:
    exam.hunt(passes, *exam.configs(policy, slots=4), *exam.configs(policy, slots=9, layers=3), volume=60)


@policies
def test_generated_passes_by_layer(exam: Examination, policy: str) -> None:
    exam.hunt(passes, *exam.configs(policy, slots=8, scope="layer"), volume=60)


@policies
def test_conversations_with_weights_and_prompts(exam: Examination, policy: str) -> None:
    exam.events_only()
    configs = exam.configs(policy, slots=7, layers=3)
    exam.exhaust(chain.from_iterable(seeded(conversations, config, 60) for config in configs))


@policies
def test_long_counts(exam: Examination, policy: str) -> None:
    shapes = [c for slots in (2, 3) for c in exam.configs(policy, slots=slots, layers=1, top_k=1)]
    exam.hunt(long_counts, *shapes, volume=60 if policy in WHOLE else 15)


@pytest.mark.rule("XC-EVICT-033")
def test_counts_pass_every_power_of_two_up_to_512(exam: Examination) -> None:
    configs = exam.configs("lfu", slots=2, layers=1, top_k=1)
    exam.exhaust(chain.from_iterable(seeded(ceilings, config, 12) for config in configs))


@pytest.mark.rule("XC-RES-027")
@online
def test_a_request_that_joins_a_read_counts_like_any_other(exam: Examination, policy: str) -> None:
    exam.events_only()
    configs = exam.configs(policy, slots=2, layers=1, top_k=1, capability="leases")
    exam.exhaust(chain.from_iterable(seeded(joins, config, 40) for config in configs))


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param("route-hotness", marks=pytest.mark.rule("XC-EVICT-185")),
        pytest.param("static", marks=pytest.mark.rule("XC-EVICT-083")),
        pytest.param(OWN, marks=pytest.mark.rule("XC-EVICT-002")),
    ],
)
def test_seeds_with_unequal_priorities(exam: Examination, policy: str) -> None:
    exam.hunt(priorities, *exam.configs(policy, slots=5, capability="priorities"))


@policies
def test_thousands_of_accesses_to_a_small_cache(exam: Examination, policy: str) -> None:
    exam.exhaust(chain.from_iterable(seeded(endurance, config, 3) for config in exam.configs(policy, slots=5)))


@policies
def test_the_traces_that_told_wrong_caches_apart(exam: Examination, policy: str) -> None:
    exam.exhaust(programs_for(exam, policy))


@policies
def test_the_real_trace_step_by_step(exam: Examination, policy: str) -> None:
    exam.replay_real_trace(policy, slots=1024 if policy in WHOLE else 768, events=None if policy in WHOLE else PART)


@pytest.mark.rule("XC-EVICT-051")
def test_belady_with_bypass_refuses_what_is_wanted_no_sooner(exam: Examination) -> None:
    exam.hunt(passes, exam.config("belady", slots=4, admission="refusable"))


@pytest.mark.rule("XC-MODEL-004")
def test_the_real_trace_under_a_byte_budget(exam: Examination) -> None:
    exam.replay_real_trace("lru", size=4000 << 20)
