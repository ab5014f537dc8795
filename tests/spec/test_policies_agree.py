"""Every policy's indexed form chooses what its declarative rule states: the same steps, one by one (XC-EVICT-002)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expertcache_spec.eviction import POLICIES
from expertcache_spec.model import Budget
from expertcache_spec.residency import SETTINGS, Settings
from expertcache_spec.trace import Trace

from . import recordings
from .running import outcomes, steps
from .settings_of_policies import CORE, SUBJECTS, nightly_but
from .strategies import Case, cases, defined, random_case

ALL = tuple(POLICIES)
EVERY = tuple(SUBJECTS)
SOME = nightly_but(CORE, SUBJECTS)


def agree(case: Case, policy: str) -> int:
    """Replay in both forms, compare every step or refusal and what is left; the number of steps compared."""
    indexed, declarative = outcomes(case, policy, "indexed"), outcomes(case, policy, "declarative")
    for number, pair in enumerate(zip(indexed[0], declarative[0], strict=True)):
        assert pair[0] == pair[1], f"event {number} of {case.trace.events}"
    assert indexed[1:] == declarative[1:]
    return len(indexed[0])


@pytest.mark.rule("XC-EVICT-002", "XC-EVICT-010", "XC-EVICT-020", "XC-EVICT-030", "XC-EVICT-040", "XC-EVICT-050")
@pytest.mark.parametrize("policy", SOME)
@settings(max_examples=50)
@given(data=st.data())
def test_both_forms_agree_on_what_hypothesis_draws(policy: str, data: st.DataObject) -> None:
    agree(data.draw(cases(policy)), policy)


@pytest.mark.rule("XC-EVICT-002", "XC-EVICT-010", "XC-EVICT-020", "XC-EVICT-030", "XC-EVICT-040", "XC-EVICT-050")
@pytest.mark.parametrize("policy", EVERY)
def test_both_forms_agree_in_volume(policy: str) -> None:
    seeds = 150 if policy in CORE else 60
    compared = sum(agree(random_case(seed, policy), policy) for seed in range(seeds))
    assert compared > 12 * seeds


@pytest.mark.nightly
@pytest.mark.rule("XC-EVICT-002")
@pytest.mark.parametrize("policy", EVERY)
def test_both_forms_agree_in_much_more_volume(policy: str) -> None:
    compared = sum(agree(random_case(seed, policy), policy) for seed in range(10_000, 16_000))
    print(f"{policy}: {compared} events compared")
    assert compared > 100_000


NIGHT = ([], [pytest.mark.nightly])

DEFINED = [
    pytest.param(
        policy, name, value, id=f"{policy}-{name}-{value}", marks=[] if policy in CORE else pytest.mark.nightly
    )
    for policy in ALL
    for name, values in SETTINGS.items()
    for value in values
    if defined(policy, Settings(**{name: value}))  # type: ignore[arg-type]
]


@pytest.mark.rule("XC-EVICT-002")
@pytest.mark.parametrize(("policy", "name", "value"), DEFINED)
def test_both_forms_agree_under_each_value_of_each_setting(policy: str, name: str, value: str) -> None:
    assert sum(agree(random_case(seed, policy, **{name: value}), policy) for seed in range(900, 915)) > 100


# One prompt and its decode: a prefix, because the rule scans every resident at every victim, and Belady's the future
# of each. Belady therefore takes the prompt and one token of one of them daily, and the whole of each at night.
RECORDED = {
    "qwen-trim-bytes": ("qwen", 3, Budget(bytes=1500 << 20), Settings(room="trim")),
    "gemma-hits-first-slots": ("gemma", 3, Budget(slots=700), Settings(touch="hits_first")),
    "qwen-layer-ignore": ("qwen", 4, Budget(slots=1600), Settings(scope="layer", repeats="ignore")),
    "gemma-retain-bytes": ("gemma", 4, Budget(bytes=600 << 20), Settings(room="retain")),
}
DAILY = "qwen-layer-ignore"
"""The recording that every policy sees daily; those of the core see all."""
RUNS = [
    *(
        pytest.param(
            policy, run, None, id=f"{policy}-{run}", marks=NIGHT[policy not in CORE and run != "qwen-layer-ignore"]
        )
        for policy in ALL
        if policy != "belady"
        for run in RECORDED
    ),
    *(pytest.param("belady", run, 2, id=f"belady-{run}-short") for run in ("qwen-layer-ignore",)),
    *(pytest.param("belady", run, None, id=f"belady-{run}", marks=pytest.mark.nightly) for run in RECORDED),
]


@pytest.mark.rule("XC-EVICT-002")
@pytest.mark.parametrize(("policy", "run", "short"), RUNS)
def test_both_forms_agree_on_recorded_traces(policy: str, run: str, short: int | None) -> None:
    name, passes, budget, chosen = RECORDED[run]
    trace = recordings.beginning(recordings.bigmoe(name), short or passes)
    case = Case(trace, budget, attrs.evolve(chosen, overflow="waves"))
    assert agree(case, policy) == (short or passes) * len(trace.geometry.routed)
    assert sum(len(step.victims) for step in steps(trace, policy, budget, case.settings)) > 50


@pytest.mark.rule("XC-EVICT-002")
@pytest.mark.parametrize("policy", SOME)
def test_both_forms_agree_on_decode_of_many_requests(policy: str) -> None:
    whole = recordings.gpt_oss("instruct_facts", requests=8)
    trace = Trace(whole.geometry, recordings.beginning(whole, 4).events)
    assert agree(Case(trace, Budget(slots=230), Settings(scope="layer")), policy) == len(trace.events)
