"""The residency machine, transition by transition: hand-checked examples and the machine's past errors."""

from __future__ import annotations

import pytest

from expertcache_spec.errors import EventTooLarge, InvalidBudget, InvalidModel, MustWait, WrongState
from expertcache_spec.eviction import make
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.residency import Residency, Settings, audit
from expertcache_spec.trace import Event

ONE_LAYER = Geometry(1, 10, 6, (1,))


def machine(
    slots: int | None, policy: str = "lru", geometry: Geometry = ONE_LAYER, *, size: int | None = None, **chosen: str
) -> Residency:
    """A fresh machine of one layer with room for `slots` records, or for `size` bytes."""
    return Residency(geometry, Budget(slots, size), make(policy), Settings(**chosen))  # type: ignore[arg-type]


def event(*experts: int, layer: int = 0, **rest: int) -> Event:
    """A decode event of one row."""
    return Event(layer, (experts,), **rest)  # type: ignore[arg-type]


def keys(*experts: int, layer: int = 0) -> tuple[Key, ...]:
    """Keys of one layer."""
    return tuple(Key(layer, expert) for expert in experts)


def load(cache: Residency, *experts: int, layer: int = 0) -> None:
    """Serve an event to its end."""
    selection = cache.select(event(*experts, layer=layer))
    for key in selection.reads:
        cache.complete(key)
    cache.release(selection.ticket)


@pytest.mark.rule("XC-RES-011")
@pytest.mark.parametrize("origin", ["seed", "prefetch"])
@pytest.mark.parametrize("room", ["reserve", "trim", "retain"])
def test_a_speculative_read_that_outlives_a_shrink_leaves_when_it_lands(origin: str, room: str) -> None:
    cache = machine(2, room=room)
    load(cache, 0)
    assert cache.seed(keys(1)).reads if origin == "seed" else cache.prefetch(Key(0, 1))
    assert cache.resize(Budget(slots=0)) == keys(0)
    assert cache.usage.slots == 1
    assert cache.complete(Key(0, 1)).victims == keys(1)
    assert cache.usage.slots == 0
    assert audit(cache) == []


@pytest.mark.rule("XC-RES-011", "XC-RES-025")
def test_a_prefetch_that_lands_during_an_overshoot_leaves_the_trim_to_the_event() -> None:
    cache = machine(3, room="trim")
    load(cache, 5, 6)
    assert cache.prefetch(Key(0, 9)) == "started"
    selection = cache.select(event(0, 1))
    assert cache.usage.slots == 5
    assert cache.complete(Key(0, 9)).victims == ()
    assert cache.complete(Key(0, 0)).victims == ()
    assert cache.complete(Key(0, 1)).victims == keys(5, 6)
    cache.release(selection.ticket)
    assert cache.residents() == set(keys(0, 1, 9))


@pytest.mark.rule("XC-RES-018", "XC-RES-011")
def test_pins_beyond_a_shrunken_budget_are_refused() -> None:
    cache = machine(2)
    load(cache, 0, 1)
    selection = cache.select(event(0, 1))
    cache.resize(Budget(slots=1))
    cache.pin(Key(0, 0))
    with pytest.raises(InvalidBudget, match="2 pinned records do not fit"):
        cache.pin(Key(0, 1))
    cache.pin(Key(0, 0))
    assert cache.release(selection.ticket).victims == keys(1)
    assert cache.residents() == cache.pinned() == set(keys(0))


@pytest.mark.rule("XC-RES-018", "XC-RES-011")
@pytest.mark.parametrize("budget", [Budget(slots=1), Budget(bytes=1)])
def test_a_shrink_below_the_pins_is_refused_and_changes_nothing(budget: Budget) -> None:
    cache = machine(3)
    load(cache, 0, 1, 2)
    cache.pin(Key(0, 0))
    cache.pin(Key(0, 1))
    with pytest.raises(InvalidBudget, match="2 pinned records do not fit"):
        cache.resize(budget)
    assert cache.budget == Budget(slots=3)
    assert cache.residents() == set(keys(0, 1, 2))


@pytest.mark.rule("XC-RES-026")
def test_what_retain_does_not_keep_is_reported_in_router_order() -> None:
    cache = machine(1, room="retain")
    selection = cache.select(event(3, 1, 2))
    for key in reversed(selection.reads):
        cache.complete(key)
    ended = cache.release(selection.ticket)
    assert ended.victims == ()
    assert ended.refused == keys(3, 1)


