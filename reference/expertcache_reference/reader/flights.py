"""What is being read: requests, their plans of chunks, and how far each has come."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple, Protocol

import attrs

from expertcache_reference.reader.errors import ReadFailed
from expertcache_spec.errors import InvalidModel
from expertcache_spec.fanout import Chunk, chunk_plan
from expertcache_spec.layout.extents import Extent

Stages = Sequence[Sequence[Chunk]]
"""Runs of a record, by the stage in which they are read: together every byte once."""


class Request(NamedTuple):
    """One record to read: its extents, end to end, into the first bytes of `into`.

    chunks: how many reads each run is cut into. stages: runs in the order in which they are wanted; one run, the whole
    record, unless given.
    """

    key: Hashable
    extents: Sequence[Extent]
    into: memoryview
    chunks: int = 1
    stages: Stages = ()


@attrs.define(eq=False)
class Job:
    """One chunk of a flight. `taken`: a worker has it or had it. `number`: for whoever watches."""

    flight: Flight
    stage: int
    chunk: Chunk
    taken: bool = False
    number: int = 0


@attrs.define(eq=False)
class Flight:
    """One record under way.

    demand: somebody waits for it. jobs: its chunks by stage, until it has landed. handles: how many asked. left: chunks
    not yet delivered, by stage. in_service: chunks that workers have. over: no further chunk begins. done: the outcome
    is known and the destination is the caller's.
    """

    key: Hashable
    extents: tuple[Extent, ...]
    into: memoryview
    demand: bool
    jobs: tuple[tuple[Job, ...], ...] = ()
    left: list[int] = attrs.field(factory=list)
    in_service: int = 0
    handles: int = 1
    over: bool = False
    done: bool = False
    error: ReadFailed | None = None

    def has(self, stages: int) -> bool:
        """Whether all bytes of the first so many stages are there."""
        return self.error is None and not any(self.left[:stages])


class Watcher(Protocol):
    """Who hears what happens, under the lock: it is quick, and raises nothing."""

    def began(self, job: Job, worker: int) -> None:
        """A worker has taken the chunk."""

    def ended(self, job: Job, worker: int) -> None:
        """The chunk is there, every byte of it."""

    def landed(self, flight: Flight) -> None:
        """The outcome is known, no worker writes any more: `flight.error` says what went wrong, if anything did."""


def joined(extents: Iterable[Extent]) -> tuple[Extent, ...]:
    """The same bytes in the same order; what follows on itself in a file is one extent."""
    found: list[Extent] = []
    for extent in extents:
        if found and found[-1].file == extent.file and found[-1].end == extent.offset:
            found[-1] = found[-1]._replace(length=found[-1].length + extent.length)
        else:
            found.append(extent)
    return tuple(found)


def by_stage(flights: Iterable[Flight]) -> list[Job]:
    """The jobs of the first stage of each, then those of the second."""
    stages = zip_longest(*[flight.jobs for flight in flights], fillvalue=())
    return [job for stage in stages for jobs in stage for job in jobs]


@lru_cache(maxsize=1024)
def _cut(size: int, stages: tuple[tuple[Chunk, ...], ...], chunks: int, page: int) -> tuple[tuple[Chunk, ...], ...]:
    """The chunks of a record by stage, of one run unless given; () where the stages do not make the record."""
    stages = stages or ((Chunk(0, size),),)
    runs = sorted(run for stage in stages for run in stage)
    ends = [0, *(run.offset + run.length for run in runs)]
    if [run.offset for run in runs] != ends[:-1] or ends[-1] != size:
        return ()
    return tuple(
        tuple(
            Chunk(run.offset + chunk.offset, chunk.length)
            for run in stage
            for chunk in chunk_plan(run.length, chunks, page)
        )
        for stage in stages
    )


def flight_of(request: Request, demand: bool, page: int) -> Flight:
    """The flight of a request, cut into jobs; raises `InvalidModel` where extents or stages do not make the record."""
    size = sum([extent.length for extent in request.extents])
    stages = tuple(map(tuple, request.stages)) if request.stages else ()
    cut = _cut(size, stages, request.chunks, page)  # records of a layer are all cut alike
    if size > len(request.into) or not cut:
        raise InvalidModel(
            f"extents of {size} bytes in stages {stages}, room for {len(request.into)}",
            where=f"read of {request.key}",
            cure="give extents and stages of every byte once, and memory for all of them",
        )
    extents = tuple(request.extents) if len(request.extents) == 1 else joined(request.extents)
    flight = Flight(request.key, extents, request.into, demand)
    flight.jobs = tuple([tuple([Job(flight, at, chunk) for chunk in stage]) for at, stage in enumerate(cut)])
    flight.left = [len(jobs) for jobs in flight.jobs]
    return flight
