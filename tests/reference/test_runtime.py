"""The runtime's sentences: leases, waiting, disciplines, prefetches, failures, budgets, its end, its log."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from expertcache_reference.reader import ReadFailed
from expertcache_reference.runtime import Runtime, RuntimeClosed
from expertcache_reference.runtime.batches import steps
from expertcache_reference.system import this_machine
from expertcache_reference.system.seam import Machine
from expertcache_reference.system.simulated import Device, Faults, SimulatedMachine, explore, simulated
from expertcache_spec.errors import (
    EventTooLarge,
    InvalidBudget,
    InvalidModel,
    MustWait,
    NoVictim,
    StillInUse,
    UnknownName,
    WrongState,
)
from expertcache_spec.history import check, read_log
from expertcache_spec.layout.kinds import packed_layers
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.residency import Settings
from expertcache_spec.schedule.disciplines import parse_discipline
from expertcache_spec.trace import Event

from .runtime_programs import (
    PatternStore,
    assert_legal,
    assert_sound,
    consume,
    event,
    pattern,
    residency_of,
    simulation,
    store,
)

ONE = store(layers=1, experts=6)


@contextmanager
def _runtime(found: PatternStore = ONE, slots: int = 4, **options: Any) -> Iterator[tuple[Runtime, Any, list[Any]]]:
    lines: list[dict[str, Any]] = []
    fields = {name: options.pop(name) for name in ("faults", "device", "page") if name in options}
    with simulated(simulation(found, **fields)) as machine:
        with Runtime(
            found, Budget(slots=slots), machine=machine, log=lines.append, **{"workers": 2, **options}
        ) as runtime:  # fmt: skip
            yield runtime, machine, lines
        assert_legal(lines)


def _serve(runtime: Runtime, *experts: int, number: int, stream: int = 0) -> None:
    with runtime.serve(event(0, *experts, number=number, stream=stream)) as work:
        consume(work, {})


def _ops(lines: list[Any], *names: str) -> list[str]:
    return [line["op"] for line in lines if line.get("op") in names]


# ---------------------------------------------------------------------------------------------- leases


@pytest.mark.rule("XC-RES-004", "XC-RES-017")
def test_an_event_planned_ahead_keeps_its_bytes_until_it_has_executed() -> None:
    """Two slots, step A planned and not executed, step B wants both: B is refused, A's bytes are A's."""
    with _runtime(slots=2) as (runtime, _, _):
        first = runtime.serve(event(0, 0, 1), ahead=True)
        views = {key: first.record(key) for batch in first.batches() for key in batch.keys}
        with pytest.raises(MustWait):
            runtime.serve(event(0, 2, 3, number=1), ahead=True)
        assert {key: bytes(view) for key, view in views.items()} == {key: pattern(key, 192) for key in views}
        first.release()
        _serve(runtime, 2, 3, number=1)
        assert runtime.resident() == {Key(0, 2), Key(0, 3)}


@pytest.mark.parametrize("ahead", [True, False])
def test_work_that_is_only_queued_has_executed_when_it_is_released(ahead: bool) -> None:
    with _runtime(discipline="pipelined", workers=3) as (runtime, _, lines):
        work = runtime.serve(event(0, 0, 1, stream=2), ahead=ahead)
        consume(work, {})
        assert _ops(lines, "compute_end") == ["compute_end"] * (0 if ahead else 2)
        work.release()
        said = [line for line in lines if line.get("op") in ("compute_start", "compute_end", "combine")]
        assert [line["op"] for line in said].count("compute_end") == 2
        assert {line["thread"] for line in said} == {3 + 1 + 2}, "workers, one, the stream"


@pytest.mark.rule("XC-RES-004")
def test_with_room_for_both_two_events_are_open_at_once() -> None:
    with _runtime(slots=4) as (runtime, _, _):
        first, second = (
            runtime.serve(event(0, *pair, number=at), ahead=True) for at, pair in enumerate([(0, 1), (2, 3)])
        )
        for work in (first, second):
            consume(work, {})
        first.release()
        second.release()
        assert runtime.report().misses == 4


def test_a_view_ends_with_the_lease() -> None:
    with _runtime() as (runtime, _, _):
        with runtime.serve(event(0, 0, 1)) as work:
            views = [work.record(key) for batch in work.batches() for key in batch.keys]
            with pytest.raises(TypeError):
                views[0][0] = 1
        with pytest.raises(ValueError, match="released"):
            bytes(views[0])
        with pytest.raises(WrongState, match="is not there"):
            work.record(Key(0, 0))


def test_no_record_is_seen_before_its_batch_and_none_of_another_event() -> None:
    with _runtime() as (runtime, _, _), runtime.serve(event(0, 0, 1)) as work:
        for key in (Key(0, 0), Key(0, 5)):
            with pytest.raises(WrongState, match="is not there"):
                work.record(key)
        consume(work, {})


@pytest.mark.rule("XC-RES-017")
def test_an_event_is_released_once_and_its_batches_handed_out_once() -> None:
    with _runtime() as (runtime, _, _):
        work = runtime.serve(event(0, 0, 1))
        consume(work, {})
        with pytest.raises(WrongState, match="once"):
            next(work.batches())
        work.release()
        with pytest.raises(WrongState, match="once"):
            work.release()


def test_a_block_left_by_an_exception_ends_its_lease() -> None:
    with _runtime(slots=2) as (runtime, _, _):

        def give_up() -> None:
            with runtime.serve(event(0, 0, 1)) as work:
                next(work.batches())
                raise KeyError

        with pytest.raises(KeyError):
            give_up()
        _serve(runtime, 2, 3, number=1)
        assert_sound(runtime)


# ---------------------------------------------------------------------------------------------- waiting


@pytest.mark.rule("XC-RES-024")
def test_without_a_legal_victim_a_stream_waits_until_a_release() -> None:
    order: list[str] = []

    def run(machine: Machine) -> None:
        order.clear()
        with Runtime(ONE, Budget(slots=2), machine=machine, workers=1) as runtime:
            first = runtime.serve(event(0, 0, 1))
            consume(first, {})

            def other() -> None:
                with runtime.serve(event(0, 2, 3, stream=1)) as work:
                    order.append("other")
                    consume(work, {})

            thread = machine.spawn("other", other)
            machine.now()
            order.append("release")
            first.release()
            thread.join()
            assert order == ["release", "other"]
            assert runtime.report().waits <= 1

    explore(run, simulation(ONE), schedules=60).check()


@pytest.mark.rule("XC-RES-024")
def test_where_waiting_is_not_wanted_it_is_an_error_and_nothing_has_changed() -> None:
    with _runtime(slots=2) as (runtime, _, _):
        first = runtime.serve(event(0, 0, 1))
        with pytest.raises(MustWait):
            runtime.serve(event(0, 2, stream=1), wait=False)
        consume(first, {})
        first.release()
        assert runtime.resident() == {Key(0, 0), Key(0, 1)}
    refusing = _runtime(slots=2, settings=Settings(no_victim="error"))
    with refusing as (runtime, _, _), runtime.serve(event(0, 0, 1)) as work:
        with pytest.raises(NoVictim):
            runtime.serve(event(0, 2, stream=1))
        consume(work, {})


def test_first_come_first_served_and_nobody_starves() -> None:
    """A large event waits while small ones keep coming; they stand behind it."""
    lines: list[dict[str, Any]] = []
    found = store(layers=1, experts=6, top_k=3)

    def run(machine: SimulatedMachine) -> None:
        lines.clear()
        with Runtime(found, Budget(slots=3), machine=machine, workers=1, log=lines.append) as runtime:
            first = runtime.serve(event(0, 0, stream=9))
            consume(first, {})

            def stream(number: int, *experts: int) -> Callable[[], None]:
                def serve() -> None:
                    with runtime.serve(event(0, *experts, stream=number)) as work:
                        consume(work, {})

                return serve

            threads = []
            for number, experts in enumerate([(1, 2, 3), (4,), (5,)]):
                threads.append(machine.spawn(f"stream-{number}", stream(number, *experts)))
                while runtime.report().waits <= number:
                    machine.spend(1)
            first.release()
            for thread in threads:
                thread.join()
            assert [line["stream"] for line in lines if line.get("op") == "select"] == [9, 0, 1, 2]

    explore(run, simulation(found), schedules=40).check()


@pytest.mark.parametrize("how", ["unpin", "resize"])
def test_who_stands_in_line_is_woken_when_a_pin_ends_and_when_the_budget_grows(how: str) -> None:
    """One of three records is leased, one pinned; the event needs two."""
    with _runtime(slots=3) as (runtime, machine, _):
        _serve(runtime, 1, number=0)
        runtime.pin(Key(0, 1))
        first = runtime.serve(event(0, 0, number=1))
        consume(first, {})
        thread = machine.spawn("other", lambda: _serve(runtime, 2, 3, stream=1, number=0))
        while not runtime.report().waits:
            machine.spend(1)
        runtime.unpin(Key(0, 1)) if how == "unpin" else runtime.resize(Budget(slots=4))
        thread.join()
        first.release()


def test_who_leaves_the_line_with_an_error_lets_the_next_one_try() -> None:
    with _runtime(slots=2) as (runtime, machine, _):
        first = runtime.serve(event(0, 0, 1))
        consume(first, {})

        def large() -> None:
            with pytest.raises(EventTooLarge):
                runtime.serve(event(0, 2, 3, stream=1))

        acts = (large, lambda: _serve(runtime, 0, stream=2, number=0))
        threads = []
        for number, act in enumerate(acts):
            threads.append(machine.spawn(f"stream-{number}", act))
            while runtime.report().waits <= number:
                machine.spend(1)
        runtime.resize(Budget(slots=1))
        for thread in threads:
            thread.join()
        first.release()


# ---------------------------------------------------------------------------------------------- disciplines


@pytest.mark.rule("XC-SCHED-008", "XC-SCHED-010", "XC-SCHED-012")
@pytest.mark.parametrize(
    ("discipline", "expected"),
    [("sync", ["01", "01", "01"]), ("split:1", ["0", "1"]), ("split:2", ["01"]), ("pipelined", ["0", "1"]),
     ("staged", ["0", "", "1"])],
)  # fmt: skip
def test_an_event_is_cut_as_the_discipline_says(discipline: str, expected: list[str]) -> None:
    with _runtime(discipline=discipline) as (runtime, _, _):
        _serve(runtime, 0, number=0)
        with runtime.serve(event(0, 0, 1, number=1)) as work:
            found = ["".join(str(key.expert) for key in batch.keys) for batch in work.batches()]
        assert found == expected[: len(found)]
        assert sum(map(len, found)) == 2


@pytest.mark.rule("XC-SCHED-011")
def test_the_guard_on_tokens_counts_decode_passes_of_the_stream_and_not_its_events() -> None:
    found = store(layers=2, experts=6)
    with _runtime(found, slots=6, discipline=parse_discipline("split", tokens=3)) as (runtime, _, _):
        cut: list[list[int]] = []
        for number in range(4):
            for layer in range(2):
                with runtime.serve(event(layer, 0, number + 1, number=number)) as work:
                    cut.append([len(batch.keys) for batch in work.batches()])
        assert cut == [[2]] * 4 + [[1, 1]] * 4, "the third pass is the first to be split"


@pytest.mark.rule("XC-SCHED-012")
def test_staged_hands_out_gate_and_up_before_any_down_is_read() -> None:
    found = store(layers=1, experts=4, parts={"gate": 64, "up": 64, "down": 64, "down.scales": 16})
    staged = _runtime(found, discipline="staged", workers=1, chunks=1, device=Device(latency=1000))
    with staged as (runtime, _, lines):  # noqa: SIM117
        with runtime.serve(event(0, 0, 1)) as work:
            batches = work.batches()
            first = next(batches)
            assert first.keys == ()
            assert first.gate_up == (Key(0, 0), Key(0, 1))
            ended = [(line["offset"], line["length"]) for line in lines if line.get("op") == "read_end"]
            assert ended == [(0, 128), (0, 128)], "and not one byte of a down"
            for key in first.gate_up:
                assert bytes(work.part(key, "up")) == pattern(key, 208)[64:128]
                for part in ("down", "down.scales"):
                    with pytest.raises(WrongState):
                        work.part(key, part)
                with pytest.raises(WrongState):
                    work.record(key)
            second = next(batches)
            assert second.down == second.keys == first.gate_up
            assert bytes(work.part(Key(0, 1), "down")) == pattern(Key(0, 1), 208)[128:192]
            assert bytes(work.part(Key(0, 1), "down.scales")) == pattern(Key(0, 1), 208)[192:]
            assert next(batches, None) is None


@pytest.mark.rule("XC-SCHED-012")
def test_split_hands_out_residents_while_the_reads_are_in_service() -> None:
    with _runtime(device=Device(latency=10_000), chunks=1) as (runtime, machine, _):
        _serve(runtime, 0, number=0)
        before = machine.now()
        with runtime.serve(event(0, 0, 1, number=1)) as work:
            batches = work.batches()
            assert next(batches).keys == (Key(0, 0),)
            assert machine.now() - before < 10_000, "nobody has waited"
            machine.spend(10_000)
            exposed = runtime.report().exposed
            assert next(batches).keys == (Key(0, 1),)
            report = runtime.report()
            assert report.exposed - exposed < 5_000
            assert report.hidden >= 9_000
            assert 0 < report.hidden <= report.read_wall
            assert next(batches, None) is None


@pytest.mark.rule("XC-SCHED-022")
@pytest.mark.parametrize(
    ("discipline", "workers", "work", "times"),
    [
        ("sync", 1, 0, (20_000, 20_000, 20_000, 0)),  # two reads one after the other, and nobody does anything
        ("sync", 2, 50_000, (10_000, 20_000, 10_000, 0)),  # two at once; the work comes after them
        ("split", 1, 4_000, (16_000, 20_000, 20_000, 4_000)),  # the resident's work under the first read
        ("split", 1, 50_000, (0, 20_000, 20_000, 20_000)),  # everything under the resident's work
        ("pipelined", 1, 4_000, (12_000, 20_000, 20_000, 8_000)),  # and the first record's under the second's read
    ],
)
def test_times_are_booked_to_the_nanosecond(
    discipline: str, workers: int, work: int, times: tuple[int, int, int, int]
) -> None:  # fmt: skip
    """Of one event of a hit and two misses: exposed, busy, wall, hidden; each read takes ten microseconds."""
    three = store(layers=1, experts=6, top_k=3)
    options = {"discipline": discipline, "workers": workers, "chunks": 1, "device": Device(latency=10_000, lanes=2)}
    with _runtime(three, **options) as (runtime, machine, _):
        _serve(runtime, 0, number=0)
        runtime.reset("counters")
        before = runtime.report()
        with runtime.serve(event(0, 0, 1, 2, number=1)) as served:
            for _ in served.batches():
                machine.spend(work)
        after = runtime.report()
        names = ("exposed", "read_busy", "read_wall", "hidden")
        assert tuple(getattr(after, name) - getattr(before, name) for name in names) == times


@pytest.mark.rule("XC-SCHED-012")
def test_pipelined_hands_out_what_lands_first() -> None:
    found = store(layers=1, experts=4, parts={"gate": 64})
    with _runtime(found, discipline="pipelined", faults=Faults(errors={})) as (runtime, _, _):
        assert runtime.prefetch(Key(0, 1)) == "started"
        runtime.settle()
        with runtime.serve(event(0, 0, 1)) as work:
            assert [batch.keys for batch in work.batches()] == [(Key(0, 1),), (Key(0, 0),)]


def test_free_is_a_bound_and_no_way_to_run() -> None:
    with simulated(simulation(ONE)) as machine, pytest.raises(UnknownName, match="bound"):
        Runtime(ONE, Budget(slots=1), discipline="free", machine=machine)


@pytest.mark.parametrize("name", ["sync", "split", "split:3", "staged", "pipelined", "pipelined:2"])
@pytest.mark.parametrize("missing", range(16))
def test_every_cut_names_each_record_once_and_each_stage_once(name: str, missing: int) -> None:
    keys = [Key(0, expert) for expert in range(4)]
    absent = {key for key in keys if missing >> key.expert & 1}
    found = [step.batch for step in steps(parse_discipline(name), keys, absent, 0, 1, 0)]
    for field in ("keys", "gate_up", "down"):
        assert sorted(key for batch in found for key in getattr(batch, field)) == keys


# ---------------------------------------------------------------------------------------------- prefetches and seeds


@pytest.mark.rule("XC-RES-021", "XC-RES-027")
def test_a_demand_joins_a_prefetch_and_it_counts_as_late() -> None:
    with _runtime(workers=1, device=Device(latency=1000)) as (runtime, _, lines):
        assert [runtime.prefetch(Key(0, expert)) for expert in (3, 4, 0)] == ["started"] * 3
        assert runtime.prefetch(Key(0, 0)) == "in-flight"
        _serve(runtime, 0, number=0)
        counters = residency_of(runtime).counters
        starts = [line["key"][1] for line in lines if line.get("op") == "read_start"]
        assert starts[0] == 0, "promoted before those in front of it"
        runtime.settle()
        assert (counters.prefetch_late, runtime._core.reader.counts.records) == (1, 3)
        assert runtime.prefetch(Key(0, 0)) == "resident"
        states = [line["state"] for line in lines if line.get("op") == "prefetch" and line["key"] == [0, 0]]
        assert states == ["reading", "late", "adopted"]


@pytest.mark.rule("XC-RES-021")
def test_prefetches_take_free_room_only_and_demand_still_gets_its_own() -> None:
    """Four slots, sixty-four requests: what is in flight never exceeds the room, and demand is served."""
    found = store(layers=1, experts=64, top_k=2)
    with _runtime(found, slots=6, workers=1, device=Device(latency=100)) as (runtime, _, _):
        _serve(runtime, 0, 1, number=0)
        outcomes = [runtime.prefetch(Key(0, expert)) for expert in range(2, 64)]
        assert outcomes.count("started") == 4
        assert outcomes.count("refused") == 58
        _serve(runtime, 62, 63, number=1)
        assert runtime.resident() >= {Key(0, 62), Key(0, 63)}


@pytest.mark.rule("XC-RES-016")
def test_a_prefetch_that_fails_leaves_nothing_and_a_demand_reads_again() -> None:
    with _runtime(faults=Faults(errors={1: errno.EIO})) as (runtime, _, lines):
        runtime.prefetch(Key(0, 5))
        runtime.settle()
        assert not residency_of(runtime).flights
        assert runtime.resident() == frozenset()
        _serve(runtime, 5, number=0)
        assert residency_of(runtime).counters.prefetch_failed == 1
        assert [line["state"] for line in lines if line.get("op") == "prefetch"] == ["reading", "failed"]


@pytest.mark.rule("XC-RES-020")
def test_seeds_fill_free_room_in_list_order() -> None:
    with _runtime(slots=2) as (runtime, _, _):
        seeded = runtime.seed([Key(0, 3), Key(0, 99), Key(0, 3), Key(0, 1), Key(0, 2)], [7])
        runtime.settle()
        assert seeded == ((Key(0, 3), Key(0, 1)), 1, 1, 1)
        with pytest.raises(InvalidModel, match="is no Key"):
            runtime.seed([(0, 1)])  # type: ignore[list-item]
        with pytest.raises(InvalidModel, match="priorities"):
            runtime.seed([], [1])
        _serve(runtime, 3, 1, number=0)
        assert (runtime.report().hits, runtime.report().seeds) == (2, 2)


# ---------------------------------------------------------------------------------------------- failures


@pytest.mark.rule("XC-RES-016")
def test_what_can_be_read_is_handed_out_before_the_error_and_the_retry_reads_the_rest() -> None:
    with _runtime(workers=1, faults=Faults(errors={1: errno.EIO})) as (runtime, _, _):
        handed: list[Key] = []
        with runtime.serve(event(0, 0, 1)) as work:
            batches = work.batches()
            handed += next(batches).keys
            with pytest.raises(ReadFailed, match="OSError"):
                next(batches)
        assert handed == [Key(0, 1)]
        assert list(work.failed) == [Key(0, 0)]
        _serve(runtime, 0, 1, number=0)
        assert (runtime.report().hits, runtime.report().failed) == (1, 1)
        assert_sound(runtime)


@pytest.mark.rule("XC-RES-016")
def test_a_failed_read_of_a_record_that_is_not_kept_counts_once_until_counters_are_reset() -> None:
    with _runtime(slots=0, workers=1, chunks=1, faults=Faults(errors={1: errno.EIO})) as (runtime, _, _):
        with runtime.serve(event(0, 0, 1)) as work, pytest.raises(ReadFailed):
            list(work.batches())
        assert runtime.report().failed == 1
        runtime.reset("counters")
        assert runtime.report().failed == 0


@pytest.mark.rule("XC-RES-016")
def test_a_failed_read_reaches_every_stream_that_joined_it() -> None:
    told: list[int] = []

    def run(machine: Machine) -> None:
        told.clear()
        with Runtime(ONE, Budget(slots=2), machine=machine, workers=1) as runtime:
            works = [runtime.serve(event(0, 0, stream=stream)) for stream in (0, 1)]

            def look(number: int) -> None:
                with works[number] as work:
                    try:
                        list(work.batches())
                    except ReadFailed:
                        told.append(number)

            thread = machine.spawn("other", lambda: look(1))
            look(0)
            thread.join()
            assert sorted(told) == [0, 1]
            assert_sound(runtime)

    explore(
        run, simulation(ONE, faults=Faults(errors={1: errno.EIO}), device=Device(latency=100_000)), schedules=1
    ).check()


# ---------------------------------------------------------------------------------------------- budgets


@pytest.mark.rule("XC-RES-012")
def test_an_event_that_does_not_fit_is_refused_before_anything_changes() -> None:
    with _runtime(slots=1) as (runtime, _, _):
        with pytest.raises(EventTooLarge):
            runtime.serve(event(0, 0, 1))
        assert runtime.report().requests == 0
        _serve(runtime, 0, number=0)


@pytest.mark.rule("XC-RES-014")
@pytest.mark.parametrize("overflow", ["error", "bypass", "waves"])
def test_without_capacity_everything_is_served_and_nothing_kept(overflow: Any) -> None:
    with _runtime(slots=0, settings=Settings(overflow=overflow)) as (runtime, _, _):
        for number in range(3):
            _serve(runtime, 0, 1, number=number)
        report = runtime.report()
        assert (report.bypassed, report.peak_slots, report.application_bytes) == (6, 0, 6 * 192)
        assert report.peak_scratch == 2 * 192
        assert runtime.resident() == frozenset()


@pytest.mark.rule("XC-RES-013")
def test_waves_hand_out_every_record_within_the_budget() -> None:
    with _runtime(slots=1, settings=Settings(overflow="waves")) as (runtime, _, lines):
        _serve(runtime, 0, 1, number=0)
        assert _ops(lines, "select", "resume", "release") == ["select", "release", "resume", "release"]
        assert runtime.report().peak_slots == 192


def test_slots_of_several_sizes_stay_within_the_bytes_of_the_budget() -> None:
    """The free slots of small records are given back where a large one needs their bytes."""
    found = store(layers=2, experts=6, parts=[{"gate": 640}, {"gate": 6400}])
    with simulated(simulation(found)) as machine, Runtime(found, Budget(bytes=6400), machine=machine) as runtime:
        for layer, experts in ((0, (0, 1)), (0, (2, 3)), (0, (4, 5)), (1, (0,)), (1, (1,)), (0, (0, 1))):
            with runtime.serve(event(layer, *experts)) as work:
                consume(work, {})
        rounding = 10 * 63  # of the most records that fit, to pages of 64 bytes
        assert 6400 <= runtime.report().peak_slots <= 6400 + rounding


def test_between_events_scratch_memory_is_that_of_one_token() -> None:
    with _runtime(slots=0) as (runtime, _, _):
        with runtime.serve(Event(0, ((0, 1), (2, 3), (4, 5)), 0, 0, "prefill")) as work:
            consume(work, {})
        assert runtime.report().peak_scratch == 6 * 192
        assert runtime._core.scratch.bytes == ONE.geometry.top_k * 192


@pytest.mark.rule("XC-RES-011")
def test_a_smaller_budget_holds_at_once_but_for_what_is_leased() -> None:
    with _runtime(slots=4) as (runtime, _, _):
        _serve(runtime, 0, 1, number=0)
        with runtime.serve(event(0, 2, 3, number=1)) as work:
            assert runtime.resize(Budget(slots=1)) == (Key(0, 0), Key(0, 1))
            consume(work, {})
        assert len(runtime.resident()) == 1
        assert runtime.resize(Budget(slots=3)) == ()
        _serve(runtime, 4, 5, number=2)
        assert len(runtime.resident()) == 3


@pytest.mark.rule("XC-RES-018", "XC-RES-019")
def test_a_pinned_record_stays() -> None:
    with _runtime(slots=3) as (runtime, _, _):
        _serve(runtime, 0, number=0)
        runtime.pin(Key(0, 0))
        for number, pair in enumerate([(1, 2), (3, 4), (5, 1)], 1):
            _serve(runtime, *pair, number=number)
        assert Key(0, 0) in runtime.resident()
        runtime.unpin(Key(0, 0))
        _serve(runtime, 2, 3, number=4)
        assert Key(0, 0) not in runtime.resident()
        with pytest.raises(WrongState, match="not resident"):
            runtime.pin(Key(0, 0))


@pytest.mark.rule("XC-RES-022", "XC-RES-023")
def test_after_contents_are_reset_or_another_model_is_bound_nothing_is_a_hit() -> None:
    with _runtime() as (runtime, _, _):
        _serve(runtime, 0, 1, number=0)
        runtime.reset("contents")
        _serve(runtime, 0, 1, number=1)
        runtime.rebind(ONE)
        _serve(runtime, 0, 1, number=2)
        assert (runtime.report().misses, runtime.report().hits) == (4, 2), "the same model stays"
        runtime.rebind(attrs.evolve(ONE, fingerprint="another"))
        _serve(runtime, 0, 1, number=3)
        assert runtime.report().misses == 6
        with runtime.serve(event(0, 0, 1, number=4)) as work:
            with pytest.raises(StillInUse):
                runtime.reset("contents")
            consume(work, {})
        with pytest.raises(InvalidModel, match="another geometry"):
            runtime.rebind(store(layers=1, experts=7))


def test_a_store_whose_charge_is_not_what_would_be_read_is_refused() -> None:
    shape = ONE.layout.shape
    lying = attrs.evolve(ONE, geometry=Geometry(1, 6, 2, (100,)))
    cut = attrs.evolve(ONE, layout=attrs.evolve(packed_layers(shape), place=lambda key: ONE.layout.place(key)[:2]))
    with simulated(simulation(ONE)) as machine:
        for found in (lying, cut):
            with pytest.raises(InvalidModel):
                Runtime(found, Budget(slots=1), machine=machine)


# ---------------------------------------------------------------------------------------------- the end, the log


def test_a_closed_runtime_refuses_and_open_work_keeps_its_bytes() -> None:
    with simulated(simulation(ONE)) as machine:
        lines: list[dict[str, Any]] = []
        runtime = Runtime(ONE, Budget(slots=3), machine=machine, workers=1, log=lines.append)
        work = runtime.serve(event(0, 0, 1))
        batch = next(work.batches())
        runtime.prefetch(Key(0, 3))
        runtime.close()
        assert all(bytes(work.record(key)) == pattern(key, 192) for key in batch.keys)
        for act in (lambda: runtime.serve(event(0, 1)), lambda: runtime.prefetch(Key(0, 1)),
                    lambda: runtime.seed([Key(0, 1)]), lambda: runtime.resize(Budget(slots=1)),
                    lambda: runtime.reset("contents"), lambda: runtime.pin(Key(0, 1))):  # fmt: skip
            with pytest.raises(RuntimeClosed):
                act()
        assert lines[-1]["op"] != "end"
        work.release()
        assert lines[-1]["op"] == "end"
        assert_legal(lines)


def test_a_log_on_disk_is_read_back_and_legal(tmp_path: Path) -> None:
    found = store(layers=2, experts=4, folder=tmp_path).write()
    path = tmp_path / "run.jsonl"
    with Runtime(found, Budget(slots=3), machine=this_machine(), workers=2, log=path) as runtime:
        for number in range(3):
            for layer in range(2):
                with runtime.serve(event(layer, number, 3, number=number)) as work:
                    consume(work, {})
        report = runtime.report()
    assert report.hit_rate is not None
    with path.open("rb") as file:
        header, lines = read_log(file, str(path))
        assert check(header, lines).answer == "legal"
    clocks = [json.loads(line).get("clock", 0) for line in path.read_text().splitlines()]
    assert clocks == sorted(clocks)


def test_without_a_log_no_line_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    from expertcache_reference.runtime.journal import Journal

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a line, and nobody asked for a log")

    monkeypatch.setattr(Journal, "__init__", never)
    monkeypatch.setattr(Journal, "say", never)
    with simulated(simulation(ONE)) as machine, Runtime(ONE, Budget(slots=3), machine=machine, workers=2) as runtime:
        runtime.prefetch(Key(0, 5))
        for number in range(4):
            _serve(runtime, number, 5, number=number)
        runtime.resize(Budget(slots=1))


def test_what_is_not_of_its_kind_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    for wrong, error in (
        ({"store": None}, InvalidModel), ({"budget": 5}, InvalidBudget), ({"budget": None}, InvalidBudget),
        ({"discipline": None}, UnknownName), ({"chunks": 0}, InvalidModel), ({"chunks": -3}, InvalidModel),
        ({"workers": 257}, InvalidModel), ({"log": 5}, InvalidModel),
    ):  # fmt: skip
        given: dict[str, Any] = {"store": ONE, "budget": Budget(slots=2), "log": tmp_path / "log.jsonl", **wrong}
        with pytest.raises(error):
            Runtime(**given)
    assert list(tmp_path.iterdir()) == []
    with _runtime() as (runtime, _, _):
        unknown: Any = runtime
        with pytest.raises(InvalidModel, match="None is no Event"):
            unknown.serve(None)
        with pytest.raises(InvalidBudget, match="5 is no Budget"):
            unknown.resize(5)
        with runtime.serve(event(0, 1)) as work:
            handed: Any = work
            for _ in work.batches():
                with pytest.raises(WrongState, match="is no Key"):
                    handed.record((0, 1))


def test_a_log_may_be_named_by_text(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("the former")
    with (
        simulated(simulation(ONE)) as machine,
        Runtime(ONE, Budget(slots=2), machine=machine, log=str(path)) as runtime,
    ):
        _serve(runtime, 0, number=0)
    with path.open("rb") as file:
        header, lines = read_log(file)
        assert check(header, iter(list(lines))).answer == "legal"


def test_the_clock_of_a_log_may_count(tmp_path: Path) -> None:
    ticks = iter(range(10_000))
    lines: list[dict[str, Any]] = []
    with (
        simulated(simulation(ONE)) as machine,
        Runtime(ONE, Budget(slots=3), machine=machine, log=lines.append, clock=lambda: next(ticks)) as runtime,
    ):
        _serve(runtime, 0, 1, number=0)
    assert [line["clock"] for line in lines[1:]] == list(range(1, len(lines)))


def test_an_all_hit_event_never_waits_and_asks_the_system_for_nothing() -> None:
    with _runtime(slots=2) as (runtime, machine, _):
        _serve(runtime, 0, 1, number=0)
        before, reads = runtime.report(), machine.injector.reads
        for number in range(1, 50):
            _serve(runtime, 0, 1, number=number)
        after = runtime.report()
        assert (after.exposed, after.waits, machine.injector.reads) == (before.exposed, 0, reads)
        assert after.hits == before.hits + 98


@pytest.mark.rule("XC-METRIC-001")
def test_application_and_device_bytes_are_apart() -> None:
    found = attrs.evolve(ONE)
    for says in (True, False):
        with (
            simulated(simulation(found, says=says, warm=tuple(found.files()))) as machine,
            Runtime(found, Budget(slots=3), machine=machine) as runtime,
        ):
            _serve(runtime, 0, 1, number=0)
            report = runtime.report()
            assert report.application_bytes == 2 * 192
            assert report.device_bytes == (0 if says else None)
            assert report.overlap is None or 0 <= report.overlap <= 1


@pytest.mark.rule("XC-TRACE-003")
def test_a_row_of_more_than_top_k_experts_is_refused_and_changes_nothing() -> None:
    with _runtime() as (runtime, _, lines):
        before = len(lines)
        with pytest.raises(InvalidModel, match="3 experts in one row, top_k is 2"):
            runtime.serve(event(0, 0, 1, 2))
        with pytest.raises(InvalidModel, match="no Event"):
            runtime.serve(None)  # type: ignore[arg-type]
        assert len(lines) == before
        _serve(runtime, 0, 1, number=0)


@pytest.mark.parametrize("wrong", [{"layout": None}, {"geometry": None}, {"folder": "/model"}, {"fingerprint": 7}])
def test_a_store_that_is_none_is_refused_when_it_is_given(wrong: dict[str, Any]) -> None:
    found: Any = SimpleNamespace(
        **{"layout": ONE.layout, "geometry": ONE.geometry, "folder": ONE.folder, "fingerprint": "other", **wrong}
    )
    (name,) = wrong
    with simulated(simulation(ONE)) as machine, pytest.raises(InvalidModel, match=f"is no store: its {name} is"):
        Runtime(found, Budget(slots=1), machine=machine)
    with _runtime() as (runtime, _, _), pytest.raises(InvalidModel, match=f"is no store: its {name} is"):
        runtime.rebind(found)