@pytest.mark.rule("XC-RES-026", "XC-METRIC-003")
def test_under_retain_a_record_that_another_event_read_after_a_failure_is_evicted_not_refused() -> None:
    cache = machine(3, room="retain")
    first = cache.select(event(0, 1, 2))
    cache.fail(Key(0, 0))
    for key in keys(1, 2):
        cache.complete(key)
    load(cache, 0)
    other = cache.select(event(3, 4, 5))
    for key in other.reads:
        cache.complete(key)
    assert cache.release(first.ticket) == (keys(0), keys(1, 2))
    assert cache.release(other.ticket) == ((), ())
    assert cache.counters.total().evictions == 1
    assert audit(cache) == []


@pytest.mark.rule("XC-RES-022", "XC-RES-026")
def test_no_count_turns_negative_when_counters_restart_between_a_load_and_its_retention() -> None:
    cache = machine(1, room="retain")
    selection = cache.select(event(0, 1))
    for key in selection.reads:
        cache.complete(key)
    cache.reset("counters")
    assert cache.release(selection.ticket) == (keys(0), ())
    total = cache.counters.total()
    assert (total.admissions, total.evictions, total.refused) == (0, 1, 0)
    assert audit(cache) == []


@pytest.mark.rule("XC-RES-012", "XC-RES-018")
def test_waves_that_a_pin_would_starve_are_refused_before_the_first() -> None:
    cache = machine(1, overflow="waves")
    load(cache, 0)
    cache.pin(Key(0, 0))
    with pytest.raises(EventTooLarge):
        cache.select(event(0, 1))
    assert cache.leased() == frozenset()
    cache.unpin(Key(0, 0))
    first = cache.select(event(0, 1))
    assert (first.hits, first.reads, first.deferred) == (keys(0), (), keys(1))
    cache.release(first.ticket)
    assert cache.resume(first).victims == keys(0)


@pytest.mark.rule("XC-RES-013", "XC-RES-018")
def test_a_pin_between_two_waves_makes_the_next_one_smaller() -> None:
    cache = machine(2, overflow="waves")
    first = cache.select(event(0, 1, 2, 3))
    assert (first.reads, first.deferred) == (keys(0, 1), keys(2, 3))
    for key in first.reads:
        cache.complete(key)
    cache.pin(Key(0, 0))
    cache.release(first.ticket)
    second = cache.resume(first)
    assert (second.reads, second.deferred, second.victims) == (keys(2), keys(3), keys(1))
    cache.complete(Key(0, 2))
    cache.release(second.ticket)
    assert cache.resume(second).reads == keys(3)


@pytest.mark.rule("XC-EVICT-051", "XC-RES-008")
def test_a_refused_record_displaces_nobody_even_when_it_would_need_two_victims() -> None:
    # Layer 0 has records of one byte, layer 1 of two. (1,0) would displace (0,0), asked for last, and then (0,1), asked
    # for sooner than itself: it is refused, and so (0,0) stays too.
    geometry = Geometry(2, 2, 2, (1, 2))
    future = [event(0, 1), event(0, layer=1), event(1), event(0, layer=1), event(0)]
    cache = Residency(geometry, Budget(bytes=2), make("belady", future=future), Settings(admission="refusable"))
    for key in (first := cache.select(future[0])).reads:
        cache.complete(key)
    cache.release(first.ticket)
    second = cache.select(future[1])
    assert (second.refused, second.victims) == (keys(0, layer=1), ())
    assert cache.residents() == set(keys(0, 1))


@pytest.mark.rule("XC-RES-023", "XC-METRIC-002", "XC-METRIC-010")
def test_after_a_rebind_the_first_miss_of_a_key_is_compulsory_and_no_reload() -> None:
    cache = machine(2)
    load(cache, 0)
    cache.rebind("another model")
    load(cache, 0)
    total = cache.counters.total()
    assert (total.misses, total.compulsory, total.reloads) == (2, 2, 0)
    cache.reset("contents")
    load(cache, 0)
    total = cache.counters.total()
    assert (total.misses, total.compulsory, total.reloads) == (3, 2, 1)


@pytest.mark.rule("XC-RES-022", "XC-RES-013")
def test_history_may_be_reset_between_two_waves_under_every_policy_that_learns() -> None:
    for policy in ("lfu", "lfu-reset"):
        cache = machine(2, policy, overflow="waves")
        first = cache.select(event(0, 1, 2))
        for key in first.reads:
            cache.complete(key)
        cache.release(first.ticket)
        cache.resize(Budget(slots=3))
        assert cache.prefetch(Key(0, 2)) == "started"
        cache.complete(Key(0, 2))
        cache.reset("history")
        assert cache.resume(first).hits == keys(2)


