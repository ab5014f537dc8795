"""All small traces: nothing is sampled, so within the bounds nothing can hide (XC-EVICT-002)."""

from __future__ import annotations

import json

import pytest

from .running import python

# How many cases there are follows from the bounds: one-key sequences x capacities x (four online policies under one
# setting, Belady of every length under two); sets likewise with their rooms and touch orders.
BOUNDS = [
    pytest.param("single 4 4 4", 6_816, id="every 4 events over 4 keys"),
    pytest.param("sets 3 3 2 2", 37_170, id="every 3 events of up to 2 of 3 keys"),
    pytest.param("single 4 5 4", 27_296, id="every 5 events over 4 keys", marks=pytest.mark.nightly),
    pytest.param("single 6 6 4", 1_194_384, id="every 6 events over 6 keys", marks=pytest.mark.nightly),
    pytest.param("sets 3 4 3 2", 501_903, id="every 4 events of up to 2 of 3 keys", marks=pytest.mark.nightly),
    pytest.param("sets 3 3 4 3", 341_340, id="every 3 events of up to 3 of 3 keys", marks=pytest.mark.nightly),
]


@pytest.mark.rule("XC-EVICT-002", "XC-EVICT-010", "XC-EVICT-020", "XC-EVICT-030", "XC-EVICT-040", "XC-EVICT-050")
@pytest.mark.parametrize(("bounds", "cases"), BOUNDS)
def test_both_forms_agree_on_every_trace_within(bounds: str, cases: int) -> None:
    text = python("-m", "tests.spec.smallscope", *bounds.split(), EXPERTCACHE_CONTRACTS="off", timeout=3600)
    print(bounds, text)
    found = json.loads(text)
    assert found["differences"] == []
    assert found["cases"] == cases
    assert found["victims"] > cases // 4
