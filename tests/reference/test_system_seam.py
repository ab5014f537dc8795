"""What the seam promises, kept by this machine and by the simulated one alike."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

from expertcache_reference.system import this_machine
from expertcache_reference.system.seam import Machine
from expertcache_reference.system.simulated import Faults, FaultyMachine, Simulation, simulated

DATA = bytes(range(251)) * 400
"""100,400 bytes: pages of a size that no period of 251 divides."""


@pytest.fixture(params=["this", "wrapped", "simulated"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    (tmp_path / "data").write_bytes(DATA)
    (tmp_path / "empty").write_bytes(b"")
    if request.param == "simulated":
        files = {str(tmp_path / "data"): DATA, str(tmp_path / "empty"): b""}
        with simulated(Simulation(files)) as machine:
            yield machine
    else:
        yield this_machine() if request.param == "this" else FaultyMachine(this_machine(), Faults())


@pytest.mark.parametrize(("offset", "size"), [(0, 1), (0, 100_400), (99_999, 401), (16_383, 16_386), (7, 0)])
def test_a_read_delivers_the_bytes_of_its_offset(machine: Machine, tmp_path: Path, offset: int, size: int) -> None:
    file, into = machine.open(tmp_path / "data"), machine.memory(size)
    assert file.read_into(into, offset) == size
    assert into == DATA[offset : offset + size]
    file.close()


def test_a_read_at_the_end_is_short_and_beyond_it_is_zero(machine: Machine, tmp_path: Path) -> None:
    file, into = machine.open(tmp_path / "data"), machine.memory(300)
    assert file.read_into(into, 100_300) == 100
    assert into[:100] == DATA[100_300:]
    assert into[100:] == bytes(200)
    assert file.read_into(into, 100_400) == 0
    assert file.read_into(into, 1 << 40) == 0
    file.close()


def test_a_vectored_read_fills_its_views_in_order(machine: Machine, tmp_path: Path) -> None:
    file, into = machine.open(tmp_path / "data"), machine.memory(1000)
    assert file.readv_into([into[600:], into[:0], into[:600]], 50) == 1000
    assert into[600:] == DATA[50:450]
    assert into[:600] == DATA[450:1050]
    assert file.readv_into([], 50) == 0
    file.close()


def test_of_too_many_views_a_read_fills_the_first(machine: Machine, tmp_path: Path) -> None:
    file, into = machine.open(tmp_path / "data"), machine.memory(2000)
    came = file.readv_into([into[at : at + 1] for at in range(2000)], 0)
    assert 1024 <= came <= 2000
    assert into[:came] == DATA[:came]
    file.close()


def test_a_file_knows_its_name_and_size(machine: Machine, tmp_path: Path) -> None:
    for name, size in (("data", len(DATA)), ("empty", 0)):
        file = machine.open(tmp_path / name)
        assert (file.name, file.size()) == (str(tmp_path / name), size)
        file.close()


def test_a_file_that_is_not_there_is_refused_by_name(machine: Machine, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        machine.open(tmp_path / "nothing")


@pytest.mark.parametrize("size", [0, 1, 16_384, 100_001])
def test_memory_is_zeroed_writable_and_on_a_page(machine: Machine, size: int) -> None:
    memory = machine.memory(size)
    assert (len(memory), memory.readonly, bytes(memory)) == (size, False, bytes(size))
    if size:
        assert numpy.frombuffer(memory, numpy.uint8).ctypes.data % machine.page == 0
        memory[-1] = 7
        assert machine.memory(size)[-1] == 0


@pytest.mark.parametrize("page", [4096, 16_384, 65_536])
def test_simulated_memory_is_on_a_page_of_the_simulated_machine(page: int) -> None:
    with simulated(Simulation(page=page)) as machine:
        places = [numpy.frombuffer(machine.memory(size), numpy.uint8).ctypes.data for size in (1, page, 3 * page + 1)]
    assert machine.page == page
    assert [place % page for place in places] == [0, 0, 0]


def test_a_mapping_shows_the_file_and_lets_nobody_write(machine: Machine, tmp_path: Path) -> None:
    file = machine.open(tmp_path / "data")
    mapping = file.map()
    assert mapping.view == DATA
    assert mapping.view.readonly
    mapping.close()
    file.close()


def test_a_mapping_that_is_looked_at_does_not_close_and_stays_whole(machine: Machine, tmp_path: Path) -> None:
    file = machine.open(tmp_path / "data")
    mapping = file.map()
    view = mapping.view[5:9]
    with pytest.raises(BufferError):
        mapping.close()
    assert view == DATA[5:9]
    assert mapping.view == DATA
    del view
    mapping.close()
    with pytest.raises(ValueError, match="closed"):
        _ = mapping.view
    file.close()


def test_an_empty_file_is_not_mapped(machine: Machine, tmp_path: Path) -> None:
    file = machine.open(tmp_path / "empty")
    with pytest.raises(OSError, match="empty"):
        file.map()
    file.close()


@pytest.mark.rule("XC-PAGE-005")
def test_advice_changes_no_byte_and_never_fails(machine: Machine, tmp_path: Path) -> None:
    file = machine.open(tmp_path / "data")
    mapping, into = file.map(), machine.memory(len(DATA))
    for advice in ("will-need", "random", "sequential", "dont-need"):
        for offset, length in ((0, len(DATA)), (5, 1), (7, 0), (100_000, 5000), (1 << 40, 9)):
            assert file.advise(offset, length, advice) in (True, False)
            assert mapping.advise(offset, length, advice) in (True, False)
        assert mapping.view == DATA
        assert file.read_into(into, 0) == len(DATA)
        assert into == DATA
    mapping.close()
    file.close()


def test_what_was_just_read_is_in_memory_or_nobody_knows(machine: Machine, tmp_path: Path) -> None:
    file, into = machine.open(tmp_path / "data"), machine.memory(len(DATA))
    mapping = file.map()
    file.read_into(into, 0)
    pages = -(-len(DATA) // machine.page)
    assert mapping.resident(0, len(DATA)) in (None, pages * machine.page)
    assert mapping.resident(0, 0) in (None, 0)
    assert mapping.resident(machine.page - 1, 2) in (None, 2 * machine.page)
    assert file.read_warm(into, 0) in (None, len(DATA))
    assert file.read_warm(into, len(DATA)) in (None, 0)
    mapping.close()
    file.close()


def test_threads_hand_over_under_a_lock_and_are_joined(machine: Machine) -> None:
    lock = machine.lock()
    filled, emptied = machine.condition(lock), machine.condition(lock)
    shelf: list[int] = []
    taken: list[int] = []

    def take() -> None:
        for _ in range(20):
            with lock:
                while not shelf:
                    filled.wait()
                taken.append(shelf.pop())
                emptied.notify()

    threads = [machine.spawn("taker", take, quality) for quality in ("demand", "background")]
    for number in range(40):
        with lock:
            while shelf:
                emptied.wait()
            shelf.append(number)
            filled.notify_all()
    for thread in threads:
        thread.join()
    assert taken == list(range(40))


def test_the_clock_does_not_go_back_and_usage_does_not_shrink(machine: Machine) -> None:
    before, then = machine.usage(), machine.now()
    machine.memory(1 << 20)[:] = b"x" * (1 << 20)
    after, now = machine.usage(), machine.now()
    assert now >= then
    for less, more in zip(before, after, strict=True):
        assert (less is None) == (more is None)
        assert less is None or more is None or 0 <= less <= more


def test_a_machine_says_its_page_and_its_limit() -> None:
    machine = this_machine()
    assert machine.page == mmap.PAGESIZE
    assert machine.most_per_read < 1 << 31
    assert machine.most_per_read % machine.page == 0
