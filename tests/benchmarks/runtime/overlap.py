"""Split reads with real threads beside the schedule that the specification computes for the same times.

Every request is a real read that takes a fixed time, every computation a sleep: then the specification knows all
durations, and what is left of a difference is the runtime's own. A busy machine oversleeps; so the durations are those
that the reads and sleeps took in the same run, on the average.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks.runtime.reading import PAGE, Warm

from expertcache_reference.runtime import Runtime
from expertcache_reference.system import this_machine
from expertcache_spec.model import Budget, Key
from expertcache_spec.schedule.costs import Costs, Request, Storage
from expertcache_spec.schedule.disciplines import parse_discipline
from expertcache_spec.schedule.evaluate import schedule
from expertcache_spec.schedule.plan import Scenario
from expertcache_spec.schedule.work import Load
from expertcache_spec.trace import Event

READ, GATE_UP, DOWN = 4_000_000, 4_000_000, 2_000_000
"""Nanoseconds of one request, and of the two stages of one expert."""
EVENTS, WORKERS = 12, 2
CHUNKS = {"sync": 2, "split:1": 2, "pipelined": 2, "staged": 1}
"""So that every discipline reads a record by two requests, one a stage."""


class Took(NamedTuple):
    """Seconds of a run. read: nanoseconds of one request in it, on the average. stretch: computing, by what was due."""

    seconds: float
    read: int
    stretch: float


class SlowMachine:
    """This machine, with requests that take a fixed time; `reads` has what each took, in nanoseconds."""

    def __init__(self) -> None:
        self._machine, self.reads = this_machine(), list[int]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._machine, name)

    def open(self, path: Path) -> Any:
        """As `seam.Machine.open`."""
        return SlowFile(self._machine.open(path), self.reads)


class SlowFile:
    """A file whose reads take a fixed time."""

    def __init__(self, file: Any, reads: list[int]) -> None:
        self._file, self._reads = file, reads

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read_into(self, view: memoryview, offset: int) -> int:
        """As `seam.File.read_into`."""
        since = time.monotonic_ns()
        came = int(self._file.read_into(view, offset))
        time.sleep(max(0, since + READ - time.monotonic_ns()) / 1e9)
        self._reads.append(time.monotonic_ns() - since)
        return came


def _events() -> list[Event]:
    """Four keys an event, of which two were in the event before."""
    return [Event(0, (tuple((2 * number + at) % 32 for at in range(4)),), 0, number) for number in range(EVENTS)]


def measured(folder: Path, discipline: str) -> Took:
    """What the runtime takes for all events."""
    warm = Warm(folder, 2, 32, WORKERS, 1, 1, parts=("gate", "down"))
    warm.write()
    machine: Any = SlowMachine()
    due, spent = 0, 0
    with Runtime(
        warm, Budget(slots=8), discipline=discipline, workers=WORKERS, chunks=CHUNKS[discipline], machine=machine
    ) as runtime:  # fmt: skip
        since = time.perf_counter()
        for event in _events():
            with runtime.serve(event) as work:
                for batch in work.batches():
                    work_time, began = len(batch.gate_up) * GATE_UP + len(batch.down) * DOWN, time.monotonic_ns()
                    time.sleep(work_time / 1e9)
                    due, spent = due + work_time, spent + time.monotonic_ns() - began
        return Took(time.perf_counter() - since, int(statistics.mean(machine.reads)), spent / due)


def computed(discipline: str, took: Took) -> float:
    """Seconds of the specification's schedule of the same events, for the times of that run."""
    loads, before = [], set[Key]()
    for number, event in enumerate(_events(), 1):
        missing = frozenset(event.keys) - before
        loads.append(Load(event.keys, missing, tokens=number))
        before |= set(event.keys)
    costs = Costs(gate_up=int(GATE_UP * took.stretch), down=int(DOWN * took.stretch))
    scenario = Scenario(
        tuple(loads), ((Request("gate_up", PAGE), Request("down", PAGE)),), costs,
        Storage(workers=WORKERS, latency=took.read, bandwidth=10**15), parse_discipline(discipline),
    )  # fmt: skip
    return schedule(scenario).makespan / 1e9
