"""All small traces: nothing is sampled, so within the bounds nothing can hide (XC-EVICT-002)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from expertcache_spec.eviction import POLICIES

from .running import python
from .settings_of_policies import CORE, SUBJECTS, VARIATIONS
from .smallscope import every_row, lengths, settings

Bounds = tuple[str, int, int, int, int]
"""Kind, keys (of each layer), events, capacity, widest event: see `smallscope`."""

LAYERED = ("farthest-layer", "least-stale", "score", "probability-visits", "route-hotness")
"""Policies of engines, which look at layers, passes and streams."""


def cases(policies: Sequence[str], bounds: Bounds) -> int:
    """How many cases follow from the bounds: sequences of events x capacities x settings."""
    kind, keys, events, capacity, widest = bounds
    rows = len(every_row(keys, widest))
    return sum(
        rows**length * capacity * len(settings(policy, kind))
        for policy in policies
        for length in lengths(policy, events)
    )


def described(bounds: Bounds) -> str:
    """The bounds in words."""
    kind, keys, events, capacity, widest = bounds
    return f"{kind}: {events} events of up to {widest} of {keys} keys in up to {capacity} slots"


def agree(policies: Sequence[str], bounds: Bounds, tell: Callable[[str, object], None]) -> None:
    """Enumerate, tell the terminal's summary how much, and find no difference."""
    text = python("-m", "tests.spec.smallscope", ",".join(policies), *map(str, bounds), EXPERTCACHE_CONTRACTS="off",
                  timeout=7200)  # fmt: skip
    found = json.loads(text)
    named = policies[0] if len(policies) == 1 else f"{len(policies)} policies"
    tell("enumerated", f"{named}, {described(bounds)}: {found['cases']:,} cases, {found['victims']:,} victims")
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
        pytest.param(tuple(POLICIES), ("layers", 2, 6, 3, 1), id="every 6 events in 2 layers of 2 keys"),
        pytest.param(LAYERED, ("streams", 2, 6, 3, 1), id="every 6 events of 2 streams in 2 layers of 2 keys"),
    ],
)
def test_both_forms_agree_on_every_trace_within(
    policies: tuple[str, ...], bounds: Bounds, record_property: Callable[[str, object], None]
) -> None:
    agree(policies, bounds, record_property)


@pytest.mark.nightly
@pytest.mark.rule("XC-EVICT-002")
@pytest.mark.parametrize("policy", SUBJECTS)
@pytest.mark.parametrize(
    "bounds",
    [
        pytest.param(("single", 6, 6, 4, 1), id="every 6 events over 6 keys"),
        pytest.param(("rooms", 3, 4, 3, 2), id="every 4 events of up to 2 of 3 keys"),
        pytest.param(("rooms", 3, 3, 4, 3), id="every 3 events of up to 3 of 3 keys"),
        pytest.param(("layers", 3, 6, 4, 1), id="every 6 events in 2 layers of 3 keys"),
        pytest.param(("layers", 3, 4, 4, 2), id="every 4 events of up to 2 keys in 2 layers of 3"),
        pytest.param(("streams", 2, 8, 3, 1), id="every 8 events of 2 streams in 2 layers of 2 keys"),
    ],
)
def test_both_forms_agree_on_every_trace_within_larger_bounds(
    policy: str, bounds: Bounds, record_property: Callable[[str, object], None]
) -> None:
    if policy in VARIATIONS and bounds[0] == "single":
        bounds = ("single", 5, 5, 3, 1)
    agree([policy], bounds, record_property)
