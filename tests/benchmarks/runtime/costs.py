"""What one lookup costs in Python when everything hits, with and without a log; and what memory a run takes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.runtime.reading import TOP_K, Warm

from expertcache_reference.runtime import Runtime
from expertcache_reference.system import this_machine
from expertcache_spec.model import Budget
from expertcache_spec.residency import Settings
from expertcache_spec.trace import Event

EVENTS = 2000
BYPASS = Settings(no_victim="bypass")


def lookup_microseconds(folder: Path, *, log: bool) -> float:
    """Microseconds of CPU a lookup: serve, hand out, look at every record, release; all hits, eight keys an event."""
    warm = Warm(folder, 1, 64, 2, 1, 1)
    warm.write()
    lines: list[dict[str, Any]] = []
    with Runtime(warm, Budget(slots=64), workers=2, log=lines.append if log else None) as runtime:
        rows = [tuple(range(at, at + TOP_K)) for at in range(0, 64, TOP_K)]
        for number in range(len(rows)):
            _serve(runtime, Event(0, (rows[number],), 0, number))
        events = [Event(0, (rows[number % len(rows)],), 0, number) for number in range(len(rows), EVENTS)]
        since = time.thread_time()
        for event in events:
            _serve(runtime, event)
        spent = time.thread_time() - since
        assert runtime.report().hits == len(events) * TOP_K
    return spent * 1e6 / (len(events) * TOP_K)


def _serve(runtime: Runtime, event: Event) -> None:
    with runtime.serve(event) as work:
        for batch in work.batches():
            for key in batch.keys:
                work.record(key)


def memory(folder: Path) -> dict[str, int]:
    """Bytes of a run in a process of its own: budget, one event, the peak above what it held before it opened."""
    command = [sys.executable, "-m", "tests.benchmarks.runtime.costs", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    budget, event, before, after = map(int, done.stdout.split())
    return {"budget": budget, "event": event, "overhead": after - before - budget - event}


def _run(folder: Path) -> tuple[int, int, int, int]:
    """A run in which one event holds the whole budget while others are served beside it, and not kept."""
    warm = Warm(folder, 332, 32, 4, 4, 1, slots=TOP_K)
    warm.write()
    machine = this_machine()
    before = machine.usage().peak_memory or 0
    with Runtime(warm, Budget(slots=TOP_K), "lru", BYPASS, workers=4, chunks=4) as runtime:
        with runtime.serve(Event(0, (tuple(range(TOP_K)),), 0, 0)) as held:
            list(held.batches())
            for number in range(1, 4):
                _serve(runtime, Event(0, (tuple(range(number * TOP_K, (number + 1) * TOP_K)),), 1, number))
        for number in range(1, 8):
            at = number % 4 * TOP_K
            _serve(runtime, Event(0, (tuple(range(at, at + TOP_K)),), 0, number))
    return TOP_K * warm.size, TOP_K * warm.size, before, machine.usage().peak_memory or 0


if __name__ == "__main__":
    print(*_run(Path(sys.argv[1])))
