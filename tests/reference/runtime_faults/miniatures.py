"""Runtimes with one fault each, as engines have had them: what is patched, where it shows, which rules it breaks."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import attrs

from expertcache_reference.reader import transfer
from expertcache_reference.reader.errors import ReadFailed, refused
from expertcache_reference.reader.flights import Flight, Job
from expertcache_reference.reader.service import Service
from expertcache_reference.runtime.contents import Contents
from expertcache_reference.runtime.core import Core
from expertcache_reference.runtime.journal import Journal
from expertcache_reference.runtime.runtime import Runtime
from expertcache_reference.runtime.wave import Wave
from expertcache_reference.runtime.work import Work
from expertcache_reference.slots import Arena, Slot
from expertcache_reference.system.simulated import Device, Faults
from expertcache_spec.model import Budget, Key
from expertcache_spec.residency import Progress
from expertcache_spec.residency.room import Partition

from ..runtime_menu import PROGRAMS
from ..runtime_programs import Program, event, store

PROGRAM = PROGRAMS["two slots, so that streams wait in line"]
QUEUED = Program(
    store(layers=1, experts=6), Budget(slots=6), streams=((event(0, 0, 1), event(0, 1, 2, number=1)),),
    before=tuple(lambda runtime, at=at: runtime.prefetch(Key(0, at)) for at in (3, 4, 5)),  # type: ignore[misc]
    options={"workers": 1, "chunks": 3},
)  # fmt: skip


@attrs.frozen
class Miniature:
    """One fault.

    rules: those of which at least one must be named. patches: what it changes. program, faults, device: where it shows.
    engine: whose report it is.
    """

    rules: tuple[str, ...]
    patches: Sequence[Any]
    engine: str
    program: Program = PROGRAM
    faults: Faults = attrs.field(factory=Faults)
    device: Device = attrs.field(factory=Device)


def _patched(owner: Any, name: str, make: Callable[[Any], Any]) -> Any:
    return patch.object(owner, name, make(getattr(owner, name)))


# ---------------------------------------------------------------------------------------------- slots and leases


def _refilled(take: Any) -> Any:
    def refilled(arena: Arena, size: int) -> Slot:
        """The slot that was filled longest ago, whoever still reads it."""
        slot: Slot = take(arena, size)
        given = arena.__dict__.setdefault("given", [])
        given.append(slot)
        return given[0] if len(given) % 3 == 0 else slot

    return refilled


def _released_at_encode(batches: Any) -> Any:
    def early(work: Work) -> Any:
        """The lease ends when the batches have been handed out, and the engine works on."""
        for batch in batches(work):
            wave, core = work.wave, work._core
            wave.wait(lambda wave=wave: not wave.pending)
            with core.lock:
                if wave.ticket in core.works and not wave.selection.deferred:
                    for slot in wave._places.values():
                        slot.uses -= 1
                    core.release(wave.ticket)
            yield batch

    return early


def _lost_release(release: Any) -> Any:
    return lambda work: None


def _leased_evicted(_: Any) -> Any:
    return lambda partition, key: None


# ---------------------------------------------------------------------------------------------- reads


def _published_early(hand_in: Any) -> Any:
    def early(service: Service, worker: int, job: Job, *rest: Any) -> None:
        """The first chunk to arrive stands for all."""
        hand_in(service, worker, job, *rest)
        if not job.flight.done:
            service._land(job.flight)

    return early


def _short_as_whole(_: Any) -> Any:
    def once(opened: Any, piece: Any, into: memoryview, most: int, count: Any) -> None:
        count(opened.file.read_into(into[:most], piece.offset))

    return once


def _says_delivered(hand_in: Any) -> Any:
    def said(service: Service, worker: int, job: Job, error: Any, came: list[int], *times: int) -> None:
        job.chunk = job.chunk._replace(length=sum(came))
        hand_in(service, worker, job, error, came, *times)

    return said


def _interrupted_is_failed(read: Any) -> Any:
    def once(opened: Any, piece: Any, into: memoryview, most: int, count: Any) -> None:
        try:
            came = opened.file.read_into(into[:most], piece.offset)
        except InterruptedError as error:
            raise refused(opened.path, piece, 0, error) from error
        count(came)

    return once


def _one_waiter_told(told: Any) -> Any:
    def first(core: Core, key: Key, tickets: tuple[int, ...], error: ReadFailed | None) -> None:
        told(core, key, tickets[:1] if error is not None else tickets, error)

    return first


def _read_twice(promote: Any) -> Any:
    def again(service: Service, flight: Flight) -> None:
        """Demand has a queue of its own, and reads what speculation reads already."""
        if not flight.demand:
            flight.demand = True
            for stage in flight.jobs:
                for job in stage:
                    flight.left[job.stage] += 1
                    service._queue.demand.append(Job(flight, job.stage, job.chunk))
            service._work.notify_all()

    return again


def _speculation_first(submit: Any) -> Any:
    def behind(service: Service, requests: Any, *, demand: bool = True) -> Any:
        """One queue, first come, first served."""
        flights = submit(service, requests, demand=demand)
        queue = service._queue
        queue.demand = deque([*queue.speculation, *queue.demand] if demand else [*queue.demand, *queue.speculation])
        queue.speculation.clear()
        return flights

    return behind


def _stale_after_failure(_: Any) -> Any:
    def ignored(core: Core, flight: Flight) -> None:
        """The return value of the read is not looked at."""
        flight.error = None
        ORIGINAL_LANDED(core, flight)

    return ignored


ORIGINAL_LANDED = Core.landed


def _lost_failure(failed: Any) -> Any:
    def kept(core: Core, key: Key, error: ReadFailed) -> Progress:
        """The mark that the record is in flight stays where the read has failed."""
        return Progress(())

    return kept


# ---------------------------------------------------------------------------------------------- budgets and work


def _in_flight_uncounted(_: Any) -> Any:
    def over(part: Partition, more_slots: int = 0, more_bytes: int = 0) -> bool:
        return part.slots is not None and len(part.resident) + more_slots > 2 * part.slots

    return over


def _resize_ignored(_: Any) -> Any:
    def ignored(contents: Contents, budget: Budget) -> tuple[Key, ...]:
        contents._say("resize", slots=budget.slots)
        return ()

    return ignored


def _reset_keeps(_: Any) -> Any:
    def kept(contents: Contents, scope: Any) -> None:
        contents._core.residency.reset("history")
        contents._say("reset", scope=scope)

    return kept


def _by_arrival(combined: Any) -> Any:
    def arrival(journal: Journal, ticket: int, event: Any, keys: Sequence[Key]) -> None:
        combined(journal, ticket, event, sorted(keys, key=lambda key: (key.expert * 7 + 3) % 5))

    return arrival


def _no_wait(_: Any) -> Any:
    return lambda wave, ready: None


MINIATURES: dict[str, Miniature] = {
    "a slot is refilled while a step reads it": Miniature(
        ("XC-HIST-007",), [_patched(Arena, "take", _refilled)], "ds4#384", PROGRAMS["two streams, three slots"]
    ),
    "a lease ends when its work is encoded": Miniature(
        ("XC-RES-017", "XC-HIST-008"), [_patched(Work, "batches", _released_at_encode)], "ds4#384"
    ),
    "a release is lost": Miniature(("XC-HIST-011",), [_patched(Work, "release", _lost_release)], "colibri#316"),
    "a leased record is evicted": Miniature(
        ("XC-RES-005", "XC-RES-024", "XC-HIST-005", "XC-RES-010"),
        [_patched(Partition, name, _leased_evicted) for name in ("hold", "unhold")], "vllm#50562",
    ),
    "a record is published before its last chunk": Miniature(
        ("XC-RES-015",), [_patched(Service, "_hand_in", _published_early)], "bvi#3"
    ),
    "a short read is taken for the whole": Miniature(
        ("XC-FANOUT-005",),
        [_patched(transfer, "_read", _short_as_whole), _patched(Service, "_hand_in", _says_delivered)],
        "colibri#236", faults=Faults(bytes_per_call=7),
    ),
    "an interruption is taken for a failure": Miniature(
        ("fails without an error",), [_patched(transfer, "_read", _interrupted_is_failed)], "nginx-zstd-module#215",
        faults=Faults(interrupt_every=2),
    ),
    "an error reaches one waiter only": Miniature(
        ("XC-HIST-011", "deadlock"), [_patched(Core, "_told", _one_waiter_told)], "colibri#78",
        PROGRAMS["two streams, three slots"], Faults(errors=dict.fromkeys(range(1, 7), errno.EIO)),
    ),
    "speculation and demand read one key twice": Miniature(
        ("XC-HIST-006",), [_patched(Service, "promote", _read_twice)], "k3-out-of-core#32", PROGRAMS["prefetches"]
    ),
    "speculation goes before demand": Miniature(
        ("XC-SCHED-014",), [_patched(Service, "submit", _speculation_first)], "ds4 7617598c", QUEUED,
        device=Device(latency=100),
    ),
    "bytes of a failed read are published": Miniature(
        ("XC-RES-015",), [_patched(Core, "landed", _stale_after_failure)], "bvi#3", faults=Faults(errors={2: errno.EIO})
    ),
    "a failed read stays in flight": Miniature(
        ("XC-HIST-011", "deadlock"), [_patched(Core, "_failed", _lost_failure)], "colibri#78",
        faults=Faults(errors={2: errno.EIO}),
    ),
    "what is in flight is not counted": Miniature(
        ("XC-RES-010", "XC-RES-024", "XC-HIST-005", "XC-RES-021"), [_patched(Partition, "over", _in_flight_uncounted)],
        "ds4#802",
    ),
    "a smaller budget is ignored": Miniature(
        ("XC-RES-011",), [_patched(Contents, "resize", _resize_ignored)], "colibri#1034", PROGRAMS["resizes"]
    ),
    "a reset keeps the contents": Miniature(
        ("XC-RES-022", "XC-RES-003"), [_patched(Contents, "reset", _reset_keeps)], "llama.cpp#23170", PROGRAMS["resets"]
    ),
    "results are summed as they arrive": Miniature(
        ("XC-HIST-009",), [_patched(Journal, "combined", _by_arrival)], "ds4#1082"
    ),
    "work begins before its bytes are there": Miniature(
        ("XC-HIST-008",), [_patched(Wave, "wait", _no_wait)], "llama.cpp#23170"
    ),
}  # fmt: skip
"""What is wrong to the runtime that does it."""

__all__ = ["MINIATURES", "Miniature", "Runtime"]
