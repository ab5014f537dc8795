"""The runtime as an implementation: it loads, claims what it keeps, and answers as the machine does."""

from __future__ import annotations

import random

import attrs
import pytest

from expertcache_conformance.adapters.loading import load
from expertcache_conformance.adapters.protocol import Config
from expertcache_reference.runtime import impl
from expertcache_spec.errors import EventTooLarge, WrongState
from expertcache_spec.eviction import make
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import run_by_parts
from expertcache_spec.residency import Residency, Settings
from expertcache_spec.trace import Event

MODEL = Geometry(2, 6, 3, (5, 3))


def _events(count: int, seed: int) -> list[Event]:
    chosen = random.Random(seed)
    return [
        Event(at % 2, (tuple(chosen.sample(range(6), 3)), tuple(chosen.sample(range(6), 3))), 0, at // 2, "prefill")
        for at in range(count)
    ]


@pytest.mark.parametrize("policy", ["lru", "lfu", "s3-fifo", "belady"])
@pytest.mark.parametrize(
    "settings",
    [Settings(), Settings(overflow="bypass", scope="layer"), Settings(overflow="waves"), Settings(room="trim"),
     Settings(room="retain"), Settings(overflow="bypass", admission="cold-slots")],
    ids=str,
)  # fmt: skip
def test_its_steps_are_those_of_the_machine(policy: str, settings: Settings) -> None:
    events, budget = _events(24, 3), Budget(slots=5, bytes=22)
    config = Config(policy, budget, MODEL, settings, future=tuple(events) if policy == "belady" else None)
    runtime = impl.open_cache(config)
    machine = Residency(MODEL, budget, make(policy, future=config.future), settings)
    for event in events:
        try:
            expected = run_by_parts(machine, event)
        except EventTooLarge:
            with pytest.raises(EventTooLarge):
                runtime.step(event)
            if policy == "belady":
                return  # it was promised this event next
            continue
        step = runtime.step(event)
        assert step._replace(victims=()) == expected._replace(victims=())
        assert sorted(step.victims) == sorted(expected.victims)


def test_reads_end_when_they_are_told_to_and_fail_when_they_are_told_to() -> None:
    cache = impl.open_cache(Config("lru", Budget(slots=4), MODEL))
    selection = cache.select(Event(0, ((0, 1),)))
    assert selection.reads == (Key(0, 0), Key(0, 1))
    with pytest.raises(WrongState):
        cache.release(selection.ticket)
    assert cache.prefetch(Key(1, 2)) == {"outcome": "started"}
    assert cache.complete(Key(0, 1)).tickets == (selection.ticket,)
    cache.fail(Key(0, 0))
    with pytest.raises(WrongState, match="not in flight"):
        cache.complete(Key(0, 0))
    cache.release(selection.ticket)
    cache.complete(Key(1, 2))
    again = cache.select(Event(0, ((0, 1),), 0, 1))
    assert (again.hits, again.reads) == ((Key(0, 1),), (Key(0, 0),))
    cache.complete(Key(0, 0))
    cache.release(again.ticket)
    assert cache.seed([Key(1, 5), Key(1, 2)])["installed"] == (Key(1, 5),)


@pytest.mark.rule("XC-BYTES-001", "XC-BYTES-003")
def test_it_shows_the_bytes_of_the_slot_until_the_lease_ends() -> None:
    config = Config("lru", Budget(slots=2), attrs.evolve(MODEL, experts=7, record_bytes=(90, 30)))
    cache = impl.open_cache(config)
    ticket = cache.select(Event(0, ((0, 1),))).ticket
    cache.complete(Key(0, 0))
    assert cache.read(ticket, Key(0, 0)) == config.content(Key(0, 0))
    with pytest.raises(WrongState, match="not there"):
        cache.read(ticket, Key(0, 1))
    cache.complete(Key(0, 1))
    cache._core.slots[Key(0, 1)].view[88] ^= 1
    wrong = cache.read(ticket, Key(0, 1))
    assert [at for at in range(90) if wrong[at] != config.content(Key(0, 1))[at]] == [88]
    cache.release(ticket)
    with pytest.raises(WrongState, match="not there"):
        cache.read(ticket, Key(0, 0))
    cache.rebind("model-b")
    ticket = cache.select(Event(0, ((0,),))).ticket
    cache.complete(Key(0, 0))
    assert cache.read(ticket, Key(0, 0)) == config.content(Key(0, 0), "model-b")


def test_a_step_that_would_compute_with_other_bytes_is_a_crash() -> None:
    cache = impl.open_cache(Config("lru", Budget(slots=4), attrs.evolve(MODEL, experts=8)))
    cache.step(Event(0, ((0,),)))
    cache._core.slots[Key(0, 0)].view[1] ^= 1
    with pytest.raises(AssertionError, match="wrong bytes"):
        cache.step(Event(0, ((0,),)))


def test_it_loads_as_any_implementation_does() -> None:
    found = load("expertcache_reference.runtime.impl")
    assert {"leases", "faults", "pins", "resize", "reset", "rebind", "seeds", "prefetch", "bytes"} <= set(
        found.profile.capabilities
    )
    assert found.profile.policies
