"""Whether a predictor predicts: against chance, and against itself with its predictions handed to the wrong keys."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from random import Random

import pytest

from expertcache_spec.eviction import Value
from expertcache_spec.eviction.predictive import CARDS
from expertcache_spec.model import Budget, Geometry
from expertcache_spec.replay import Replay, run_event
from expertcache_spec.trace import Event, Trace

from . import recordings
from .recovered_gap import SHUFFLED, Task, misses, recovered

NAMES = tuple(card.name for card in CARDS)
EXPERTS, TOP_K, SLOTS = 64, 4, 12


def one_layer(rows: list[tuple[int, ...]]) -> Trace:
    """Decode of one stream over one layer."""
    return Trace(Geometry(1, EXPERTS, TOP_K), tuple(Event(0, (row,), pass_index=n) for n, row in enumerate(rows)))


@cache
def structured(seed: int, visits: int = 1_200) -> Trace:
    """Eight experts that come in runs and are ranked first, among others that come once in a while and last.

    Every predictor has something to find: the eight are popular, lately and always, come in runs at short intervals.
    """
    random = Random(seed)
    anchors = random.sample(range(EXPERTS), 8)
    others = [expert for expert in range(EXPERTS) if expert not in anchors]
    going: list[int] = []
    rows: list[tuple[int, ...]] = []
    for _ in range(visits):
        going = [expert for expert in going if random.random() < 0.6]
        while len(going) < TOP_K - 1:
            going.append(random.choice([expert for expert in anchors if expert not in going]))
        rows.append((*going, *random.sample(others, TOP_K - len(going))))
    return one_layer(rows)


@cache
def uniform(seed: int, visits: int = 2_000) -> Trace:
    """Routing in which every row is as likely as every other, whatever came before."""
    random = Random(seed)
    return one_layer([tuple(random.sample(range(EXPERTS), TOP_K)) for _ in range(visits)])


def hit_rate(trace: Trace, policy: str, **values: Value) -> float:
    """Hits by lookups, the first tenth left out."""
    run = Replay(trace, policy, Budget(slots=SLOTS), parameters=values)
    hits = lookups = 0
    for number, event in enumerate(run.events):
        step = run_event(run.machine, event)
        if number >= len(run.events) // 10:
            hits, lookups = hits + len(step.hits), lookups + len(event.keys)
    return hits / lookups


@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.rule("XC-EVICT-275", "XC-EVICT-278")
def test_where_routing_has_structure_a_predictor_beats_chance_and_its_control_does_not(policy: str) -> None:
    # Three traces of 1,200 visits: one standard deviation of a mean is below half a percent.
    own, control, chance = (
        sum(hit_rate(structured(seed), name, **values) for seed in range(3)) / 3
        for name, values in ((policy, {}), (policy, SHUFFLED), ("random", {}))
    )
    assert own > chance + 0.02
    assert control < chance


@pytest.mark.parametrize("control", ["none", "shuffled"])
@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.rule("XC-EVICT-275")
def test_where_routing_is_uniform_neither_is_better_than_chance(policy: str, control: str) -> None:
    # c / N exactly in expectation; four standard deviations of 7,200 lookups.
    share = SLOTS / EXPERTS
    sigma = (share * (1 - share) / 7_200) ** 0.5
    assert abs(hit_rate(uniform(5), policy, control=control) - share) < 4 * sigma


# ---------------------------------------------------------------------------------------------- a part of the table

LRU, BELADY = 1355, 882
PINNED: dict[str, tuple[int, int]] = {
    "hazard": (1346, 1920),
    "popularity": (1266, 2073),
    "last-rank": (1724, 1977),
    "streak": (1538, 1990),
    "recent-frequency": (1243, 2074),
    "ewma-interval": (1307, 2001),
    "semi-markov": (1333, 1932),
}
"""Policy to its misses, and those of its control."""


def beginning() -> tuple[Trace, int]:
    """120 tokens of one request of code_cs: half of them to learn from."""
    whole = recordings.gpt_oss("code_cs", requests=1)
    trace = recordings.beginning(whole, 120)
    return trace, len(trace.events) // 2


@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.rule("XC-EVICT-278", "XC-REPLAY-001")
def test_what_a_predictor_and_its_control_miss_of_recorded_routing_is_pinned(policy: str) -> None:
    trace, learning = beginning()
    task = Task("code_cs", "code_cs", 230, "layer")
    assert tuple(misses(trace, learning, task, policy, values) for values in ({}, SHUFFLED)) == PINNED[policy]


@pytest.mark.rule("XC-EVICT-278")
def test_on_recorded_routing_every_control_misses_more_than_lru_and_belady_is_below_every_predictor() -> None:
    trace, learning = beginning()
    task = Task("code_cs", "code_cs", 230, "layer")
    assert [misses(trace, learning, task, name, {}) for name in ("lru", "belady")] == [LRU, BELADY]
    for own, control in PINNED.values():
        assert BELADY < own < control
        assert control > LRU
        assert recovered([{"lru": LRU, "belady": BELADY, "own": own}], "own") == Fraction(LRU - own, LRU - BELADY)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("domain", "tokens"),
    [("code_cs", 7_377), ("math", 13_482), ("prose_history_law", 16_358), ("instruct_facts", 1_331)],
)
def test_a_domain_has_the_tokens_that_the_survey_of_traces_counted(domain: str, tokens: int) -> None:
    trace = recordings.gpt_oss(domain)
    assert len(trace.events) == 24 * tokens
    recordings.gpt_oss.cache_clear()
