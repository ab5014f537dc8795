"""Replay: one run, the same everywhere, named in full."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from hypothesis import given

from expertcache_spec import SPEC_VERSION
from expertcache_spec.errors import EventTooLarge, WrongState
from expertcache_spec.eviction import POLICIES
from expertcache_spec.metrics import Counters
from expertcache_spec.model import Budget, Geometry
from expertcache_spec.replay import Replay, as_dict, replay, run_event
from expertcache_spec.residency import Settings, Step
from expertcache_spec.trace import Event, Trace, decode_trace, sequential

from .running import outcomes, python
from .strategies import Case, cases, random_case

TRACE = decode_trace([[0, 1], [2], [0, 1]])


@pytest.mark.rule("XC-REPLAY-001")
@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_replay_gives_the_same_steps(policy: str) -> None:
    for seed in range(20):
        assert outcomes(random_case(seed, policy), policy) == outcomes(random_case(seed, policy), policy)


@pytest.mark.rule("XC-REPLAY-001")
def test_equal_replays_are_equal_under_every_hash_seed() -> None:
    answers = {python("-m", "tests.spec.fingerprints", PYTHONHASHSEED=seed) for seed in ("0", "1", "4242")}
    assert len(answers) == 1
    assert len(json.loads(answers.pop())) == len(POLICIES)


@pytest.mark.rule("XC-REPLAY-001")
def test_a_replay_runs_once() -> None:
    run = Replay(TRACE, "lru", Budget(slots=2))
    assert len(list(run)) == 3
    with pytest.raises(WrongState, match="has run"):
        next(iter(run))


@pytest.mark.rule("XC-REPLAY-002")
def test_a_result_names_everything_that_it_depends_on() -> None:
    settings = Settings(room="trim", touch="hits_first")
    manifest = replay(TRACE, "lfu", Budget(3, 5), settings, mode="sequential", form="declarative").manifest
    assert attrs.asdict(manifest, recurse=False) == {
        "trace": "trace",
        "trace_sha256": TRACE.fingerprint,
        "spec_version": SPEC_VERSION,
        "policy": "lfu",
        "parameters": {},
        "form": "declarative",
        "replay": "sequential",
        "slots": 3,
        "bytes": 5,
        "settings": settings,
        "tie_rule": "(layer, expert), after the policy's own order",
        "optimum": None,
        "prefetch": None,
        "misses": None,
        "start": None,
    }


@pytest.mark.rule("XC-REPLAY-002", "XC-EVICT-051")
@pytest.mark.parametrize(
    ("chosen", "mode", "optimum"),
    [
        ({}, "event", "belady, forced admission, per event"),
        ({"room": "trim"}, "event", "belady, forced admission, per event"),
        ({"room": "retain"}, "event", "belady, bypass admission, per event"),
        (
            {"admission": "refusable"},
            "event",
            "belady, refusable admission, per event: between bypass and forced, no optimum",
        ),
        ({"admission": "refusable"}, "sequential", "belady, bypass admission, per access"),
    ],
)
def test_an_offline_result_names_its_optimum(chosen: dict[str, Any], mode: Any, optimum: str) -> None:
    assert replay(TRACE, "belady", Budget(slots=2), Settings(**chosen), mode=mode).manifest.optimum == optimum


@pytest.mark.rule("XC-REPLAY-003")
def test_sequential_replay_takes_one_selection_at_a_time_repeats_included() -> None:
    event = Event(0, ((0, 1), (1, 2)), phase="prefill")
    assert [one.rows for one in sequential([event])] == [((0,),), ((1,),), ((1,),), ((2,),)]
    run = replay(Trace(Geometry(1, 4, 2), (event,)), "lru", Budget(slots=4), mode="sequential")
    assert (run.total.lookups, run.total.hits) == (4, 1)
    assert run.manifest.replay == "sequential"


@pytest.mark.rule("XC-REPLAY-003")
@given(cases(fixed={"overflow": "bypass"}))
def test_sequential_replay_of_single_key_events_is_event_replay(case: Case) -> None:
    single = tuple(attrs.evolve(event, rows=(event.rows[0][:1],), accepted=None) for event in case.trace.events)
    trace = Trace(case.trace.geometry, single)
    event, access = (Replay(trace, "belady", case.budget, case.settings, mode) for mode in ("event", "sequential"))  # type: ignore[arg-type]
    assert list(event) == list(access)
    assert event.machine.counters == access.machine.counters


@pytest.mark.rule("XC-REPLAY-004")
def test_a_result_as_data_holds_integers_and_names_and_no_ratio() -> None:
    data = as_dict(replay(TRACE, "belady", Budget(slots=2)))

    def leaves(value: object) -> list[object]:
        if isinstance(value, dict):
            return [leaf for item in value.values() for leaf in leaves(item)]
        return [leaf for item in value for leaf in leaves(item)] if isinstance(value, list) else [value]

    assert {type(leaf) for leaf in leaves(data)} <= {int, str, type(None)}
    assert json.loads(json.dumps(data)) == data
    assert list(data)[:9] == [
        "lookups", "hits", "misses", "evictions", "bytes_read", "peak_bytes", "collisions", "reloads", "peak_slots",
    ]  # fmt: skip


@pytest.mark.rule("XC-REPLAY-004")
def test_bytes_are_unknown_only_where_the_sizes_are() -> None:
    def bytes_of(size: int | None, slots: int) -> tuple[object, object]:
        data = as_dict(replay(decode_trace([[0], [1]], record_bytes=size), "lru", Budget(slots=slots)))
        return data["bytes_read"], data["peak_bytes"]

    assert bytes_of(3, 1) == (6, 3)
    assert bytes_of(3, 0) == (6, 0)
    assert bytes_of(None, 1) == (None, None)


def test_a_watcher_sees_every_step_and_may_stop() -> None:
    seen: list[Step] = []

    def first_two(steps: Any) -> Any:
        for step in steps:
            seen.append(step)
            yield step
            if len(seen) == 2:
                return

    assert replay(TRACE, "lru", Budget(slots=2), watch=first_two).total.lookups == 3
    assert len(seen) == 2


@pytest.mark.rule("XC-RES-012")
def test_a_replay_stops_at_the_event_that_does_not_fit() -> None:
    run = Replay(TRACE, "lru", Budget(slots=1))
    with pytest.raises(EventTooLarge, match="2 distinct experts, room for 1"):
        list(run)
    assert run.machine.counters == Counters()
    assert run_event(run.machine, TRACE.events[1]).misses == ((0, 2),)
