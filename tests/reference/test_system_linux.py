"""Linux, for real: what is warm, what the device was asked for, and what the kernel does not say."""

from __future__ import annotations

import errno
import mmap
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

from expertcache_reference.system.linux import HUGE_PAGE, LinuxFile, LinuxMachine

if not sys.platform.startswith("linux"):
    pytest.skip("asks a Linux kernel", allow_module_level=True)

SIZE = 1 << 20


@pytest.fixture
def machine() -> LinuxMachine:
    return LinuxMachine()


@pytest.fixture
def file(machine: LinuxMachine, tmp_path: Path) -> Iterator[LinuxFile]:
    """A file whose bytes are on the device and whose pages can be dropped."""
    with (tmp_path / "data").open("wb") as written:
        written.write(bytes(range(256)) * (SIZE // 256))
        written.flush()
        os.fsync(written.fileno())
    file = machine.open(tmp_path / "data")
    yield file
    file.close()


def drop(file: LinuxFile) -> None:
    """Its pages out of memory, as far as the file system lets go of them."""
    assert file.advise(0, SIZE, "dont-need")
    mapping = file.map()
    kept = mapping.resident(0, SIZE)
    mapping.close()
    if kept:
        pytest.skip("this file system keeps its pages")


@pytest.mark.rule("XC-PAGE-002", "XC-PAGE-003")
def test_cold_and_warm_are_told_apart_by_residency_and_by_the_devices_bytes(
    machine: LinuxMachine, file: LinuxFile
) -> None:
    drop(file)
    into, mapping = machine.memory(SIZE), file.map()
    before = machine.device_bytes()
    assert mapping.resident(0, SIZE) == 0
    assert file.read_into(into, 0) == SIZE
    assert mapping.resident(0, SIZE) == SIZE
    between = machine.device_bytes()
    assert file.read_into(into, 0) == SIZE
    after = machine.device_bytes()
    mapping.close()
    if before is None or between is None or after is None:
        pytest.skip("this kernel does not count what the device is asked for")
    assert between - before >= SIZE
    assert after - between < SIZE


def test_a_warm_read_takes_nothing_from_the_device_and_says_what_it_took(
    machine: LinuxMachine, file: LinuxFile
) -> None:
    drop(file)
    into = machine.memory(4096)
    cold = file.read_warm(into, SIZE // 2)
    if cold is None:
        pytest.skip("this file system does not know RWF_NOWAIT")
    assert cold == 0
    assert bytes(into) == bytes(4096)
    assert file.read_into(into, SIZE // 2) == 4096
    into[:] = bytes(4096)
    assert file.read_warm(into, SIZE // 2) == 4096
    assert bytes(into) == bytes(range(256)) * 16


@pytest.mark.rule("XC-PAGE-004")
def test_an_uncached_read_keeps_nothing_and_evicts_nothing(machine: LinuxMachine, file: LinuxFile) -> None:
    into, mapping = machine.memory(4096), file.map()
    drop(file)
    file.advise(0, 4096, "random")
    if not file.uncached(True):
        mapping.close()
        pytest.skip("this kernel or file system does not know RWF_DONTCACHE")
    file.read_into(into, SIZE // 2)
    kept = mapping.resident(SIZE // 2, 4096)
    assert file.uncached(False)
    file.read_into(into, SIZE // 2)
    assert (kept, mapping.resident(SIZE // 2, 4096)) == (0, 4096)
    assert file.uncached(True)
    file.read_into(into, SIZE // 2)
    assert mapping.resident(SIZE // 2, 4096) == 4096
    mapping.close()


def test_mincore_is_not_believed_where_it_calls_everything_resident(
    file: LinuxFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: -1)
    assert file.map().resident(0, SIZE) is not None  # it may be written
    monkeypatch.setattr(os, "access", lambda *arguments, **options: False)
    assert file.map().resident(0, SIZE) is None
    monkeypatch.undo()
    monkeypatch.setattr(os, "access", lambda *arguments, **options: False)
    assert file.map().resident(0, SIZE) is not None  # it is one's own


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EIO])
def test_a_file_system_without_warm_reads_says_so_and_a_broken_one_raises(
    file: LinuxFile, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def preadv(*arguments: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "preadv", preadv)
    assert not file.uncached(True)
    if number == errno.EIO:
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            file.read_warm(memoryview(bytearray(1)), 0)
    else:
        assert file.read_warm(memoryview(bytearray(1)), 0) is None


def test_what_proc_does_not_say_is_unknown(tmp_path: Path) -> None:
    silent = LinuxMachine(proc=tmp_path).usage()
    assert silent.device_bytes is None
    assert silent.peak_memory
    (tmp_path / "io").write_text("rchar: 5\nread_bytes: 4096\n")
    (tmp_path / "status").write_text("Name:\tx\nVmHWM:\t   12 kB\n")
    assert LinuxMachine(proc=tmp_path).usage()[:2] == (4096, 12 * 1024)
    (tmp_path / "io").write_text("read_bytes:\n")
    assert LinuxMachine(proc=tmp_path).device_bytes() is None


def test_the_peak_is_that_of_this_process(machine: LinuxMachine) -> None:
    before = machine.peak_memory()
    held = machine.memory(64 << 20)
    held[:] = b"x" * (64 << 20)
    after = machine.peak_memory()
    assert before is not None
    assert after is not None
    assert after >= 64 << 20


def test_a_background_thread_is_nice_and_the_others_are_not(machine: LinuxMachine) -> None:
    mine = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    seen: dict[str, int] = {}

    def look(name: str) -> None:
        seen[name] = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    for quality in ("demand", "background"):
        machine.spawn(quality, lambda quality=quality: look(quality), quality).join()  # type: ignore[misc]
    assert seen == {"demand": mine, "background": min(19, mine + 10)}
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == mine


def test_a_file_is_closed_once(machine: LinuxMachine, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x")
    file = machine.open(tmp_path / "x")
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.close()


def test_advice_about_no_bytes_is_not_about_the_rest_of_the_file(machine: LinuxMachine, file: LinuxFile) -> None:
    mapping = file.map()
    file.read_into(machine.memory(SIZE), 0)
    assert file.advise(0, 0, "dont-need")
    assert mapping.resident(0, SIZE) == SIZE
    mapping.close()


@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="a kernel without huge pages")
def test_large_memory_is_advised_to_lie_in_huge_pages(machine: LinuxMachine) -> None:
    views = [machine.memory(size) for size in (HUGE_PAGE // 2, 4 * HUGE_PAGE)]
    assert ["hg" in _flags_at(address(view)) for view in views] == [False, True]


@pytest.mark.parametrize("error", [errno.EINVAL, errno.ENOMEM])
def test_without_huge_pages_there_is_memory_all_the_same(
    machine: LinuxMachine, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    class Refusing(mmap.mmap):
        def madvise(self, *_: int) -> None:
            raise OSError(error, "told not to")

    monkeypatch.setattr(mmap, "mmap", Refusing)
    view = machine.memory(HUGE_PAGE)
    view[-1] = 7
    assert len(view) == HUGE_PAGE


def address(view: memoryview) -> int:
    return int(numpy.frombuffer(view, numpy.uint8).ctypes.data)


def _flags_at(address: int) -> list[str]:
    """VmFlags of the mapping that begins there or spans it (proc_pid_smaps(5))."""
    within = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = line.split()[0]
        if "-" in head and not head.endswith(":"):
            begin, end = (int(part, 16) for part in head.split("-"))
            within = begin <= address < end
        elif within and head == "VmFlags:":
            return line.split()[1:]
    raise AssertionError(f"nothing is mapped at {address:x}")
