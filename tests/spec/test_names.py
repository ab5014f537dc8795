"""Names and values that do not exist are refused with the known ones (XC-EVICT-001, XC-EVICT-052)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from expertcache_spec import engines
from expertcache_spec.errors import NeedsFuture, UnknownName
from expertcache_spec.eviction import POLICIES, card, make
from expertcache_spec.model import Budget, Geometry
from expertcache_spec.replay import Replay, run_event
from expertcache_spec.residency import SETTINGS, Residency, Settings
from expertcache_spec.trace import Event, decode_trace

TRACE = decode_trace([[0], [1]])


@pytest.mark.rule("XC-EVICT-001")
@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda: card("lur"), id="policy"),
        pytest.param(lambda: Replay(TRACE, "lur", Budget(slots=1)), id="policy of a replay"),
        pytest.param(lambda: make("lru", "declaritive"), id="form"),  # type: ignore[arg-type]
        pytest.param(lambda: Replay(TRACE, "lru", Budget(slots=1), form="index"), id="form of a replay"),  # type: ignore[arg-type]
        pytest.param(lambda: Replay(TRACE, "lru", Budget(slots=1), mode="batch"), id="mode"),  # type: ignore[arg-type]
        pytest.param(lambda: Budget(slots=1).split("layers", Geometry(1, 1, 1)), id="scope"),  # type: ignore[arg-type]
        pytest.param(lambda: engines.profile("bigmoe"), id="profile"),
    ],
)
def test_an_unknown_name_is_refused_and_the_known_ones_are_listed(ask: Any) -> None:
    with pytest.raises(UnknownName, match="one of "):
        ask()


@pytest.mark.rule("XC-EVICT-001")
@pytest.mark.parametrize("name", SETTINGS)
def test_an_unknown_setting_is_refused_and_the_known_ones_are_listed(name: str) -> None:
    with pytest.raises(UnknownName) as refusal:
        Settings(**{name: "lur"})
    assert all(value in refusal.value.cure for value in SETTINGS[name])


@pytest.mark.rule("XC-EVICT-001")
def test_the_first_known_value_of_each_setting_is_its_default() -> None:
    assert attrs.asdict(Settings()) == {name: values[0] for name, values in SETTINGS.items()}


@pytest.mark.rule("XC-EVICT-051")
@pytest.mark.parametrize("policy", [name for name, found in POLICIES.items() if not found.can_refuse])
def test_admission_refusable_needs_a_policy_that_can_refuse(policy: str) -> None:
    with pytest.raises(UnknownName, match="cannot refuse"):
        Residency(TRACE.geometry, Budget(slots=1), make(policy), Settings(admission="refusable"))


@pytest.mark.rule("XC-EVICT-051", "XC-EVICT-001")
def test_admission_refusable_is_undefined_under_room_trim() -> None:
    with pytest.raises(UnknownName, match="room trim"):
        Replay(TRACE, "belady", Budget(slots=1), Settings(room="trim", admission="refusable"))


@pytest.mark.rule("XC-EVICT-052")
@pytest.mark.parametrize("form", ["indexed", "declarative"])
def test_an_offline_policy_without_a_future_is_refused(form: Any) -> None:
    with pytest.raises(NeedsFuture, match="future"):
        make("belady", form)


@pytest.mark.rule("XC-EVICT-052")
@pytest.mark.parametrize("form", ["indexed", "declarative"])
def test_an_offline_policy_refuses_an_event_that_its_future_does_not_have_next(form: Any) -> None:
    trace = decode_trace([[0], [1], [2]])
    cache = Residency(trace.geometry, Budget(slots=1), make("belady", form, trace.events))
    first, second, third = trace.events
    run_event(cache, first)
    for wrong in (first, third, attrs.evolve(second, stream=1)):
        with pytest.raises(NeedsFuture, match="does not have this event next"):
            cache.select(wrong)
    assert cache.counters.total().lookups == 1
    run_event(cache, attrs.evolve(second))
    run_event(cache, third)
    with pytest.raises(NeedsFuture, match="does not have this event next"):
        cache.select(third)


@pytest.mark.rule("XC-EVICT-052")
@pytest.mark.parametrize("form", ["indexed", "declarative"])
def test_the_layers_of_concurrent_streams_may_begin_in_another_order_than_foreseen(form: Any) -> None:
    events = [Event(layer, ((layer,),), stream) for stream in (0, 1) for layer in (0, 1)]
    cache = Residency(Geometry(2, 2, 1), Budget(slots=2), make("belady", form, events))
    for event in (events[1], events[0], events[2], events[3]):
        run_event(cache, event)
    assert cache.counters.total().hits == 2


@pytest.mark.rule("XC-EVICT-052", "XC-RES-022")
@pytest.mark.parametrize("form", ["indexed", "declarative"])
def test_an_offline_policy_keeps_its_place_in_the_future_over_a_reset_of_contents(form: Any) -> None:
    trace = decode_trace([[0], [1], [0], [2], [1]])
    cache = Residency(trace.geometry, Budget(slots=2), make("belady", form, trace.events))
    for event in trace.events[:2]:
        run_event(cache, event)
    cache.reset("contents")
    victims = [run_event(cache, event).victims for event in trace.events[2:]]
    assert victims == [(), (), ((0, 0),)]
