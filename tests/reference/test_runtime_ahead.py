"""Prefetch around a runtime: what is guessed is read behind all demand, booked by its end, and legal in the log."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
import pytest

from expertcache_reference.runtime import Ahead, Runtime
from expertcache_reference.system.simulated import Device, Faults, simulated
from expertcache_spec.errors import InvalidTrace, NeedsFuture, UnknownName
from expertcache_spec.eviction import POLICIES
from expertcache_spec.model import Budget, Key
from expertcache_spec.prefetch import Prefetch
from expertcache_spec.trace import Event

from .runtime_programs import assert_legal, assert_sound, consume, event, pattern, simulation, store

TWO = store(layers=2, experts=8)
SLOW = Device(latency=50_000, bandwidth=10**9, lanes=2)


@contextmanager
def _ahead(
    prefetch: Prefetch, slots: int = 8, *, future: Sequence[Event] = (), **options: Any
) -> Iterator[tuple[Ahead, Any]]:  # fmt: skip
    lines: list[dict[str, Any]] = []
    faults = {name: options.pop(name) for name in ("faults", "device") if name in options}
    with simulated(simulation(TWO, **faults)) as machine:
        with Runtime(
            TWO, Budget(slots=slots), machine=machine, log=lines.append, **{"workers": 2, **options}
        ) as runtime:  # fmt: skip
            yield Ahead(runtime, prefetch, future), machine
            runtime.settle()
            assert_sound(runtime, Budget(slots=slots))
        assert_legal(lines)


def _serve(ahead: Ahead, found: Event) -> tuple[Key, ...]:
    """The hits of the event, whose every byte is looked at."""
    with ahead.serve(found) as work:
        hits = work.wave.selection.hits
        for batch in work.batches():
            for key in batch.keys:
                assert bytes(work.record(key)) == pattern(key, TWO.geometry.size(key.layer))
    return hits


def _slot(name: str, **options: Any) -> Prefetch:
    return Prefetch(name, home="slot", **options)


def _looking(layer: int, *experts: int, then: int, **where: int) -> Event:
    """An event whose hidden state says what the next layer will ask for."""
    scores = tuple(1.0 if expert == then else 0.0 for expert in range(8))
    return attrs.evolve(event(layer, *experts, **where), lookahead=((scores,),))


@pytest.mark.rule("XC-PREFETCH-001")
@pytest.mark.parametrize(("slots", "reads"), [(3, True), (8, False)])
def test_what_the_latest_pass_asked_for_is_read_again_where_the_cache_holds_no_pass(slots: int, reads: bool) -> None:
    with _ahead(_slot("previous-token", displace="any"), slots=slots) as (ahead, _):
        for found in (event(0, 0, 1), event(1, 0, 1), event(0, 2, 3, number=1), event(1, 4, 5, number=1)):
            _serve(ahead, found)
            ahead.runtime.settle()
        counts = ahead.counts
        assert (counts.issued > 0) == reads
        assert (counts.duplicate == counts.predictions > 0) != reads
        assert counts.broken() == []


@pytest.mark.rule("XC-PREFETCH-003", "XC-PREFETCH-012", "XC-PREFETCH-013")
def test_a_record_that_a_gate_names_is_a_hit_when_its_layer_runs_and_counts_as_a_miss_recalled() -> None:
    with _ahead(_slot("gate-top-k", parameters={"overfetch": 0.5})) as (ahead, _):
        _serve(ahead, _looking(0, 0, 1, then=5))
        ahead.runtime.settle()
        assert _serve(ahead, _looking(1, 5, 6, then=7)) == (Key(1, 5),)
        counts = ahead.counts
        assert (counts.issued, counts.useful, counts.missing, counts.missing_recalled) == (2, 1, 2, 1)
        assert (counts.routes, counts.routes_recalled, counts.outstanding) == (2, 1, 1)
        assert counts.broken() == []


@pytest.mark.rule("XC-EVICT-202", "XC-HIST-010")
@pytest.mark.parametrize("displace", ["nothing", "any"])
@pytest.mark.parametrize("renews", [False, True])
def test_a_guess_of_what_is_there_renews_it_where_the_policy_does_and_the_log_stays_legal(
    renews: bool, displace: str
) -> None:
    # Key (1, 3) is the stalest when the gate names it, and stream 1 then needs room before it is asked for.
    policy = f"least-stale:prefetch_renews={str(renews).lower()}"
    guess = _slot("gate-top-k", parameters={"overfetch": 0.5}, displace=displace)
    with _ahead(guess, slots=3, policy=policy) as (ahead, _):
        first, second = event_pair(1, 3), event_pair(1, 5, stream=1)
        for found in (_looking(0, 0, then=3), first, _looking(0, 4, then=3, stream=1),
                      _looking(0, 0, then=3, number=1), second):  # fmt: skip
            _serve(ahead, found)
            ahead.runtime.settle()
        assert (_serve(ahead, attrs.evolve(first, pass_index=1)) == (Key(1, 3),)) is renews


@pytest.mark.rule("XC-PREFETCH-014")
def test_demand_that_meets_a_speculative_read_joins_it_and_nothing_is_read_twice() -> None:
    with _ahead(_slot("gate-top-k", parameters={"overfetch": 0.5}), device=SLOW) as (ahead, _):
        _serve(ahead, _looking(0, 0, 1, then=5))
        assert _serve(ahead, _looking(1, 5, 6, then=0)) == ()
        assert ahead.counts.late == 1
        assert ahead.runtime.report().application_bytes == 4 * 192


@pytest.mark.rule("XC-PREFETCH-015")
def test_a_read_that_has_not_begun_when_its_target_passes_is_given_up_and_the_log_stays_legal() -> None:
    with _ahead(_slot("gate-percentile", parameters={"pool": "fixed", "threshold": 0.5}), 8, device=SLOW, workers=1,
                discipline="pipelined") as (ahead, _):  # fmt: skip
        first = ahead.serve(_looking(0, 0, 1, then=5))
        second = ahead.serve(_looking(1, 6, 7, then=2))  # the reads of both events are in the queue before key 5
        assert ahead.counts.cancelled == 1
        assert ahead.counts.bytes == 192 * ahead.counts.issued > 0, "as if the one had not been issued"
        for work in (first, second):
            consume(work, {})
            work.release()
        assert Key(1, 5) not in ahead.runtime.resident()
        assert ahead.counts.broken() == []


def test_reads_that_are_under_way_take_room_in_the_queue() -> None:
    with _ahead(_slot("gate-top-k", parameters={"overfetch": 0.5}, queue=1), device=SLOW) as (ahead, _):
        works = [ahead.serve(_looking(0, 0, 1, then=5 + stream, stream=stream)) for stream in (0, 1)]
        assert (ahead.counts.issued, ahead.counts.refused) == (1, 1)
        for work in works:
            consume(work, {})
            work.release()
        ahead.runtime.settle()
        _serve(ahead, _looking(0, 0, 1, then=7, stream=2))
        assert (ahead.counts.issued, ahead.counts.refused) == (2, 1)


@pytest.mark.rule("XC-PREFETCH-008")
@pytest.mark.parametrize(("displace", "evicted"), [("nothing", 0), ("stale", 1), ("any", 1)])
def test_what_a_guess_may_displace_is_declared(displace: str, evicted: int) -> None:
    options = {"displace": displace, "parameters": {"overfetch": 0.5}, "idle": 1}
    with _ahead(_slot("gate-top-k", **options), slots=4) as (ahead, _):
        _serve(ahead, event_pair(0, 0, 1))  # streams of their own, each at its first layer
        _serve(ahead, event_pair(0, 2, 3, stream=1))
        ahead.runtime.settle()
        before = ahead.runtime.resident()
        _serve(ahead, _looking(0, 2, 3, then=5, stream=2))
        ahead.runtime.settle()
        assert ahead.counts.evicted == evicted
        assert (Key(1, 5) in ahead.runtime.resident()) == bool(evicted)
        assert {Key(0, 2), Key(0, 3)} <= ahead.runtime.resident() & before


def event_pair(layer: int, *experts: int, stream: int = 0) -> Event:
    """An event that looks ahead and sees nothing: every gate names expert 0, which no test of room asks for."""
    return attrs.evolve(event(layer, *experts, stream=stream), lookahead=())


@pytest.mark.rule("XC-PREFETCH-006")
def test_the_oracle_makes_every_event_but_the_first_a_hit_where_reads_take_no_time() -> None:
    events = [event(layer, (3 * number + layer) % 8, (3 * number + layer + 1) % 8, number=number)
              for number in range(12) for layer in (0, 1)]  # fmt: skip
    with _ahead(_slot("oracle", displace="any"), slots=6, future=events) as (ahead, _):
        for found in events:
            _serve(ahead, found)
            ahead.runtime.settle()
        report, counts = ahead.runtime.report(), ahead.counts
        assert report.misses == 2
        assert counts.useful == counts.issued
        assert counts.wasted == 0 == counts.outstanding
        assert counts.broken() == []


@pytest.mark.parametrize("policy", ["lru", "least-stale", "lfu"])
def test_whatever_the_policy_every_byte_is_right_and_the_counts_add_up(policy: str) -> None:
    assert policy in POLICIES
    events = [_looking(layer, (5 * number + layer) % 8, (number * number + layer + 3) % 8 if
                       (number * number + layer + 3) % 8 != (5 * number + layer) % 8 else (5 * number + layer + 1) % 8,
                       then=(5 * number + layer + 1) % 8, number=number)
              for number in range(20) for layer in (0, 1)]  # fmt: skip
    for displace in ("nothing", "stale", "any"):
        asked = _slot("gate-top-k", displace=displace, lookahead=1)
        with _ahead(asked, slots=5, policy=policy, device=SLOW) as (ahead, _):
            for found in events:
                _serve(ahead, found)
            ahead.runtime.settle()
            counts, report = ahead.counts, ahead.runtime.report()
            assert counts.broken() == []
            assert report.hits + report.misses == 2 * len(events)
            assert report.prefetched >= counts.useful
            assert displace == "nothing" or counts.issued


def test_a_speculative_read_that_fails_is_wasted_and_the_record_is_read_again_on_demand() -> None:
    wrong = Faults(errors={5: errno.EIO})  # two records of two parts, then what is speculative
    with _ahead(_slot("gate-top-k", parameters={"overfetch": 0.5}), faults=wrong, chunks=2) as (ahead, _):
        _serve(ahead, _looking(0, 0, 1, then=5))
        ahead.runtime.settle()
        assert ahead.runtime.report().failed == 1
        assert _serve(ahead, _looking(1, 5, 6, then=3)) == ()
        counts = ahead.counts
        assert (counts.wasted, counts.useful, counts.bytes_wasted) == (1, 0, 192)
        assert counts.broken() == []


@pytest.mark.parametrize(
    ("prefetch", "error", "word"),
    [
        (Prefetch("previous-token", cap=Budget(slots=2)), UnknownName, "home staging"),
        (_slot("previous-token", stamps=False), UnknownName, "stamps False"),
        (_slot("previous-token", latency=2), UnknownName, "latency 2"),
        (_slot("previous-token", width=3), UnknownName, "width 3"),
        (_slot("oracle"), NeedsFuture, "to come"),
    ],
)
def test_what_a_runtime_cannot_do_is_refused_by_name(prefetch: Prefetch, error: type[Exception], word: str) -> None:
    with _ahead(_slot("none")) as (ahead, _), pytest.raises(error, match=word):
        Ahead(ahead.runtime, prefetch)


def test_an_event_that_the_predictor_refuses_is_released() -> None:
    with _ahead(_slot("gate-top-k")) as (ahead, _):
        with pytest.raises(InvalidTrace, match="lookahead"):
            ahead.serve(event(0, 0, 1))
        assert _serve(ahead, _looking(0, 0, 1, then=2)) == (Key(0, 0), Key(0, 1))
