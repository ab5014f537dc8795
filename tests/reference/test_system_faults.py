"""Every fault knob does what it says, over files in memory and over real ones; virtual time and the page cache."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from expertcache_reference.system import this_machine
from expertcache_reference.system.seam import File
from expertcache_reference.system.simulated import (
    DARWIN,
    Device,
    Faults,
    FaultyMachine,
    RunFailed,
    SimulatedMachine,
    Simulation,
    exhaust,
    run,
    simulated,
)
from expertcache_reference.system.simulated.faults import BEYOND
from expertcache_reference.system.simulated.schedules import Replay

from .simulated_programs import FILES, joined

DATA = FILES["data"]


@contextmanager
def faulty(real: bool, folder: Path, **knobs: Any) -> Iterator[tuple[File, Any]]:
    """The file with those faults, and the machine that has them."""
    faults = Faults(**knobs)
    if real:
        (folder / "data").write_bytes(DATA)
        machine = FaultyMachine(this_machine(), faults)
        file = machine.open(folder / "data")
        yield file, machine
        file.close()
    else:
        with simulated(Simulation({str(folder / "data"): DATA}, faults=faults)) as machine:
            file = machine.open(folder / "data")
            yield file, machine
            file.close()


@pytest.fixture(params=[True, False], ids=["real", "simulated"])
def real(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_so_many_bytes_a_call_and_no_more(real: bool, tmp_path: Path) -> None:
    with faulty(real, tmp_path, bytes_per_call=7) as (file, machine):
        memory, got, calls = machine.memory(96), 0, 0
        while got < 96:
            got += file.read_into(memory[got:], 100 + got)
            calls += 1
        assert (calls, memory) == (14, DATA[100:196])


def test_a_request_above_the_limit_is_cut_on_linux_and_refused_on_darwin(real: bool, tmp_path: Path) -> None:
    with faulty(real, tmp_path, most_per_read=64) as (file, machine):
        memory = machine.memory(100)
        assert machine.most_per_read == 64
        assert file.read_into(memory, 0) == 64
        assert file.readv_into([memory[:40], memory[40:80]], 0) == 64
        assert (memory[:64], memory[64:]) == (DATA[:64], bytes(36))
    with faulty(real, tmp_path, most_per_read=64, over_limit="refuse") as (file, machine):
        memory = machine.memory(100)
        for views in ([memory], [memory[:40], memory[40:80]]):
            with pytest.raises(OSError, match=os.strerror(errno.EINVAL)):
                file.readv_into(views, 0)
        assert memory == bytes(100)
        assert file.read_into(memory[:64], 0) == 64


def test_darwin_refuses_by_what_is_asked_for_whatever_the_file_has() -> None:
    with simulated(Simulation({"data": b"short"}, faults=DARWIN)) as machine:
        file, wide = machine.open(Path("data")), this_machine().memory(2**31)  # never touched
        with pytest.raises(OSError, match=os.strerror(errno.EINVAL)):
            file.read_into(wide, 0)
        assert file.read_into(wide[:-1], 0) == 5
        file.close()
    with simulated(Simulation({"data": b"short"})) as machine:
        file = machine.open(Path("data"))
        assert file.read_into(wide, 0) == 5
        file.close()


def test_each_nth_read_is_interrupted_before_a_byte_came(real: bool, tmp_path: Path) -> None:
    with faulty(real, tmp_path, interrupt_every=3) as (file, machine):
        memory, came = machine.memory(8), []
        for call in range(9):
            memory[:] = bytes(8)
            try:
                came.append(file.read_into(memory, call))
            except InterruptedError:
                assert memory == bytes(8)
                came.append(-1)
        assert came == [8, 8, -1] * 3


@pytest.mark.parametrize("number", [errno.EIO, errno.EINTR, errno.ENXIO])
def test_one_read_fails_and_the_next_does_not(real: bool, tmp_path: Path, number: int) -> None:
    with faulty(real, tmp_path, errors={2: number}) as (file, machine):
        memory = machine.memory(8)
        assert file.read_into(memory, 0) == 8
        with pytest.raises(OSError, match=os.strerror(number)) as refusal:
            file.read_into(memory, 0)
        assert (refusal.value.errno, refusal.value.filename) == (number, file.name)
        assert file.read_into(memory, 0) == 8
        assert machine.injector.reads == 3


def test_reads_end_where_the_file_is_said_to_end_whatever_its_size(real: bool, tmp_path: Path) -> None:
    with faulty(real, tmp_path, end_at={str(tmp_path / "data"): 50}) as (file, machine):
        memory = machine.memory(96)
        assert file.size() == len(DATA)
        assert file.read_into(memory, 0) == 50
        assert file.read_into(memory[50:], 50) == 0
        assert file.read_into(memory, 1000) == 0
        assert memory[50:] == bytes(46)


def test_a_file_is_cut_off_after_it_was_opened(real: bool, tmp_path: Path) -> None:
    with faulty(real, tmp_path, cut={str(tmp_path / "data"): (4, 50)}) as (file, machine):
        memory = machine.memory(96)
        mapping = file.map()
        assert file.read_into(memory, 0) == 96
        assert file.size() == len(DATA)
        assert mapping.view == DATA
        assert file.size() == 50
        assert file.read_into(memory, 0) == 50
        view = mapping.view
        assert view[:50] == DATA[:50]
        assert set(view[50:]) == {BEYOND}
        with pytest.raises(BufferError):
            mapping.close()
        del view
        mapping.close()


def test_one_byte_comes_wrong_past_the_cache_alone(tmp_path: Path) -> None:
    with faulty(False, tmp_path, flip={str(tmp_path / "data"): 300}) as (file, machine):
        memory = machine.memory(512)
        views = [memory[:40], memory[40:]]
        file.readv_into(views, 256)
        assert memory == DATA[256:768]
        assert file.uncached(True)
        file.readv_into(views, 256)
        assert [at for at in range(512) if memory[at] != DATA[256 + at]] == [44]
        file.read_into(memory, 301)
        assert memory == DATA[301:813]
        assert file.uncached(False)
        file.readv_into(views, 256)
        assert memory == DATA[256:768]


def test_what_there_is_no_way_to_ask_says_so(real: bool, tmp_path: Path) -> None:
    with faulty(real, tmp_path, advice=False, uncached=False) as (file, _):
        assert not file.advise(0, 10, "will-need")
        mapping = file.map()
        assert not mapping.advise(0, 10, "will-need")
        mapping.close()
        assert not file.uncached(True)
        assert file.uncached(False)


def test_opens_memory_and_threads_run_out(real: bool, tmp_path: Path) -> None:
    with faulty(real, tmp_path, open_errors={2: errno.EACCES}, most_open=2, most_memory=100, most_threads=1) as (
        file,
        machine,
    ):
        path = Path(file.name)
        with pytest.raises(PermissionError):
            machine.open(path)
        with pytest.raises(FileNotFoundError):
            machine.open(path.with_name("nothing"))
        second = machine.open(path)
        with pytest.raises(OSError, match=os.strerror(errno.EMFILE)):
            machine.open(path)
        second.close()
        machine.open(path).close()
        machine.memory(60)
        with pytest.raises(OSError, match=os.strerror(errno.ENOMEM)):
            machine.memory(41)
        machine.memory(40)
        machine.spawn("only", lambda: None).join()
        with pytest.raises(RuntimeError, match="can't start new thread"):
            machine.spawn("none", lambda: None)


def test_one_size_one_mapping_and_one_memory_fail_and_the_next_do_not(real: bool, tmp_path: Path) -> None:
    asked = {"size_errors": {2: errno.ESTALE}, "map_errors": {1: errno.ENODEV}, "memory_errors": {2: errno.ENOMEM}}
    with faulty(real, tmp_path, **asked) as (file, machine):
        assert file.size() == len(DATA)
        with pytest.raises(OSError, match=os.strerror(errno.ESTALE)) as refusal:
            file.size()
        assert refusal.value.filename == file.name
        assert file.size() == len(DATA)
        with pytest.raises(OSError, match=os.strerror(errno.ENODEV)):
            file.map()
        file.map().close()
        machine.memory(8)
        with pytest.raises(OSError, match=os.strerror(errno.ENOMEM)):
            machine.memory(8)
        assert machine.memory(8) == bytes(8)
        injector = machine.injector
        assert (injector.sizes, injector.maps, injector.memories, injector.memory) == (3, 2, 3, 16)


def test_without_a_fault_nothing_goes_wrong(real: bool, tmp_path: Path) -> None:
    with faulty(real, tmp_path) as (file, machine):
        memory = machine.memory(len(DATA))
        assert file.read_into(memory, 0) == len(DATA)
        assert memory == DATA


# ---------------------------------------------------------------------------------------------- time


def reads(count: int, size: int, **device: int) -> int:
    """The virtual nanoseconds that so many reads take, each in a thread of its own."""

    def program(machine: SimulatedMachine) -> None:
        file, memory = machine.open(Path("data")), machine.memory(count * 4096)
        threads = [
            machine.spawn(f"reader {n}", lambda n=n: [file.read_into(memory[n * 4096 :][:size], n * 4096), None][1])  # type: ignore[misc]
            for n in range(count)
        ]
        joined(threads)
        file.close()

    outcome = run(program, Replay(()), Simulation(FILES, page=4096, device=Device(**device)))
    assert outcome.finding is None
    return outcome.time


def test_a_read_costs_latency_and_the_time_of_its_pages_over_the_lanes() -> None:
    assert reads(4, 4096) == 0
    assert reads(4, 4096, latency=100) == 400
    assert reads(4, 4096, latency=100, lanes=4) == 100
    assert reads(4, 4096, latency=100, lanes=3) == 200
    assert reads(4, 4096, latency=100, bandwidth=4096 * 10**9, lanes=2) == 202
    assert reads(1, 1, latency=7, bandwidth=10**9) == 7 + 4096
    assert reads(1, 1, latency=0, bandwidth=3 * 10**9) == -(-4096 // 3)


def test_computation_overlaps_reads_and_time_passes_only_when_all_wait() -> None:
    def program(machine: SimulatedMachine) -> tuple[int, int]:
        file, memory = machine.open(Path("data")), machine.memory(64)
        thread = machine.spawn("reader", lambda: [file.read_into(memory, 0), None][1])
        machine.spend(30)
        computed = machine.now()
        thread.join()
        file.close()
        return computed, machine.now()

    found = exhaust(lambda machine: None if program(machine) == (30, 100) else 1 / 0, _timed(latency=100))
    assert found.complete
    assert found.failure is None
    slower = exhaust(lambda machine: None if program(machine) == (30, 30) else 1 / 0, _timed(latency=20))
    assert slower.complete
    assert slower.failure is None


def _timed(**device: int) -> Simulation:
    return Simulation(FILES, page=4096, device=Device(**device))


# ---------------------------------------------------------------------------------------------- the page cache


@pytest.mark.rule("XC-PAGE-002")
def test_what_is_warm_costs_nothing_and_is_told_by_every_means() -> None:
    with simulated(Simulation(FILES, page=4096, device=Device(latency=50))) as machine:
        file, memory = machine.open(Path("data")), machine.memory(16_384)
        mapping = file.map()
        assert (mapping.resident(0, 16_384), file.read_warm(memory, 0), machine.usage().device_bytes) == (0, 0, 0)
        assert file.read_into(memory[:10], 4090) == 10
        assert (machine.now(), machine.usage().device_bytes) == (50, 8192)
        assert (mapping.resident(0, 16_384), mapping.resident(4095, 2), mapping.resident(8192, 1)) == (8192, 8192, 0)
        assert (file.read_warm(memory, 100), memory[:8092]) == (8092, DATA[100:8192])
        assert file.read_warm(memory, 8192) == 0
        assert file.read_into(memory[:8192], 0) == 8192
        assert (machine.now(), machine.usage().device_bytes) == (50, 8192)
        mapping.close()
        file.close()


@pytest.mark.rule("XC-PAGE-004")
def test_reads_past_the_cache_keep_nothing_and_evict_nothing() -> None:
    with simulated(Simulation(FILES, page=4096)) as machine:
        file, memory = machine.open(Path("data")), machine.memory(4096)
        mapping = file.map()
        file.read_into(memory, 0)
        file.uncached(True)
        for _ in range(2):
            file.read_into(memory, 0)
            file.read_into(memory, 4096)
        assert (mapping.resident(0, 8192), machine.usage().device_bytes) == (4096, 3 * 4096)
        mapping.close()
        file.close()


@pytest.mark.rule("XC-PAGE-001")
def test_the_cache_holds_so_many_pages_and_begins_as_it_is_told() -> None:
    with simulated(Simulation(FILES, page=4096, warm=("data",))) as machine:
        file = machine.open(Path("data"))
        mapping = file.map()
        assert mapping.resident(0, 16_384) == 16_384
        assert file.advise(4096, 8192, "dont-need")
        assert mapping.resident(0, 16_384) == 8192
        assert file.advise(4096, 4096, "will-need")
        assert mapping.resident(0, 16_384) == 12_288
        mapping.close()
        file.close()
    with simulated(Simulation(FILES, page=4096, cache_pages=2)) as machine:
        file = machine.open(Path("data"))
        mapping = file.map()
        file.read_into(machine.memory(16_384), 0)
        assert (mapping.resident(0, 16_384), mapping.resident(8192, 8192)) == (8192, 8192)
        mapping.close()
        file.close()


def test_a_machine_that_cannot_say_says_unknown() -> None:
    with simulated(Simulation(FILES, says=False)) as machine:
        file = machine.open(Path("data"))
        mapping = file.map()
        assert (mapping.resident(0, 5), file.read_warm(machine.memory(5), 0), machine.usage().device_bytes) == (
            None, None, None,
        )  # fmt: skip
        mapping.close()
        file.close()


def test_the_bytes_of_a_read_under_way_are_nobodys() -> None:
    seen = set()

    def program(machine: SimulatedMachine) -> None:
        file, memory = machine.open(Path("data")), machine.memory(4)
        thread = machine.spawn("reader", lambda: [file.read_into(memory, 8), None][1])
        machine.now()
        seen.add(bytes(memory))
        thread.join()
        file.close()

    assert exhaust(program, Simulation(FILES)).complete
    assert seen == {bytes(4), b"\xa5" * 4, DATA[8:12]}


def test_a_failing_read_leaves_what_it_likes_in_memory_and_never_the_truth_unseen() -> None:
    with simulated(Simulation(FILES, faults=Faults(errors={1: errno.EIO}))) as machine:
        file, memory = machine.open(Path("data")), machine.memory(4)
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            file.read_into(memory, 8)
        assert bytes(memory) != bytes(4)
        file.close()


def test_a_lost_thread_start_leaves_the_run_whole() -> None:
    def program(machine: SimulatedMachine) -> None:
        threads = []
        for each in range(3):
            try:
                threads.append(machine.spawn(str(each), lambda: [machine.now(), None][1]))
            except RuntimeError:
                break
        assert len(threads) == 2
        joined(threads)

    found = exhaust(program, Simulation(faults=Faults(most_threads=2)))
    assert (found.complete, found.failure) == (True, None)
    with pytest.raises(RunFailed, match="AssertionError"):
        exhaust(program).check()


def test_over_a_real_machine_each_numbered_read_fails_once_whoever_makes_it(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(DATA)
    numbers = range(1, 4001, 7)
    machine = FaultyMachine(this_machine(), Faults(errors=dict.fromkeys(numbers, errno.EIO)))
    file, failures = machine.open(tmp_path / "data"), [0] * 4

    def work(which: int) -> None:
        memory = machine.memory(16)
        for _ in range(1000):
            try:
                file.read_into(memory, 0)
            except OSError:
                failures[which] += 1

    joined([machine.spawn(str(n), lambda n=n: work(n)) for n in range(4)])  # type: ignore[misc]
    file.close()
    assert (sum(failures), machine.injector.reads) == (len(numbers), 4000)
