"""A replay's warm start: seeds that the first conversation does not zero, and records that stay."""

from __future__ import annotations

from typing import Any

import pytest

from expertcache_spec.errors import InvalidBudget
from expertcache_spec.eviction import Form
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import Replay, as_dict, replay
from expertcache_spec.residency import Settings
from expertcache_spec.starting import Start
from expertcache_spec.trace import Event, Phase, Trace

BOTH = pytest.mark.parametrize("form", ["declarative", "indexed"])
SEEDS = [(Key(0, 0), 9), (Key(0, 1), 2), (Key(0, 2), 3)]


def trace(phase: Phase = "decode", *experts: int, layers: int = 1) -> Trace:
    """One event a layer for each expert; the first pass is of that phase."""
    return Trace(Geometry(layers, 6, 1), tuple(
        Event(layer, ((expert,),), 0, number, "decode" if number else phase)
        for number, expert in enumerate(experts) for layer in range(layers)
    ), "starts")  # fmt: skip


@pytest.mark.rule("XC-EVICT-184", "XC-EVICT-185")
@BOTH
@pytest.mark.parametrize("phase", ["prefill", "decode"])
@pytest.mark.parametrize("early", [False, True])
def test_seeds_count_from_where_the_first_conversation_has_begun(phase: Phase, early: bool, form: Form) -> None:
    run = Replay(trace(phase, 5, 4), "route-hotness", Budget(slots=3), form=form, parameters={"early_load": early},
                 start=Start(SEEDS))  # fmt: skip
    assert [[key.expert for key in step.victims] for step in run] == [[1], [5]]
    policy: Any = run.machine.parts[-1].policy
    assert dict(policy.hotness.of) == {Key(0, 0): 9, Key(0, 1): 2, Key(0, 2): 3, Key(0, 5): 1, Key(0, 4): 1}
    assert not {"begin", "prioritize"} & vars(policy).keys()


@pytest.mark.rule("XC-EVICT-184")
@BOTH
def test_a_later_conversation_zeroes_what_was_lent(form: Form) -> None:
    events = (*trace("prefill", 5).events, Event(0, ((4,),), 1, 0, "prefill"))
    asked = Trace(Geometry(1, 6, 1), events, "two prompts")
    run = Replay(asked, "route-hotness", Budget(slots=3), form=form, start=Start(SEEDS))
    assert [[key.expert for key in step.victims] for step in run] == [[1], [0]]


@BOTH
def test_each_layer_of_its_own_room_has_its_own_seeds(form: Form) -> None:
    seeds = [(Key(layer, expert), 9 - expert + layer * expert * 4) for layer in (0, 1) for expert in (0, 1)]
    run = Replay(trace("prefill", 5, layers=2), "route-hotness", Budget(slots=4), Settings(scope="layer"), form=form,
                 start=Start(seeds))  # fmt: skip
    assert [step.victims for step in run] == [(Key(0, 1),), (Key(1, 0),)]


@pytest.mark.rule("XC-RES-018", "XC-RES-020")
def test_what_stays_resident_is_never_a_victim_and_must_fit() -> None:
    start = Start([(Key(0, 2), 1)], [Key(0, 0), Key(0, 1)])
    run = Replay(trace("decode", 5, 0, 4, 1), "lru", Budget(slots=3), start=start)
    assert [[key.expert for key in step.victims] for step in run] == [[2], [], [5], []]
    assert run.machine.pinned() == {Key(0, 0), Key(0, 1)}
    with pytest.raises(InvalidBudget, match="1 of 2 records that stay resident do not fit"):
        Replay(trace("decode", 5), "lru", Budget(slots=1), start=start)


@pytest.mark.rule("XC-REPLAY-002")
def test_the_manifest_says_what_it_began_with() -> None:
    found = as_dict(replay(trace("decode", 5), "lru", Budget(slots=3), start=Start(SEEDS[:1], [Key(0, 3)])))
    assert found["manifest"]["start"] == {"seeds": [[0, 0, 9]], "resident": [[0, 3]]}
    assert as_dict(replay(trace("decode", 5), "lru", Budget(slots=3)))["manifest"]["start"] is None
