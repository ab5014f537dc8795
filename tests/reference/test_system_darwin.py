"""Darwin through fakes that behave as Apple documents; layouts byte for byte. On a Mac, the real calls too."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import struct
import sys
import threading
from pathlib import Path

import pytest

from expertcache_reference.system import darwin, this_machine
from expertcache_reference.system.darwin import Calls, DarwinMachine
from expertcache_reference.system.posix import MOST_VIEWS


class Apple:
    """The calls, as the manual pages have them: what was asked of it, and what it is told to answer."""

    def __init__(self) -> None:
        self.commands: list[tuple[int, int | bytes]] = []
        self.classes: dict[str, tuple[int, int]] = {}
        self.pages: list[int] = []
        self.asked: list[tuple[int, int]] = []
        self.synced: list[tuple[int, int, int]] = []
        self.refuses = False
        self.usage = struct.pack("=16s18Q", b"uuid of the task", *range(101, 119))

    def preadv(self, descriptor: int, views: list[memoryview], offset: int) -> int:
        """EINVAL for more than 1024 views, and for a sum above INT_MAX whatever the file has."""
        if len(views) > 1024 or sum(map(len, views)) > 2**31 - 1:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return os.preadv(descriptor, views, offset)

    def fcntl(self, descriptor: int, command: int, argument: int | bytes) -> object:
        if self.refuses:
            raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))
        self.commands.append((command, argument))
        return argument

    def mincore(self, address: int, length: int, vector: int) -> int:
        self.asked.append((address, length))
        if self.refuses:
            return -1
        ctypes.memmove(vector, bytes(self.pages), len(self.pages))
        return 0

    def msync(self, address: int, length: int, flags: int) -> int:
        self.synced.append((address, length, flags))
        return -1 if self.refuses else 0

    def proc_pid_rusage(self, process: int, flavour: int, buffer: ctypes.Array[ctypes.c_char]) -> int:
        assert (process, flavour) == (os.getpid(), 2)
        if self.refuses:
            return -1
        ctypes.memmove(buffer, self.usage, len(self.usage))
        return 0

    def pthread_set_qos_class_self_np(self, quality: int, priority: int) -> int:
        self.classes[threading.current_thread().name] = (quality, priority)
        return errno.EPERM if self.refuses else 0

    def calls(self) -> Calls:
        return Calls(
            self.preadv, self.fcntl, self.mincore, self.msync, self.proc_pid_rusage, self.pthread_set_qos_class_self_np
        )  # fmt: skip


@pytest.fixture
def apple() -> Apple:
    return Apple()


@pytest.fixture
def machine(apple: Apple, monkeypatch: pytest.MonkeyPatch) -> DarwinMachine:
    monkeypatch.setattr(mmap, "PAGESIZE", 16_384)
    return DarwinMachine(apple.calls())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "data").write_bytes(bytes(range(256)) * 256)
    return tmp_path / "data"


def test_layouts_are_those_that_a_compiler_gives_apples_structs() -> None:
    class Radvisory(ctypes.Structure):
        _fields_ = (("ra_offset", ctypes.c_int64), ("ra_count", ctypes.c_int))

    made = Radvisory(0x0123456789ABCDEF, 0x7654321)
    assert darwin.RADVISORY.pack(0x0123456789ABCDEF, 0x7654321) == bytes(made)
    names = (
        "user_time system_time pkg_idle_wkups interrupt_wkups pageins wired_size resident_size phys_footprint "
        "proc_start_abstime proc_exit_abstime child_user_time child_system_time child_pkg_idle_wkups "
        "child_interrupt_wkups child_pageins child_elapsed_abstime diskio_bytesread diskio_byteswritten"
    )

    class RusageInfoV2(ctypes.Structure):
        _fields_ = (("ri_uuid", ctypes.c_uint8 * 16), *((f"ri_{name}", ctypes.c_uint64) for name in names.split()))

    assert ctypes.sizeof(RusageInfoV2) == darwin.RUSAGE_INFO_V2_SIZE
    assert RusageInfoV2.ri_diskio_bytesread.offset == darwin.DISKIO_BYTESREAD


def test_advice_to_a_file_is_one_radvisory_and_only_for_will_need(
    apple: Apple, machine: DarwinMachine, path: Path
) -> None:
    file = machine.open(path)
    assert file.advise(16_384, 5, "will-need")
    assert apple.commands == [(44, b"\x00\x40\0\0\0\0\0\0\x05\0\0\0\0\0\0\0")]
    for advice in ("dont-need", "random", "sequential"):
        assert not file.advise(0, 5, advice)
    assert len(apple.commands) == 1
    file.close()


def test_advice_beyond_an_int_is_several(apple: Apple, machine: DarwinMachine, path: Path) -> None:
    file = machine.open(path)
    assert file.advise(1, 5 * 10**9, "will-need")
    pieces = [struct.unpack("=qi4x", argument) for _, argument in apple.commands if isinstance(argument, bytes)]
    assert [count for _, count in pieces] == [2**31 - 1, 2**31 - 1, 5 * 10**9 - 2 * (2**31 - 1)]
    assert [begin for begin, _ in pieces] == [1, 2**31, 2**32 - 1]
    assert file.advise(3, 0, "will-need")
    assert len(apple.commands) == 3
    file.close()


def test_a_mapping_is_advised_through_its_file(apple: Apple, machine: DarwinMachine, path: Path) -> None:
    file = machine.open(path)
    mapping = file.map()
    assert mapping.advise(16_384, 16_384, "will-need")
    assert apple.commands == [(44, darwin.RADVISORY.pack(16_384, 16_384))]
    assert mapping.advise(0, 16_384, "random")
    assert len(apple.commands) == 1
    assert mapping.advise(0, 1, "dont-need")
    assert mapping.advise(16_385, 16_384, "dont-need")
    (whole, *first), (begin, *second) = apple.synced
    assert (first, second, begin - whole) == ([1, 2], [16_385, 2], 16_384)
    apple.refuses = True
    assert not mapping.advise(0, 1, "dont-need")
    mapping.close()
    file.close()


def test_no_caching_is_asked_of_the_descriptor_and_taken_back(apple: Apple, machine: DarwinMachine, path: Path) -> None:
    file = machine.open(path)
    assert file.uncached(True)
    assert file.uncached(False)
    assert apple.commands == [(48, 1), (48, 0)]
    apple.refuses = True
    assert not file.uncached(True)
    assert not file.advise(0, 5, "will-need")
    file.close()


def test_reads_reach_the_limit_by_what_they_ask_for_and_by_the_sum_of_their_views(
    machine: DarwinMachine, path: Path
) -> None:
    file, wide = machine.open(path), machine.memory(2**31)  # never touched, so it costs address space alone
    assert machine.most_per_read == 0x7FFFC000
    assert file.read_into(wide[: machine.most_per_read], 0) == 65_536
    for views in ([wide], [wide[:5], wide[5:]]):
        with pytest.raises(OSError, match=os.strerror(errno.EINVAL)):
            file.readv_into(views, 0)
    assert file.readv_into([wide[at : at + 1] for at in range(2000)], 0) == MOST_VIEWS
    assert file.readv_into([], 0) == 0
    file.close()


def test_residency_counts_pages_in_core_by_the_lowest_bit_alone(
    apple: Apple, machine: DarwinMachine, path: Path
) -> None:
    # in core; in core and referenced; paged out; modified but not in core; of 16 KiB each
    apple.pages = [0x01, 0x03 | 0x80, 0x20, 0x04]
    file = machine.open(path)
    mapping = file.map()
    assert mapping.resident(0, 65_536) == 2 * 16_384
    apple.pages = [0x01, 0x01]
    assert mapping.resident(16_384 + 1, 16_384) == 2 * 16_384
    (whole, _), (begin, length) = apple.asked
    assert (begin - whole, length) == (16_384, 16_385)
    apple.refuses = True
    assert mapping.resident(0, 1) is None
    mapping.close()
    file.close()


def test_nothing_says_what_of_a_read_was_warm(machine: DarwinMachine, path: Path) -> None:
    file = machine.open(path)
    assert file.read_warm(machine.memory(4), 0) is None
    file.close()


def test_the_devices_bytes_are_read_from_their_place(apple: Apple, machine: DarwinMachine) -> None:
    assert machine.device_bytes() == 117
    apple.refuses = True
    assert machine.device_bytes() is None


def test_peak_memory_is_in_bytes_there_and_in_kibibytes_on_linux(
    machine: DarwinMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Rusage:
        ru_maxrss, ru_majflt = 123_456, 7

    monkeypatch.setattr("resource.getrusage", lambda who: Rusage)
    assert machine.usage() == (117, 123_456, 7)


def test_a_thread_says_what_it_works_for_and_runs_even_if_refused(apple: Apple, machine: DarwinMachine) -> None:
    ran: list[str] = []
    machine.spawn("one", lambda: ran.append("one")).join()
    apple.refuses = True
    machine.spawn("two", lambda: ran.append("two"), "background").join()
    assert ran == ["one", "two"]
    assert apple.classes == {"one": (0x19, 0), "two": (0x11, 0)}


@pytest.mark.skipif(sys.platform != "darwin", reason="asks a Mac")
def test_a_mac_answers_every_call(tmp_path: Path) -> None:
    machine = this_machine()
    (tmp_path / "data").write_bytes(bytes(1 << 20))
    file = machine.open(tmp_path / "data")
    mapping = file.map()
    assert file.uncached(True)
    assert file.uncached(False)
    assert file.advise(0, 1 << 20, "will-need")
    file.read_into(machine.memory(1 << 20), 0)
    assert mapping.resident(0, 1 << 20) == 1 << 20
    device, peak, faults = machine.usage()
    assert device is not None
    assert peak is not None
    assert peak > 1 << 20
    assert faults is not None
    machine.spawn("background", lambda: None, "background").join()
    with pytest.raises(OSError, match=os.strerror(errno.EINVAL)):
        file.read_into(machine.memory(2**31), 0)
    mapping.close()
    file.close()