@pytest.mark.rule("XC-RES-013")
def test_each_wave_is_resumed_once_after_its_release_and_never_after_a_reset_of_contents() -> None:
    cache = machine(1, overflow="waves")
    first = cache.select(event(0, 1, 2))
    with pytest.raises(WrongState, match="no wave"):
        cache.resume(first)
    cache.complete(Key(0, 0))
    cache.release(first.ticket)
    second = cache.resume(first)
    cache.complete(Key(0, 1))
    cache.release(second.ticket)
    with pytest.raises(WrongState, match="no wave"):
        cache.resume(first)
    cache.reset("contents")
    with pytest.raises(WrongState, match="no wave"):
        cache.resume(second)
    assert cache.residents() == frozenset()


@pytest.mark.rule("XC-RES-013")
def test_a_wave_that_must_wait_can_be_resumed_later() -> None:
    cache = machine(2, overflow="waves")
    first = cache.select(event(0, 1, 2))
    for key in first.reads:
        cache.complete(key)
    cache.release(first.ticket)
    other = cache.select(event(0, 1, stream=1))
    with pytest.raises(MustWait):
        cache.resume(first)
    cache.release(other.ticket)
    assert cache.resume(first).reads == keys(2)


@pytest.mark.rule("XC-METRIC-004", "XC-RES-013")
def test_a_prefetch_that_a_later_wave_uses_is_useful() -> None:
    cache = machine(2, overflow="waves")
    first = cache.select(event(0, 1, 2))
    for key in first.reads:
        cache.complete(key)
    cache.release(first.ticket)
    cache.resize(Budget(slots=3))
    cache.prefetch(Key(0, 2))
    cache.complete(Key(0, 2))
    assert cache.resume(first).hits == keys(2)
    assert cache.counters.prefetch_useful == 1
    assert audit(cache) == []


@pytest.mark.rule("XC-EVICT-003", "XC-RES-025", "XC-RES-026")
@pytest.mark.parametrize("room", ["reserve", "trim", "retain"])
def test_no_victim_is_chosen_between_the_reads_of_an_event(room: str) -> None:
    cache = machine(3, room=room)
    load(cache, 7, 8, 9)
    selection = cache.select(event(0, 1, 2))
    landed = [cache.complete(key).victims for key in selection.reads]
    ended = cache.release(selection.ticket).victims
    chosen = [selection.victims, *landed, ended]
    assert [len(victims) for victims in chosen] == {
        "reserve": [3, 0, 0, 0, 0],
        "trim": [0, 0, 0, 3, 0],
        "retain": [0, 0, 0, 0, 3],
    }[room]
    assert cache.residents() == set(keys(0, 1, 2))


@pytest.mark.rule("XC-RES-013", "XC-METRIC-001")
def test_a_miss_that_a_later_wave_bypasses_is_counted_as_not_kept() -> None:
    cache = machine(2, overflow="waves", no_victim="bypass")
    first = cache.select(event(0, 1, 2))
    for key in first.reads:
        cache.complete(key)
    cache.release(first.ticket)
    cache.select(event(0, 1, stream=1))
    assert cache.resume(first).bypassed == keys(2)
    row = cache.counters.total()
    assert (row.misses, row.admissions, row.refused, row.bypassed, row.reads) == (3, 2, 1, 0, 3)
    assert audit(cache) == []


@pytest.mark.rule("XC-RES-018", "XC-RES-020", "XC-RES-021")
@pytest.mark.parametrize("given", [(0, 1), [0, 1], 1, None, "01"])
def test_what_is_no_key_is_refused_and_changes_nothing(given: object) -> None:
    """A plain pair is equal to its key, so that it would be found, and then lack its names."""
    cache = machine(4)
    load(cache, 1)
    before = cache.residents(), cache.usage.slots, repr(cache.counters)
    for transition in (cache.pin, cache.unpin, cache.prefetch, lambda key: cache.seed([Key(0, 2), key])):
        with pytest.raises(InvalidModel, match=r"is no Key. Cure: write Key\(layer, expert\)"):
            transition(given)  # type: ignore[arg-type]
    assert (cache.residents(), cache.usage.slots, repr(cache.counters)) == before
    assert not cache.flights
    assert audit(cache) == []


@pytest.mark.rule("XC-RES-020")
def test_more_priorities_than_keys_are_refused_and_install_nothing() -> None:
    cache = machine(4)
    with pytest.raises(InvalidModel, match="more priorities than keys"):
        cache.seed(keys(1), (5, 6))
    assert not cache.flights
    assert cache.seed(keys(1, 2), (5,)).reads == keys(1, 2)
