"""Legal reads: bytes before compute, leases, shared bandwidth, and demand before speculation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from expertcache_spec.schedule.look import Look, latest
from expertcache_spec.schedule.tasks import TaskId


def bandwidth_is_shared_evenly(look: Look) -> Iterator[str]:
    """A request waits out its latency, then transfers until its share of every nanosecond adds up to its bytes."""
    storage, grain = look.scenario.storage, look.scenario.storage.grain
    spans = {task: (span.start + storage.wait, span.end) for task, span in look.schedule.spans.items()
             if task.kind == "read"}  # fmt: skip
    sizes = {task: storage.transfer(_bytes(look, task)) for task in spans}
    moving = [spans[task] for task, transfer in sizes.items() if transfer]
    edges = sorted({edge for span in moving for edge in span} | {end - 1 for _, end in moving})
    shares = {
        (a, b): (b - a) * (grain // storage.divisor(sum(begin <= a and b <= end for begin, end in moving)))
        for a, b in pairwise(edges)
    }
    for task, (begin, end) in spans.items():
        done = sum(grains for (a, b), grains in shares.items() if begin <= a and b <= end)
        but_last = sum(grains for (a, b), grains in shares.items() if begin <= a and b <= end - 1)
        lacks = sizes[task] * grain
        if end < begin or (begin != end if not lacks else not but_last < lacks <= done):
            yield f"{task} is served from {begin} to {end}"


def _bytes(look: Look, task: TaskId) -> int:
    return look.scenario.record(look.key(task))[task.part].bytes


def bytes_are_complete_before_compute(look: Look) -> Iterator[str]:
    """A stage starts when its bytes are complete: its own reads, or the whole read or guess of an earlier event."""
    for event, load in enumerate(look.scenario.loads):
        for slot, key in enumerate(load.keys):
            for stage in ("gate_up", "down"):
                if key in load.missing:
                    ready = latest(look.reads_of(event, slot, stage))
                else:
                    ready = latest(look.brought(event, key)[1])
                if look.span(event, stage, slot).start < ready:
                    yield f"event {event} slot {slot}: {stage} starts before its bytes are complete"


def reads_begin_when_their_event_is_known(look: Look) -> Iterator[str]:
    """A demand read begins after its event's route, a speculative one after the route of the event that issued it."""
    for task, span in look.schedule.spans.items():
        issuer, _ = look.speculative.get(task, (task.event, None))
        if task.kind == "read" and span.start < look.span(issuer, "route").end:
            yield f"{task} begins before anybody knows of it"


def nothing_is_read_beside_its_guess(look: Look) -> Iterator[str]:
    """A guess of a record that nobody adopted is over before a later event's read of it begins."""
    for task, span in look.schedule.spans.items():
        if task.kind == "read":
            issuer, _ = look.speculative.get(task, (task.event, None))
            if span.start < look.guessed_until(issuer, look.key(task)):
                yield f"{task} reads what is being read on speculation"


def leases_end_at_execution(look: Look) -> Iterator[str]:
    """No read into a victim's room begins before every event that leases the victim has executed."""
    for event in range(len(look.scenario.loads)):
        room = look.room_at(event)
        for task, span in look.schedule.of(event, "read"):
            if task not in look.speculative and span.start < room:
                yield f"{task} overwrites a record that is still in use"


def demand_goes_before_speculation(look: Look) -> Iterator[str]:
    """No request starts on speculation while a demand request waits for a worker."""
    reads = [(task, span) for task, span in look.schedule.spans.items() if task.kind == "read"]
    asked = {task: look.demanded_at(task) for task, _ in reads}
    waiting = [(max(at, look.waits_from(task)), span.start, task) for task, span in reads
               if (at := asked[task]) is not None]  # fmt: skip
    for task, span in reads:
        at = asked[task]
        if task in look.speculative and (at is None or span.start < at):
            for since, until, other in waiting:
                if since < span.start < until:
                    yield f"{task} starts on speculation while {other} waits"


READS: tuple[tuple[str, Callable[[Look], Iterator[str]]], ...] = (
    ("XC-SCHED-003", bandwidth_is_shared_evenly),
    ("XC-SCHED-004", reads_begin_when_their_event_is_known),
    ("XC-SCHED-005", bytes_are_complete_before_compute),
    ("XC-SCHED-006", leases_end_at_execution),
    ("XC-SCHED-015", nothing_is_read_beside_its_guess),
)
DEMAND: tuple[tuple[str, Callable[[Look], Iterator[str]]], ...] = (("XC-SCHED-014", demand_goes_before_speculation),)
