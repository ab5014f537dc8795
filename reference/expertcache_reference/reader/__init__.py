"""The reader: records from files into memory, in chunks, by a pool of persistent workers.

Read `errors`, `files`, `transfer`, `flights`, `queue`, `service`, and at last this. The runtime uses the service
under its own lock; whoever has no lock uses `Reader`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from types import TracebackType

import attrs

from expertcache_reference.reader.errors import ReadCancelled, ReadFailed
from expertcache_reference.reader.files import MOST_OPEN, Files
from expertcache_reference.reader.flights import Flight, Job, Request, Stages, Watcher
from expertcache_reference.reader.queue import Counts
from expertcache_reference.reader.service import Service
from expertcache_reference.reader.transfer import WAYS, Way
from expertcache_reference.system.seam import Condition, Machine
from expertcache_spec.errors import InvalidModel, UnknownName, WrongState
from expertcache_spec.layout.extents import Extent

__all__ = [
    "WAYS", "Counts", "Files", "Flight", "Job", "Read", "ReadCancelled", "ReadFailed", "Reader", "Request", "Service",
    "Stages", "Watcher", "Way", "check_ways",
]  # fmt: skip


MOST_WORKERS = 256
"""Threads of one reader, at most: each has a stack, and no device that we know serves more requests at once."""


def check_ways(workers: int, way: str) -> None:
    """Raise unless there are workers, `MOST_WORKERS` at most (`InvalidModel`), and the way is known (`UnknownName`)."""
    if type(workers) is not int or not 1 <= workers <= MOST_WORKERS:
        raise InvalidModel(f"{workers!r} workers", where="reader", cure=f"give a whole number from 1 to {MOST_WORKERS}")
    if way not in WAYS:
        raise UnknownName(f"way {way!r}", where="reader", cure=f"one of {', '.join(WAYS)}")


class Read:
    """One caller's hold on a read; several may share one flight."""

    def __init__(self, reader: Reader, flight: Flight) -> None:
        self._reader, self._flight, self._told = reader, flight, False

    def wait(self) -> None:
        """Sleep until the outcome is known: every byte is there, or `ReadFailed` tells each caller once.

        When it returns or raises, no worker writes to the destination any more. Raises `WrongState` when this caller
        was told before.
        """
        self._reader._wait(self._flight)
        if self._told:
            raise WrongState("the outcome was told", where=f"read of {self._flight.key}", cure="wait once a submit")
        self._told = True
        if self._flight.error is not None:
            raise self._flight.error.fresh()


class Reader:
    """Reads records of the files of a folder. Close it once all is read; a read under way is cancelled then.

    workers: threads. way: `pread`, or `mmap`, which copies out of a mapping; the same bytes, the same errors.
    """

    def __init__(
        self, machine: Machine, folder: Path, workers: int = 8, way: Way = "pread", most_open: int = MOST_OPEN
    ) -> None:
        check_ways(workers, way)
        self._lock = machine.lock()
        self._files = Files(machine, folder, most_open)
        self._machine = machine
        self._waiting: dict[int, tuple[Condition, list[Flight]]] = {}
        self._service = Service(machine, self._files, self._lock, self, workers, way)

    def submit(
        self, key: Hashable, extents: Sequence[Extent], into: memoryview, chunks: int = 1, *, demand: bool = True,
        stages: Stages = (),
    ) -> Read:  # fmt: skip
        """Begin to read a record into `into`; a key under way is joined, into the destination of its first submit."""
        return self.submit_all([Request(key, extents, into, chunks, stages)], demand=demand)[0]

    def submit_all(self, requests: Sequence[Request], *, demand: bool = True) -> list[Read]:
        """Begin several at once, stage by stage over all of them. Raises `InvalidModel`, `ReadCancelled`."""
        with self._lock:
            return [Read(self, flight) for flight in self._service.submit(requests, demand=demand)]

    def cancel(self, read: Read) -> None:
        """The caller waits no more; when nobody does, queued chunks never begin. `wait` says when memory is free."""
        with self._lock:
            if not read._flight.done:
                self._service.withdraw(read._flight)

    @property
    def counts(self) -> Counts:
        """What was read so far."""
        with self._lock:
            return attrs.evolve(self._service.counts)

    def close(self) -> None:
        """Cancel what is under way, end the workers, close the files. A second time it does nothing."""
        with self._lock:
            first = not self._service.closed
            self._service.stop()
        self._service.join()
        if first:
            self._files.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:  # fmt: skip
        self.close()

    # ------------------------------------------------------------------------------------------ what the service tells

    def began(self, job: Job, worker: int) -> None:
        """Nothing to do."""

    def ended(self, job: Job, worker: int) -> None:
        """Nothing to do."""

    def landed(self, flight: Flight) -> None:
        """Wake who waits for it."""
        found = self._waiting.pop(id(flight), None)
        if found is not None:
            found[0].notify_all()

    def _wait(self, flight: Flight) -> None:
        with self._lock:
            while not flight.done:
                found = self._waiting.setdefault(id(flight), (self._machine.condition(self._lock), [flight]))
                found[0].wait()
