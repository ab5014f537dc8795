"""The seam: all that the runtime asks of the machine below it, and nothing else does the runtime ask.

Files, memory, threads, time and what the system counts. One module a platform implements it; tests put a machine of
their own in its place, which owns time, order and faults. Runtime, reader and slots import no `os`, `mmap`, `time` or
`threading`; what writes, lists or parses files (`stores`, `traces`, the scratch files of `disk`, commands) asks the
system itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, Protocol

Advice = Literal["will-need", "dont-need", "random", "sequential"]
Quality = Literal["demand", "background"]
"""What a thread works for: somebody who waits, or nobody yet (thread QoS on Darwin, nice on Linux).

The workers here read demand before speculation and are all `demand`; `background` is for a reader of one's own.
"""


class Lock(Protocol):
    """A lock that its own thread does not take twice."""

    def __enter__(self) -> object: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> object: ...


class Condition(Protocol):
    """A condition on a lock; every call is made while the lock is held."""

    def wait(self) -> object:
        """Let go of the lock, sleep until notified, take it again; it may return without cause."""
        ...

    def notify(self) -> object:
        """Wake one that waits."""
        ...

    def notify_all(self) -> object:
        """Wake all that wait."""
        ...


class Thread(Protocol):
    """A thread that runs."""

    def join(self) -> object:
        """Wait for its end."""
        ...


class Mapping(Protocol):
    """A file in memory, read only, from its first byte to `len(view)`."""

    @property
    def view(self) -> memoryview:
        """Its bytes. Touching one beyond a file that has been cut off since kills the process, so check the size."""
        ...

    def advise(self, offset: int, length: int, advice: Advice) -> bool:
        """Tell the system what is to come; whether there is a way to tell it. Never changes a byte."""
        ...

    def resident(self, offset: int, length: int) -> int | None:
        """How many bytes of that range are in the page cache, in whole pages; None where the system does not say."""
        ...

    def close(self) -> None:
        """Give the mapping back; raises `BufferError` while a view of it is in use."""
        ...


class File(Protocol):
    """A file opened for reading."""

    @property
    def name(self) -> str:
        """Its path, for messages."""
        ...

    def size(self) -> int:
        """Its bytes, now."""
        ...

    def read_into(self, view: memoryview, offset: int) -> int:
        """One request: read up to `len(view)` bytes from `offset`; how many came. 0 is the end of the file.

        Raises `InterruptedError` where a signal came first, `OSError` for all else: Darwin refuses more than
        `most_per_read` bytes with EINVAL, Linux delivers that many.
        """
        ...

    def readv_into(self, views: list[memoryview], offset: int) -> int:
        """One request into several views, filled in order; as `read_into`, the limit on their sum.

        Of more views than the system takes in one request (1024 on Linux and Darwin) it fills the first.
        """
        ...

    def read_warm(self, view: memoryview, offset: int) -> int | None:
        """As `read_into`, but only what the page cache holds: 0 where the device would be asked, None where unknown."""
        ...

    def advise(self, offset: int, length: int, advice: Advice) -> bool:
        """Tell the system what is to come (F_RDADVISE, posix_fadvise); whether there is a way to tell it."""
        ...

    def uncached(self, on: bool) -> bool:
        """Ask that reads keep nothing in the page cache (F_NOCACHE); whether there is a way.

        It evicts nothing, and proves nothing about where bytes came from.
        """
        ...

    def map(self) -> Mapping:
        """The whole file in memory. Raises `OSError` for an empty file."""
        ...

    def close(self) -> None:
        """Close it; once."""
        ...


class Usage(NamedTuple):
    """What the process has used since its start; None where the system does not count it.

    device_bytes: bytes that the device was asked for on its behalf. peak_memory: the largest resident set, in bytes.
    major_faults: page faults that had to wait for a device.
    """

    device_bytes: int | None
    peak_memory: int | None
    major_faults: int | None


class Machine(Protocol):
    """One machine. `page` is bytes of a page, `most_per_read` the most that one read may ask for."""

    name: str
    page: int
    most_per_read: int

    def open(self, path: Path) -> File:
        """Open a file for reading; raises `OSError`."""
        ...

    def memory(self, size: int) -> memoryview:
        """Writable zeroed memory that begins on a page; the system takes it back when the last view is gone."""
        ...

    def now(self) -> int:
        """Nanoseconds of a clock that only rises."""
        ...

    def lock(self) -> Lock:
        """A new lock."""
        ...

    def condition(self, lock: Lock) -> Condition:
        """A new condition on a lock of this machine; several may share one."""
        ...

    def spawn(self, name: str, run: Callable[[], None], quality: Quality = "demand") -> Thread:
        """Run a function in a thread of its own; `run` lets nothing escape."""
        ...

    def usage(self) -> Usage:
        """What the process has used so far."""
        ...
