"""Chrome traces: schedules in the Trace Event Format, which Perfetto and chrome://tracing open.

One process for each schedule, one thread for the compute queue and for each worker, complete events (`ph` X) in
microseconds, and the lease of each event as an asynchronous slice (`ph` b and e).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import inf, nextafter
from typing import Any

from expertcache_spec.schedule import COMPUTE, Scenario, Schedule, TaskId

Drawn = Mapping[str, tuple[Scenario, Schedule]]
"""Title to what is drawn under it."""


def label(scenario: Scenario, task: TaskId) -> str:
    """What a task is called: its kind, and the key that it is about."""
    if task.kind in ("route", "combine", "dispatch"):
        return f"{task.kind} layer {scenario.loads[task.event].layer}"
    return f"{task.kind} {'layer {} expert {}'.format(*key_of(scenario, task))}"


def key_of(scenario: Scenario, task: TaskId) -> tuple[int, int]:
    """The record that a read, a gate and up or a down is about."""
    load = scenario.loads[task.event]
    slots = len(load.keys)
    return load.keys[task.place] if task.place < slots else load.prefetches[task.place - slots]


def microseconds(nanoseconds: int) -> float:
    """As the format wants it: the least double from the quotient on whose thousandfold, cut off, is the nanoseconds.

    Perfetto reads a time as the whole part of its product with 1000, so that the quotient itself may come back one
    nanosecond short. Exact up to 2**50 ns, thirteen days.
    """
    found = nanoseconds / 1000
    return found if int(found * 1000) >= nanoseconds else nextafter(found, inf)


def thread(process: int, lane: int) -> int:
    """The number of a lane's thread, which no other thread and no process before the hundredth has.

    The thread whose number is its process's is taken for the main one, and stands before all others.
    """
    return 100 * process + lane - COMPUTE


def trace_events(drawn: Drawn) -> Iterator[dict[str, Any]]:
    """Every event of the trace, in a stable order."""
    for process, (title, (scenario, schedule)) in enumerate(drawn.items(), 1):
        yield _named(process, thread(process, COMPUTE), "process_name", title)
        lanes = sorted({span.lane for span in schedule.spans.values()} | {COMPUTE})
        for lane in lanes:
            name = "compute" if lane == COMPUTE else f"worker {lane}"
            yield _named(process, thread(process, lane), "thread_name", name)
        for task, span in sorted(schedule.spans.items(), key=lambda item: (item[1].start, item[1].end, item[0])):
            yield {
                "name": label(scenario, task), "cat": task.kind, "ph": "X", "pid": process,
                "tid": thread(process, span.lane),
                "ts": microseconds(span.start), "dur": microseconds(span.end - span.start),
                "args": {"event": task.event, "place": task.place, "part": task.part},
            }  # fmt: skip
        yield from _leases(process, scenario, schedule)


def _leases(process: int, scenario: Scenario, schedule: Schedule) -> Iterator[dict[str, Any]]:
    """From the end of its route to the end of its combine, an event holds its records."""
    for event, load in enumerate(scenario.loads):
        ends = (schedule.spans[TaskId(event, "route")].end, schedule.spans[TaskId(event, "combine")].end)
        for phase, at in zip("be", ends, strict=True):
            yield {
                "name": f"lease layer {load.layer}", "cat": "lease", "ph": phase, "id": f"{process}.{event}",
                "pid": process, "tid": thread(process, COMPUTE), "ts": microseconds(at),
            }  # fmt: skip


def _named(process: int, number: int, what: str, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": number, "args": {"name": name}}


def chrome_trace(drawn: Drawn) -> bytes:
    """The whole trace as JSON."""
    value = {"traceEvents": list(trace_events(drawn)), "displayTimeUnit": "ns"}
    return json.dumps(value, indent=1, allow_nan=False).encode() + b"\n"
