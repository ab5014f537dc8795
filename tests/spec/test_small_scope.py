"""All small traces: nothing is sampled, so within the bounds nothing can hide (XC-EVICT-002)."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from expertcache_spec.eviction import POLICIES

from .running import python
from .settings_of_policies import CORE, SUBJECTS, VARIATIONS
from .smallscope import every_row, lengths, settings

Bounds = tuple[str, int, int, int, int]
"""Kind, keys, events, capacity, widest event: see `smallscope`."""


def cases(policies: Sequence[str], bounds: Bounds) -> int:
    """How many cases follow from the bounds: sequences of events x capacities x settings."""
    kind, keys, events, capacity, widest = bounds
    rows = len(every_row(keys, widest))
    return sum(
        rows**length * capacity * len(settings(policy, kind))
        for policy in policies
        for length in lengths(policy, events)
    )


def agree(policies: Sequence[str], bounds: Bounds) -> None:
    """Enumerate, print how much, and find no difference."""
    text = python("-m", "tests.spec.smallscope", ",".join(policies), *map(str, bounds), EXPERTCACHE_CONTRACTS="off",
                  timeout=7200)  # fmt: skip
    print(bounds, ",".join(policies), text)
    found = json.loads(text)
    assert found["differences"] == []
    assert found["cases"] == cases(policies, bounds)
    assert found["victims"] > found["cases"] // 20


@pytest.mark.rule("XC-EVICT-002", "XC-EVICT-010", "XC-EVICT-020", "XC-EVICT-030", "XC-EVICT-040", "XC-EVICT-050")
@pytest.mark.parametrize(
    ("policies", "bounds"),
    [
        pytest.param(tuple(POLICIES), ("single", 4, 4, 3, 1), id="every 4 events over 4 keys"),
        pytest.param(tuple(POLICIES), ("sets", 3, 2, 2, 2), id="every 2 events of up to 2 of 3 keys"),
        pytest.param(CORE, ("sets", 3, 3, 2, 2), id="every 3 events of up to 2 of 3 keys"),
    ],
)
def test_both_forms_agree_on_every_trace_within(policies: tuple[str, ...], bounds: Bounds) -> None:
    agree(policies, bounds)


@pytest.mark.nightly
@pytest.mark.rule("XC-EVICT-002")
@pytest.mark.parametrize("policy", SUBJECTS)
@pytest.mark.parametrize(
    "bounds",
    [
        pytest.param(("single", 6, 6, 4, 1), id="every 6 events over 6 keys"),
        pytest.param(("rooms", 3, 4, 3, 2), id="every 4 events of up to 2 of 3 keys"),
        pytest.param(("rooms", 3, 3, 4, 3), id="every 3 events of up to 3 of 3 keys"),
    ],
)
def test_both_forms_agree_on_every_trace_within_larger_bounds(policy: str, bounds: Bounds) -> None:
    if policy in VARIATIONS and bounds[0] == "single":
        bounds = ("single", 5, 5, 3, 1)
    agree([policy], bounds)
