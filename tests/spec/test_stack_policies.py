"""Inclusion of every policy, under every touch order: what holds is tested, what does not is replayed (XC-EVICT-005).

The counterexamples are in `stack_table`, which finds them by searching all small traces; the book shows them.
"""

from __future__ import annotations

import inspect
import json
import re
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from expertcache_spec.eviction import POLICIES
from expertcache_spec.model import Budget, Geometry
from expertcache_spec.replay import replay
from expertcache_spec.residency import Settings

from .running import python
from .settings_of_policies import SUBJECTS, VARIATIONS
from .stack_table import EITHER, NEVER, ROUTER_ONLY, Broken, answer, contents, is_included
from .strategies import random_trace

TOUCHES = ("router", "hits_first")
PAGE = Path(__file__).parents[2] / "docs" / "chapters" / "eviction" / "laws.md"
NO = [
    *((policy, touch, broken) for policy, broken in NEVER.items() for touch in TOUCHES),
    *((policy, "hits_first", broken) for policy, broken in ROUTER_ONLY.items()),
]
YES = [(policy, touch) for policy in POLICIES for touch in TOUCHES if answer(policy, touch)]

# Variations that see what is resident: visits that end with the residency.
NARROWER = {"probability-visits-finemoe"}
LIKEWISE = [(name, touch) for name, (base, _) in VARIATIONS.items() for touch in TOUCHES
            if answer(base, touch) and name not in NARROWER]  # fmt: skip


def test_every_policy_has_an_answer() -> None:
    assert not set(NEVER) & set(ROUTER_ONLY)
    assert {*NEVER, *ROUTER_ONLY} < set(POLICIES)
    assert len(YES) + len(NO) == 2 * len(POLICIES)


@pytest.mark.rule("XC-EVICT-005")
@pytest.mark.parametrize(("policy", "touch", "broken"), NO, ids=[f"{policy}-{touch}" for policy, touch, _ in NO])
def test_a_policy_that_is_none_breaks_on_its_counterexample(policy: str, touch: str, broken: Broken) -> None:
    assert not is_included(broken.trace, policy, broken.slots, Settings(touch=touch))  # type: ignore[arg-type]
    if policy in ROUTER_ONLY:
        assert is_included(broken.trace, policy, broken.slots, Settings(touch="router"))


def includes(policy: str, touch: str, seeds: range, passes: int) -> None:
    """On random traces of several layers, streams and rows an event, every capacity is part of the next."""
    for seed in seeds:
        random = Random(seed)
        geometry = Geometry(random.randint(1, 3), 6, 3)
        trace = random_trace(random, geometry, streams=random.randint(1, 2), passes=passes)
        widest = max(len(event.keys) for event in trace.events)
        capacities, chosen = range(widest, widest + 4), Settings(touch=touch)  # type: ignore[arg-type]
        held = [contents(trace, SUBJECTS[policy], slots, chosen) for slots in capacities]
        for smaller, larger in pairwise(held):
            assert all(small <= large for small, large in zip(smaller, larger, strict=True)), seed
        counts = [replay(trace, SUBJECTS[policy], Budget(slots=slots), chosen).total.misses for slots in capacities]
        assert counts == sorted(counts, reverse=True)


@pytest.mark.rule("XC-EVICT-005")
@pytest.mark.parametrize(("policy", "touch"), [*YES, *LIKEWISE])
def test_a_stack_policy_holds_more_and_misses_no_more_with_more_memory(policy: str, touch: str) -> None:
    includes(policy, touch, range(3), 6)


@pytest.mark.nightly
@pytest.mark.rule("XC-EVICT-005")
@pytest.mark.parametrize(("policy", "touch"), [*YES, *LIKEWISE])
def test_a_stack_policy_holds_more_with_more_memory_in_much_more_volume(policy: str, touch: str) -> None:
    includes(policy, touch, range(3, 60), 12)


@pytest.mark.nightly
@pytest.mark.rule("XC-EVICT-005")
@pytest.mark.parametrize("bounds", [(1, 7, 7), (2, 4, 8), (3, 3, 7)])
@pytest.mark.parametrize(("policy", "touch"), YES)
def test_no_small_trace_breaks_a_stack_policy(policy: str, touch: str, bounds: tuple[int, int, int]) -> None:
    text = python("-m", "tests.spec.stack_table", policy, touch, *map(str, bounds), EXPERTCACHE_CONTRACTS="off",
                  timeout=3600)  # fmt: skip
    cases, broken = json.loads(text)[2:]
    assert (cases > 300, broken) == (True, "")


SHORTEST = [
    *((policy, "router", 1, len(broken.rows)) for policy, broken in NEVER.items()
      if not broken.streams and len(broken.rows) <= 7 and policy != "lfru-heat"),
    ("lfru-heat", "router", 3, 4),
    *((policy, "hits_first", 3, 4) for policy in ROUTER_ONLY),
]  # fmt: skip


@pytest.mark.nightly
@pytest.mark.rule("XC-EVICT-005")
@pytest.mark.parametrize(("policy", "touch", "widest", "events"), SHORTEST)
def test_no_shorter_trace_breaks_it(policy: str, touch: str, widest: int, events: int) -> None:
    text = python("-m", "tests.spec.stack_table", policy, touch, str(widest), str(events - 1), str(3 * events - 3),
                  EXPERTCACHE_CONTRACTS="off", timeout=3600)  # fmt: skip
    assert json.loads(text)[3] == ""


# ---------------------------------------------------------------------------------------------- the book


def spelled(policy: str) -> list[str]:
    """The cells of the policy's row: the two answers, and the counterexample."""
    said = ["yes" if answer(policy, touch) else "no" for touch in TOUCHES]
    broken = NEVER.get(policy) or ROUTER_ONLY.get(policy)
    if broken is None:
        return [*said, ""]
    rows = " ".join(",".join(map(str, row)) for row in broken.rows)
    return [*said, f"`{rows}` in {broken.slots}" + (", one stream each" if broken.streams else "")]


def test_the_books_table_is_this_one() -> None:
    found = dict(re.findall(r"^\| \{doc\}`([a-z0-9-]+)` \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert {name: [cell.strip() for cell in cells.split(" | ")] for name, cells in found.items()} == {
        policy: spelled(policy) for policy in POLICIES
    }


@pytest.mark.parametrize("policy", POLICIES)
def test_the_page_of_a_policy_gives_its_answer(policy: str) -> None:
    said = " ".join((inspect.getdoc(inspect.getmodule(POLICIES[policy].indexed)) or "").split()).lower()
    if policy == "lfu-reset":
        assert "`lfu-reset` is none" in said
    elif policy in NEVER:
        assert "no stack policy" in said
    elif policy in EITHER:
        assert re.search(r"(?<!no )\ba stack policy", said)
    else:
        assert re.search(r"under touch `router` .*a stack policy|a stack policy under touch `router`", said)
