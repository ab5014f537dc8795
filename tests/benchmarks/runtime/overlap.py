"""Split reads with real threads beside the schedule that the specification computes for the same times.

Every request is a real read that takes a fixed time, every computation a sleep: then the specification knows all
durations, and what is left of a difference is the runtime's own.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

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


class SlowMachine:
    """This machine, with requests that take a fixed time."""

    def __init__(self) -> None:
        self._machine = this_machine()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._machine, name)

    def open(self, path: Path) -> Any:
        """As `seam.Machine.open`."""
        return SlowFile(self._machine.open(path))


class SlowFile:
    """A file whose reads take a fixed time."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read_into(self, view: memoryview, offset: int) -> int:
        """As `seam.File.read_into`."""
        until = time.monotonic_ns() + READ
        came = int(self._file.read_into(view, offset))
        time.sleep(max(0, until - time.monotonic_ns()) / 1e9)
        return came


def _events() -> list[Event]:
    """Four keys an event, of which two were in the event before."""
    return [Event(0, (tuple((2 * number + at) % 32 for at in range(4)),), 0, number) for number in range(EVENTS)]


def measured(folder: Path, discipline: str) -> float:
    """Seconds that the runtime takes for all events."""
    warm = Warm(folder, 2, 32, WORKERS, 1, 1, parts=("gate", "down"))
    warm.write()
    machine: Any = SlowMachine()
    with Runtime(
        warm, Budget(slots=8), discipline=discipline, workers=WORKERS, chunks=CHUNKS[discipline], machine=machine
    ) as runtime:  # fmt: skip
        since = time.perf_counter()
        for event in _events():
            with runtime.serve(event) as work:
                for batch in work.batches():
                    time.sleep((len(batch.gate_up) * GATE_UP + len(batch.down) * DOWN) / 1e9)
        return time.perf_counter() - since


def computed(discipline: str) -> float:
    """Seconds of the specification's schedule of the same events."""
    loads, before = [], set[Key]()
    for number, event in enumerate(_events(), 1):
        missing = frozenset(event.keys) - before
        loads.append(Load(event.keys, missing, tokens=number))
        before |= set(event.keys)
    scenario = Scenario(
        tuple(loads), ((Request("gate_up", PAGE), Request("down", PAGE)),), Costs(gate_up=GATE_UP, down=DOWN),
        Storage(workers=WORKERS, latency=READ, bandwidth=10**15), parse_discipline(discipline),
    )  # fmt: skip
    return schedule(scenario).makespan / 1e9
