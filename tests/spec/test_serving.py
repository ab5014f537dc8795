"""The short way of serving an event is the long way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.eviction import POLICIES, make
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import Replay, run_by_parts, run_event
from expertcache_spec.residency import Residency, Settings, audit
from expertcache_spec.trace import Event

from .settings_of_policies import CORE, SUBJECTS, nightly_but
from .strategies import Case, cases, random_case

SOME = nightly_but(CORE, SUBJECTS)


def outcome(way: Any, machine: Residency, event: Event) -> Any:
    """The step, or the refusal."""
    try:
        return way(machine, event)
    except ExpertCacheError as error:
        return type(error)


def agree(policy: str, case: Case) -> int:
    """Serve the whole trace both ways; how many events could take the short way."""
    short, long = (Replay(case.trace, SUBJECTS[policy], case.budget, case.settings) for _ in range(2))
    served = 0
    for event in short.events:
        served += short.machine.plain
        assert outcome(run_event, short.machine, event) == outcome(run_by_parts, long.machine, event)
        assert short.machine.counters == long.machine.counters
        assert short.machine.residents() == long.machine.residents()
        assert (short.machine.usage.slots, short.machine.usage.bytes) == (
            long.machine.usage.slots,
            long.machine.usage.bytes,
        )
        assert audit(short.machine) == []
    return served


@pytest.mark.parametrize("policy", SOME)
@given(st.data())
@pytest.mark.rule("XC-RES-001", "XC-RES-010")
def test_the_short_way_does_what_the_long_way_does(policy: str, data: st.DataObject) -> None:
    agree(policy, data.draw(cases(policy)))


@pytest.mark.parametrize("policy", nightly_but(POLICIES, SUBJECTS))
@pytest.mark.rule("XC-RES-001", "XC-RES-010")
def test_the_short_way_does_what_the_long_way_does_in_volume(policy: str) -> None:
    seeds = 60 if policy in CORE else 16
    plain = {"room": "reserve", "admission": "always"}
    assert (
        sum(agree(policy, random_case(seed, policy, **(plain if seed % 2 else {}))) for seed in range(seeds))
        > 5 * seeds
    )


def test_the_short_way_stands_back_when_something_is_under_way() -> None:
    def fresh(**settings: Any) -> Residency:
        return Residency(Geometry(1, 8, 3, (1,)), Budget(slots=4), make("lru"), Settings(**settings))

    event = Event(0, ((0, 1),))
    assert fresh().serve(event) is not None
    assert fresh(room="trim").serve(event) is None
    assert fresh().serve(Event(0, ((0, 9),))) is None
    assert fresh().serve(Event(1, ((0,),))) is None
    assert fresh().serve(Event(0, ((0, 1, 2), (3, 4, 5)))) is None
    assert fresh().serve(Event(0, ((0,), (1,)), phase="verify", accepted=1)) is None
    leased = fresh()
    leased.select(event)
    assert leased.serve(event) is None
    prefetching = fresh()
    prefetching.prefetch(Key(0, 5))
    assert prefetching.serve(event) is None
    prefetching.complete(Key(0, 5))
    assert prefetching.serve(event) is None
    pinned = fresh()
    pinned.serve(event)
    pinned.pin(Key(0, 0))
    assert pinned.serve(event) is None
