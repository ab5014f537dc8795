"""The measurement: records read by the runtime's own reader, over chunks, workers and conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import attrs

from expertcache_reference.disk.evidence import CONDITIONS, Condition, Evidence, PastCache, Target, opened
from expertcache_reference.disk.places import CannotMeasure, places
from expertcache_reference.reader import Reader, Request, Way
from expertcache_reference.system.seam import Machine
from expertcache_spec.layout.extents import Extent

Progress = Callable[[int, int], object]
"""Called with runs done and runs in all."""


@attrs.frozen
class Plan:
    """What is measured.

    record: bytes of a record. records: how many a run reads, or as many as the file has. at_once: how many are asked
    for together, as the misses of one layer are. chunks, workers: the fan-outs and pools to try, each with each.
    conditions: how the file is prepared. rounds: runs of each; odd rounds go backwards, so that no point is always
    first. way: of the reader. seed: of the places. Raises `CannotMeasure` for records of no bytes.
    """

    record: int = 7_077_888
    records: int = 16
    at_once: int = 1
    chunks: tuple[int, ...] = (1, 2, 4, 8)
    workers: tuple[int, ...] = (1, 4, 8)
    conditions: tuple[Condition, ...] = CONDITIONS
    rounds: int = 3
    way: Way = "pread"
    seed: int = 0

    def __attrs_post_init__(self) -> None:
        if self.record < 1:
            raise CannotMeasure(f"records of {self.record} bytes", where="plan", cure="give 1 byte or more")

    def points(self) -> list[tuple[int, int, int, Condition]]:
        """Round, chunks, workers and condition of each run, in order."""
        found: list[tuple[int, int, int, Condition]] = []
        for number in range(self.rounds):
            run = [(number, *rest) for rest in product(self.chunks, self.workers, self.conditions)]
            found += run if number % 2 == 0 else run[::-1]
        return found


@attrs.frozen
class Point:
    """One run. requests: what the reader asked of the system. nanoseconds: from the first submit to the last byte."""

    round: int
    chunks: int
    workers: int
    condition: Condition
    records: int
    requests: int
    nanoseconds: int
    evidence: Evidence


def sweep(machine: Machine, path: Path, plan: Plan, progress: Progress | None = None) -> Iterator[Point]:
    """Run after run. Raises `CannotMeasure` for a file too small, `ReadFailed`, `OSError`."""
    points = plan.points()
    for done, (number, chunks, workers, condition) in enumerate(points, 1):
        with opened(machine, path) as target:
            yield _run(machine, path, target, plan, number, chunks, workers, condition)
        if progress is not None:
            progress(done, len(points))


def _run(
    machine: Machine, path: Path, target: Target, plan: Plan, number: int, chunks: int, workers: int,
    condition: Condition,
) -> Point:  # fmt: skip
    seed = f"{plan.seed}/{number}/{chunks}/{workers}/{condition}"
    chosen, beside = places(path.name, target.size, machine.page, plan.record, plan.records, seed)
    memory = [machine.memory(plan.record) for _ in range(min(plan.at_once, len(chosen)))]
    for view in memory:
        view[:: machine.page] = bytes(len(view[:: machine.page]))  # the first touch of a page is no part of a read
    with Reader(PastCache(machine) if condition == "past" else machine, path.parent, workers, plan.way) as reader:
        target.prepare([*chosen, beside], condition)
        witness, resident = target.witness(beside), target.resident(chosen)
        before, start = machine.usage().device_bytes, machine.now()
        for at in range(0, len(chosen), len(memory)):
            _read(reader, chosen[at : at + len(memory)], memory, chunks)
        elapsed, after = machine.now() - start, machine.usage().device_bytes
        counts = reader.counts
    physical = None if before is None or after is None else after - before
    evidence = Evidence(counts.bytes, physical, resident, witness)
    return Point(number, chunks, workers, condition, len(chosen), counts.requests, elapsed, evidence)


def _read(reader: Reader, extents: list[Extent], memory: list[memoryview], chunks: int) -> None:
    """The records of one wave, until all are there."""
    pairs = zip(extents, memory, strict=False)  # the last wave may be smaller
    for read in reader.submit_all([Request(extent, [extent], view, chunks) for extent, view in pairs]):
        read.wait()
