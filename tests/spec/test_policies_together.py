"""Admission, prefetch and eviction at once: what each alone keeps right may still go wrong together (XC-EVICT-002).

A queue policy's ghost, for one, comes back by demand or by a guess, and admission may yet decline it: three ways
through the index that no axis by itself walks all of.
"""

from __future__ import annotations

from random import Random
from typing import get_args

import pytest

from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.eviction import Form
from expertcache_spec.prefetch import Prefetch
from expertcache_spec.replay import Replay
from expertcache_spec.residency import Step, audit

from .settings_of_policies import SUBJECTS
from .strategies import Case
from .test_admission import SAMPLES, some
from .test_prefetch import hows


def walked(case: Case, policy: str, prefetch: Prefetch, form: Form) -> tuple[list[Step], str, object]:
    """Every step until the end or the first refusal, that refusal, and all counters."""
    run = Replay(case.trace, SUBJECTS[policy], case.budget, case.settings, form=form, prefetch=prefetch)
    steps, refusal = [], ""
    try:
        steps.extend(run)
    except ExpertCacheError as error:
        refusal = f"{error.code}: {error}"
    assert audit(run.machine) == []
    assert run.driver is not None
    return steps, refusal, (run.machine.counters, run.driver.counts, run.machine.residents())


def agreed(policy: str, seeds: range) -> tuple[int, int, int]:
    """Victims, refused records and prefetches over which both forms of the policy agree."""
    victims = refused = issued = 0
    for seed in seeds:
        random = Random(seed)
        for text in ("always", *SAMPLES):
            for case in some(policy, text, range(seed, seed + 1), overflow="bypass", no_victim="bypass"):
                how = Prefetch(**random.choice(list(hows(seed))))
                indexed, declarative = (walked(case, policy, how, form) for form in get_args(Form))
                assert indexed == declarative, (policy, text, how, case)
                victims += sum(len(step.victims) for step in indexed[0])
                refused += sum(len(step.refused) for step in indexed[0])
                issued += indexed[2][1].issued  # type: ignore[index]
    return victims, refused, issued


@pytest.mark.rule("XC-EVICT-002", "XC-ADMIT-002", "XC-PREFETCH-009")
@pytest.mark.parametrize("policy", SUBJECTS)
def test_both_forms_agree_whatever_admits_and_whoever_prefetches(policy: str) -> None:
    victims, refused, issued = agreed(policy, range(3))
    assert min(victims, refused, issued) > 20


@pytest.mark.nightly
@pytest.mark.rule("XC-EVICT-002", "XC-ADMIT-002", "XC-PREFETCH-009")
@pytest.mark.parametrize("policy", SUBJECTS)
def test_both_forms_agree_in_much_more_volume(policy: str) -> None:
    victims, refused, issued = agreed(policy, range(1000, 1100))
    print(f"{policy}: {victims} victims, {refused} refused, {issued} prefetches")
    assert min(victims, refused, issued) > 500
