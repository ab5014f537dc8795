"""What a cache is, found from what it did."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import attrs
import pytest

from expertcache_spec.errors import InvalidTrace
from expertcache_spec.eviction import POLICIES, Parameter, make
from expertcache_spec.eviction.variants import VARIANTS
from expertcache_spec.identify import (
    Candidate,
    Observed,
    explain,
    identify,
    observed,
    settings_to_try,
    turned,
    values_to_try,
)
from expertcache_spec.model import Budget, Geometry
from expertcache_spec.replay import run_event
from expertcache_spec.residency import Residency, Settings
from expertcache_spec.trace import Trace, decode_trace

from .strategies import random_trace

MODEL = Geometry(2, 8, 3)
BUDGET = Budget(slots=7)
ONLINE = [name for name, card in POLICIES.items() if not card.offline]


def trace(passes: int = 120) -> Trace:
    """A trace that tells policies apart."""
    return random_trace(Random(5), MODEL, passes=passes)


def log_of(policy: Callable[[], object], settings: Settings, *, victims: bool = True) -> list[Observed]:
    """What a cache of that policy does on the trace."""
    machine = Residency(MODEL, BUDGET, policy, attrs.evolve(settings, overflow="bypass"))  # type: ignore[arg-type]
    found = []
    for event in trace().events:
        step = run_event(machine, event)
        found.append(Observed(event, frozenset(step.hits), frozenset(step.victims) if victims else None))
    return found


@pytest.mark.rule("XC-EVICT-002")
@pytest.mark.parametrize("victims", [True, False], ids=["hits and victims", "hits alone"])
@pytest.mark.parametrize("policy", ["fifo", "lru", "lfu", "lfu-reset"])
def test_a_policy_is_found_from_what_it_did_and_no_other_explains_it(policy: str, victims: bool) -> None:
    log = log_of(make(policy), Settings(touch="hits_first"), victims=victims)
    known = [POLICIES[name] for name in ("fifo", "lru", "lfu", "lfu-reset")]
    found = identify(MODEL, BUDGET, log, known, room="reserve", scope="global")
    words = {finding.candidate.card.name for finding in found if finding.explains_all}
    assert words == {policy}
    touches = {finding.candidate.settings.touch for finding in found if finding.explains_all}
    assert touches == ({"hits_first"} if policy in ("lru", "lfu") else {"router", "hits_first"})


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_explains_itself(policy: str) -> None:
    log = log_of(make(policy, future=trace().events), Settings())
    assert explain(MODEL, BUDGET, log, Candidate(POLICIES[policy], {}, Settings(overflow="bypass"))).explains_all


@pytest.mark.parametrize(
    "variant", [variant for variant in VARIANTS if not variant.is_known], ids=lambda v: f"{v.policy} {v.words}"
)
def test_a_variant_is_told_from_what_it_is_sold_as(variant: object) -> None:
    assert variant in VARIANTS
    log = log_of(make(variant.card), Settings())  # type: ignore[attr-defined]
    sold = explain(MODEL, BUDGET, log, Candidate(POLICIES[variant.policy], {}, Settings(overflow="bypass")))  # type: ignore[attr-defined]
    if "at 15" not in variant.words:  # type: ignore[attr-defined]
        assert not sold.explains_all
    found = identify(MODEL, BUDGET, log, [POLICIES[variant.policy]], scope="global", repeats="promote")  # type: ignore[attr-defined]
    assert variant.card.name in {finding.candidate.card.name for finding in found if finding.explains_all}  # type: ignore[attr-defined]


def test_sold_as_lru_is_fifo_from_the_first_event_that_tells_them_apart() -> None:
    log = log_of(make("fifo"), Settings())
    sold = explain(MODEL, BUDGET, log, Candidate(POLICIES["lru"], {}, Settings(overflow="bypass")))
    assert sold.difference is not None
    assert sold.agreed == next(
        index for index, (ours, theirs) in enumerate(zip(log, log_of(make("lru"), Settings()), strict=True))
        if ours != theirs
    )  # fmt: skip
    assert "not {" in sold.difference


def test_what_nothing_explains_is_said_to_be_explained_by_nothing() -> None:
    log = log_of(make("lru"), Settings())
    log[30] = log[30]._replace(hits=frozenset(), victims=frozenset())
    found = identify(MODEL, BUDGET, log, [POLICIES["lru"], POLICIES["fifo"]])
    assert not any(finding.explains_all for finding in found)
    assert found[0].agreed <= 30
    assert found == sorted(found, key=lambda finding: -finding.agreed)


def test_parameters_are_turned_one_at_a_time_and_stay_legal() -> None:
    assert list(values_to_try(Parameter("n", 4, "", least=2, most=8))) == [2, 8]
    assert list(values_to_try(Parameter("n", 16, ""))) == [4, 8, 32, 64]
    assert list(values_to_try(Parameter("n", 0, ""))) == []
    assert list(values_to_try(Parameter("way", "up", "", choices=("up", "down")))) == ["down"]
    assert list(values_to_try(Parameter("strict", True, ""))) == [False]
    assert list(values_to_try(Parameter("share", 0.5, "", least=0, most=0.9))) == [0.25]
    for card in POLICIES.values():
        for candidate in turned([Candidate(card, {}, Settings())]):
            assert len(candidate.parameters) == 1
            assert card.complete(candidate.parameters) != card.complete()


@pytest.mark.rule("XC-EVICT-200")
@pytest.mark.parametrize("reading", ["rnb", "spice", "hipfire", "join-3", "rustane"])
def test_a_reading_of_least_stale_is_found_by_its_name(reading: str) -> None:
    log = log_of(make("least-stale", parameters={"reading": reading}), Settings())
    known = [POLICIES["lru"], POLICIES["least-stale"]]
    found = identify(MODEL, BUDGET, log, known, room="reserve", scope="global", touch="router", repeats="promote")
    explained = [finding.candidate.words for finding in found if finding.explains_all]
    assert f"least-stale:reading={reading}, overflow bypass" in explained


def test_settings_that_are_known_stay_and_the_others_are_tried() -> None:
    assert {each.overflow for each in settings_to_try(MODEL, {})} == {"bypass"}
    fixed = {"overflow": "waves", "touch": "hits_first"}
    tried = settings_to_try(MODEL, fixed)
    assert {(each.overflow, each.touch) for each in tried} == {("waves", "hits_first")}
    assert {(each.scope, each.repeats) for each in tried} == {
        (scope, repeats) for scope in ("global", "layer") for repeats in ("promote", "ignore")
    }


def test_a_trace_without_a_recording_says_nothing_about_a_cache() -> None:
    with pytest.raises(InvalidTrace, match="nothing is recorded"):
        observed(decode_trace([[0, 1]]))
