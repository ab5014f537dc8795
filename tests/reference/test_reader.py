"""The reader: all bytes or an error, demand first, one read a key, and an end from any state."""

from __future__ import annotations

import errno
import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from expertcache_reference.reader import Files, Read, ReadCancelled, Reader, ReadFailed, Request
from expertcache_reference.system import this_machine
from expertcache_reference.system.seam import Condition, Machine
from expertcache_reference.system.simulated import DARWIN, Device, Faults, Simulation, exhaust, explore, simulated
from expertcache_spec.errors import InvalidModel, UnknownName, WrongState
from expertcache_spec.fanout import Chunk
from expertcache_spec.layout.extents import Extent

DATA = bytes(range(96)) * 4
FOLDER = Path("/files")


def _simulation(**fields: Any) -> Simulation:
    return Simulation(files={str(FOLDER / name): DATA for name in "ab"}, **{"page": 16, **fields})


@contextmanager
def _reader(faults: Faults | None = None, **options: Any) -> Iterator[tuple[Reader, Any]]:
    with (
        simulated(_simulation(faults=faults or Faults())) as machine,
        Reader(machine, FOLDER, **{"workers": 2, **options}) as reader,
    ):
        yield reader, machine


def _read(reader: Reader, *extents: Extent, chunks: int = 1, **how: Any) -> bytes:
    into = bytearray(sum(extent.length for extent in extents))
    reader.submit("key", extents, memoryview(into), chunks, **how).wait()
    return bytes(into)


@pytest.mark.parametrize("way", ["pread", "mmap"])
@pytest.mark.parametrize("chunks", [1, 3, 8])
def test_extents_arrive_end_to_end_in_either_way(way: str, chunks: int) -> None:
    extents = Extent("a", 5, 48), Extent("b", 0, 16), Extent("b", 16, 32), Extent("a", 0, 32)
    with _reader(way=way) as (reader, _):
        assert _read(reader, *extents, chunks=chunks) == DATA[5:53] + DATA[:48] + DATA[:32]
        assert reader.counts.bytes == 128
        assert reader.counts.records == 1


@pytest.mark.parametrize(("chunks", "woken"), [(1, 1), (3, 3), (6, 4)])
def test_no_more_workers_are_woken_than_there_are_chunks_to_read(tmp_path: Path, chunks: int, woken: int) -> None:
    machine, told = this_machine(), list[int]()
    (tmp_path / "a").write_bytes(bytes(6 * machine.page))
    with Reader(machine, tmp_path, workers=4) as reader:
        while reader._service._resting < 4:  # the last of them is on its way to sleep
            time.sleep(0.001)
        work = reader._service._work
        reader._service._work = _Told(work, told)
        _read(reader, Extent("a", 0, 6 * machine.page), chunks=chunks)
        reader._service._work = work
    assert len(told) == woken


class _Told:
    """A condition that says when it is notified."""

    def __init__(self, inner: Condition, told: list[int]) -> None:
        self._told, self.wait, self.notify_all, self._notify = told, inner.wait, inner.notify_all, inner.notify

    def notify(self) -> object:
        self._told.append(1)
        return self._notify()


def test_neighbours_in_a_file_are_one_request() -> None:
    with _reader() as (reader, _):
        assert _read(reader, Extent("a", 0, 10), Extent("a", 10, 20), Extent("a", 30, 3)) == DATA[:33]
        assert reader.counts.requests == 1


@pytest.mark.rule("XC-FANOUT-005")
def test_seven_bytes_a_call_make_fourteen_calls_of_a_record_of_ninety_six() -> None:
    with _reader(Faults(bytes_per_call=7)) as (reader, _):
        assert _read(reader, Extent("a", 0, 96)) == DATA[:96]
        assert reader.counts.requests == 14
        assert reader.counts.bytes == 96


def test_an_interrupted_request_is_asked_again() -> None:
    with _reader(Faults(errors={1: errno.EINTR, 2: errno.EINTR, 3: errno.EINTR})) as (reader, machine):
        assert _read(reader, Extent("a", 0, 96)) == DATA[:96]
        assert machine.injector.reads == 4
        assert (reader.counts.failed, reader.counts.bytes) == (0, 96)


@pytest.mark.parametrize("way", ["pread", "mmap"])
def test_the_end_of_a_file_is_an_error_that_names_file_offset_wanted_and_got(way: str) -> None:
    with _reader(Faults(cut={str(FOLDER / "a"): (1, 50)}), way=way) as (reader, _):
        into = memoryview(bytearray(96))
        with pytest.raises(ReadFailed, match="96 bytes wanted from offset 0, 50 came") as found:
            reader.submit("key", [Extent("a", 0, 96)], into).wait()
        error = found.value
        assert (error.file, error.offset, error.wanted, error.got) == ("a", 0, 96, 50)
        assert error.where == str(FOLDER / "a")
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_an_error_after_bytes_came_says_how_many() -> None:
    with _reader(Faults(bytes_per_call=7, errors={3: errno.EIO})) as (reader, _):
        with pytest.raises(ReadFailed, match="96 bytes wanted from offset 5, 14 came: OSError") as found:
            reader.submit("key", [Extent("a", 5, 96)], memoryview(bytearray(96))).wait()
        assert (found.value.offset, found.value.wanted, found.value.got) == (5, 96, 14)


@pytest.mark.parametrize("way", ["pread", "mmap"])
def test_both_ways_give_the_same_error(way: str) -> None:
    with _reader(way=way) as (reader, _):
        into = memoryview(bytearray(400))
        for extent, wanted, got in ((Extent("a", 300, 100), 100, 84), (Extent("b", 384, 1), 1, 0)):
            with pytest.raises(ReadFailed) as found:
                reader.submit("key", [extent], into).wait()
            assert (found.value.offset, found.value.wanted, found.value.got) == (extent.offset, wanted, got)
        with pytest.raises(ReadFailed, match="No such file"):
            reader.submit("key", [Extent("c", 0, 1)], into).wait()


@pytest.mark.parametrize("faults", [DARWIN, Faults(), Faults(most_per_read=2**31 - 1, over_limit="refuse")], ids=str)
def test_more_than_a_request_may_ask_for_is_split(faults: Faults) -> None:
    """By the machine's own number: Darwin refuses by what is asked, not by what comes."""
    small = attrs.evolve(faults, most_per_read=40)
    with _reader(small) as (reader, _):
        assert _read(reader, Extent("a", 0, 96)) == DATA[:96]
        assert reader.counts.requests == 3


@pytest.mark.parametrize("way", ["pread", "mmap"])
def test_a_record_of_no_bytes_is_read(way: str) -> None:
    with _reader(way=way) as (reader, _):
        assert _read(reader) == b""
        assert (reader.counts.records, reader.counts.bytes) == (1, 0)


def test_a_record_that_its_extents_do_not_make_is_refused_before_anything_begins() -> None:
    with _reader() as (reader, machine):
        short, whole = memoryview(bytearray(3)), memoryview(bytearray(8))
        for request in (
            Request("k", [Extent("a", 0, 4)], short),
            Request("k", [Extent("a", 0, 4)], whole, 1, [[Chunk(0, 3)]]),
            Request("k", [Extent("a", 0, 4)], whole, 1, [[Chunk(0, 3)], [Chunk(2, 2)]]),
        ):
            with pytest.raises(InvalidModel, match="every byte once"):
                reader.submit_all([Request("good", [Extent("a", 0, 4)], whole), request])
        assert reader.counts.records == machine.injector.opens == 0


def test_a_reader_without_workers_or_with_another_way_is_refused() -> None:
    with simulated(_simulation()) as machine:
        with pytest.raises(InvalidModel, match="0 workers"):
            Reader(machine, FOLDER, workers=0)
        with pytest.raises(UnknownName, match="pread, mmap"):
            Reader(machine, FOLDER, way="aio")  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------- order


class _Gate:
    """A machine whose first read waits until `open` is called, and which notes where reads begin."""

    def __init__(self, machine: Machine) -> None:
        self._machine, self.began = machine, list[int]()
        self._mine = machine.lock()
        self._changed = machine.condition(self._mine)
        self._open = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._machine, name)

    def open(self, path: Path) -> Any:
        return _GatedFile(self._machine.open(path), self)

    def pass_through(self, offset: int) -> None:
        with self._mine:
            self.began.append(offset)
            self._changed.notify_all()
            while not self._open:
                self._changed.wait()

    def let_go(self) -> None:
        with self._mine:
            self._open = True
            self._changed.notify_all()

    def until(self, count: int) -> None:
        with self._mine:
            while len(self.began) < count:
                self._changed.wait()


class _GatedFile:
    def __init__(self, file: Any, gate: _Gate) -> None:
        self._file, self._gate = file, gate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read_into(self, view: memoryview, offset: int) -> int:
        self._gate.pass_through(offset)
        return int(self._file.read_into(view, offset))


@contextmanager
def _gated(**options: Any) -> Iterator[tuple[Reader, _Gate]]:
    with simulated(_simulation()) as machine:
        gate = _Gate(machine)
        with Reader(gate, FOLDER, **{"workers": 1, **options}) as reader:  # type: ignore[arg-type]
            yield reader, gate
            gate.let_go()


def _ask(reader: Reader, at: int, **how: Any) -> Read:
    return reader.submit(at, [Extent("a", at, 16)], memoryview(bytearray(16)), **how)


def test_demand_goes_before_speculation_and_waits_for_the_chunk_in_service_only() -> None:
    with _gated() as (reader, gate):
        reads = [_ask(reader, 0, demand=False)]
        gate.until(1)
        reads += [_ask(reader, 16, demand=False), _ask(reader, 32)]
        gate.let_go()
        for read in reads:
            read.wait()
        assert gate.began == [0, 32, 16]


def test_speculation_of_many_chunks_delays_demand_by_one_chunk() -> None:
    with _gated() as (reader, gate):
        long = reader.submit("long", [Extent("a", 0, 64)], memoryview(bytearray(64)), 4, demand=False)
        gate.until(1)
        demand = _ask(reader, 128)
        gate.let_go()
        demand.wait()
        long.wait()
        assert gate.began == [0, 128, 16, 32, 48]


def test_a_demand_for_a_queued_prefetch_joins_it_and_moves_it_to_the_front() -> None:
    with _gated() as (reader, gate):
        first = _ask(reader, 0, demand=False)
        gate.until(1)
        prefetches = [_ask(reader, at, demand=False) for at in range(16, 144, 16)]
        demand = _ask(reader, 80)
        gate.let_go()
        demand.wait()
        for read in (first, *prefetches):
            read.wait()
        assert gate.began[:2] == [0, 80]
        assert sorted(gate.began) == list(range(0, 144, 16)), "each once"


def test_stages_go_one_after_the_other_over_all_records_of_an_event() -> None:
    stages = [[Chunk(0, 16)], [Chunk(16, 16)]]
    with _gated() as (reader, gate):
        gate.let_go()
        requests = [Request(at, [Extent("a", at, 32)], memoryview(bytearray(32)), 1, stages) for at in (0, 64)]
        for read in reader.submit_all(requests):
            read.wait()
        assert gate.began == [0, 64, 16, 80]


def test_all_demand_is_submitted_before_the_first_wait_and_one_worker_serves_it() -> None:
    with _gated() as (reader, gate):
        requests = [Request(at, [Extent("a", at, 16)], memoryview(bytearray(16))) for at in range(0, 64, 16)]
        reads = reader.submit_all(requests)
        gate.let_go()
        for read in reads:
            read.wait()
        assert reader.counts.records == 4


# ---------------------------------------------------------------------------------------------- sharing and ending


def test_one_key_is_read_once_for_all_who_ask_meanwhile() -> None:
    into, other = bytearray(16), bytearray(16)
    with _gated() as (reader, gate):
        reads = [reader.submit("key", [Extent("a", 0, 16)], memoryview(each)) for each in (into, other)]
        twice = [Request("two", [Extent("a", 32, 16)], memoryview(bytearray(16)))] * 2
        reads += reader.submit_all(twice)
        gate.let_go()
        for read in reads:
            read.wait()
        assert (into, other) == (DATA[:16], bytes(16)), "into the destination of the first"
        assert gate.began == [0, 32]


def test_an_error_reaches_every_waiter_once_and_is_forgotten() -> None:
    with _reader(Faults(errors={1: errno.EIO})) as (reader, _):
        into = memoryview(bytearray(16))
        reads = [reader.submit("key", [Extent("a", 0, 16)], into) for _ in range(3)]
        errors = []
        for read in reads:
            with pytest.raises(ReadFailed, match="OSError") as found:
                read.wait()
            errors.append(found.value)
            with pytest.raises(WrongState, match="told"):
                read.wait()
        assert len({id(error) for error in errors}) == 3, "an exception is raised in one thread"
        reader.submit("key", [Extent("a", 0, 16)], into).wait()
        assert bytes(into) == DATA[:16]
        assert (reader.counts.failed, reader.counts.records) == (1, 1)


def test_a_cancelled_read_drops_what_is_queued_and_its_memory_is_free_when_its_chunk_has_ended() -> None:
    with _gated() as (reader, gate):
        into = bytearray(64)
        read = reader.submit("key", [Extent("a", 0, 64)], memoryview(into), 4)
        gate.until(1)
        reader.cancel(read)
        again = reader.submit("key", [Extent("a", 64, 16)], memoryview(bytearray(16)))
        gate.let_go()
        with pytest.raises(ReadCancelled):
            read.wait()
        assert into[16:] == bytes(48)
        again.wait()
        assert gate.began == [0, 64], "who asks after a cancel gets a read of its own"
        reader.cancel(again)
        assert reader.counts.cancelled == 1


def test_a_read_that_another_caller_still_wants_is_not_cancelled() -> None:
    with _gated() as (reader, gate):
        one, two = _ask(reader, 0), _ask(reader, 0)
        reader.cancel(one)
        gate.let_go()
        two.wait()
        assert reader.counts.cancelled == 0


def test_a_closed_reader_has_told_every_waiter_and_takes_no_more() -> None:
    def run(machine: Machine) -> None:
        reader = Reader(machine, FOLDER, workers=1)
        reads = [_ask(reader, at) for at in (0, 16, 32)]
        closer = machine.spawn("closer", reader.close)
        for read in reads:
            try:
                read.wait()
            except ReadCancelled:
                continue
        closer.join()
        reader.close()
        with pytest.raises(ReadCancelled, match="closed"):
            _ask(reader, 0)

    explore(run, _simulation(), schedules=100).check()


def test_a_reader_closes_from_any_state() -> None:
    def run(machine: Machine) -> None:
        with Reader(machine, FOLDER, workers=1):
            pass
        reader = Reader(machine, FOLDER, workers=1)
        read = reader.submit("key", [Extent("a", 0, 32)], memoryview(bytearray(32)), 2, demand=False)
        reader.cancel(read)
        reader.close()

    seen = exhaust(run, _simulation(), preemptions=2)
    seen.check()
    assert seen.complete


def test_files_are_opened_once_shared_and_closed_once() -> None:
    with simulated(_simulation()) as machine:
        with Reader(machine, FOLDER, workers=3) as reader:
            for read in [
                reader.submit(at, [Extent("ab"[at % 2], at, 16)], memoryview(bytearray(16))) for at in range(9)
            ]:
                read.wait()
        assert machine.injector.opens == 2


def test_no_more_files_are_open_than_may_be() -> None:
    files = {str(FOLDER / f"{name}"): bytes([name]) * 16 for name in range(40)}
    simulation = Simulation(files=files, page=16, faults=Faults(most_open=6))
    with simulated(simulation) as machine, Reader(machine, FOLDER, workers=2, most_open=6) as reader:
        for name in [*range(40), *range(40)]:
            assert _read(reader, Extent(f"{name}", 0, 16)) == bytes([name]) * 16


def test_the_file_that_was_used_longest_ago_is_closed_to_make_room() -> None:
    simulation = Simulation(files={str(FOLDER / name): DATA for name in "abc"}, page=16)
    with simulated(simulation) as machine:
        files, opens = Files(machine, FOLDER, most_open=2), []
        for name in "abacab":
            files.give(files.take(name))
            opens.append(machine.injector.opens)
        files.close()
        assert opens == [1, 2, 2, 3, 3, 4], "c takes the place of b, for a was used since, and b that of c"


def test_a_file_in_use_is_not_closed_to_make_room() -> None:
    with simulated(_simulation()) as machine:
        files = Files(machine, FOLDER, most_open=1)
        first, second = files.take("a"), files.take("b")
        assert first.file.size() == second.file.size() == 384
        files.give(first)
        files.give(second)
        files.close()


def test_no_thread_holds_the_lock_while_it_reads() -> None:
    """Eight records on eight workers take the time of one: with the lock held they would take that of eight."""
    with simulated(_simulation(device=Device(latency=1000, bandwidth=10**12, lanes=8))) as machine:
        with Reader(machine, FOLDER, workers=8) as reader:
            for read in [_ask(reader, at) for at in range(0, 128, 16)]:
                read.wait()
        assert machine.now() < 3000


def test_an_idle_reader_serves_a_prefetch_that_nobody_waits_for() -> None:
    with _gated() as (reader, gate):
        _ask(reader, 16, demand=False)
        gate.until(1)
        assert gate.began == [16]


@pytest.mark.parametrize("way", ["pread", "mmap"])
def test_on_the_machine_that_runs_this_the_same_bytes_come(way: str, tmp_path: Path) -> None:
    data = bytes(at * 7 % 251 for at in range(300_000))
    (tmp_path / "big").write_bytes(data)
    with Reader(this_machine(), tmp_path, workers=4, way=way) as reader:  # type: ignore[arg-type]
        into = [memoryview(bytearray(65536)) for _ in range(4)]
        reads = [reader.submit(at, [Extent("big", at * 70_000, 65536)], view, 8) for at, view in enumerate(into)]
        for at, read in enumerate(reads):
            read.wait()
            assert bytes(into[at]) == data[at * 70_000 : at * 70_000 + 65536]
        with pytest.raises(ReadFailed, match="100000 bytes wanted from offset 250000, 50000 came"):
            reader.submit("end", [Extent("big", 250_000, 100_000)], memoryview(bytearray(100_000))).wait()
