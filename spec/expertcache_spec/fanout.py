"""Fan-out: one record read as several chunks at once, and when more chunks help.

A plan cuts a record into runs of whole pages that parallel workers read; it changes how long a read takes, never which
bytes arrive. Chunks help while their service runs in parallel, and stop helping where each request costs more than the
parallelism still saves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from types import MappingProxyType
from typing import NamedTuple

import attrs

from expertcache_spec.contracts import ensure
from expertcache_spec.errors import InvalidModel

PAGES = (4096, 16384, 65536)
"""Bytes of a page on the systems that stream: x86-64 and most arm64 Linux, Apple silicon, large-page arm64 Linux."""

MOST_CHUNKS = 8


class Chunk(NamedTuple):
    """One read of a plan, in bytes from the record's first byte."""

    offset: int
    length: int


def chunk_count(size: int, wanted: int, page: int = 16384) -> int:
    """How many chunks a record of `size` bytes is read in when `wanted` are asked for (XC-FANOUT-002).

    Raises `InvalidModel` for a size or a count that is no whole number, a negative size, a page below one byte.
    """
    for name, value, least in (("size", size, 0), ("page", page, 1), ("chunks", wanted, None)):
        if type(value) is not int or (least is not None and value < least):
            raise InvalidModel(f"{name} {value!r}", where="chunk plan", cure="give whole numbers of bytes and chunks")
    if size == 0 or size % page:
        return 1
    return min(max(wanted, 1), MOST_CHUNKS, size // page)


@ensure(lambda size, result: [c.offset for c in result] == starts(c.length for c in result)[:-1], "XC-FANOUT-001")
@ensure(lambda size, result: sum(c.length for c in result) == size, "XC-FANOUT-001")
def chunk_plan(size: int, wanted: int, page: int = 16384) -> tuple[Chunk, ...]:
    """The chunks of a record of `size` bytes, in order (XC-FANOUT-001 to XC-FANOUT-004).

    An empty record is read by one empty chunk. Raises what `chunk_count` raises. Source: Flash-MoE `--cache-io-split`.
    """
    count = chunk_count(size, wanted, page)
    if count == 1:
        return (Chunk(0, size),)
    share, rest = divmod(size // page, count)
    lengths = [(share + (place < rest)) * page for place in range(count)]
    return tuple(map(Chunk, starts(lengths), lengths))


def starts(lengths: Iterable[int]) -> list[int]:
    """Where each run begins when they follow each other from 0, and at last where they end."""
    found = [0]
    for length in lengths:
        found.append(found[-1] + length)
    return found


def is_whole(plan: Sequence[Chunk], size: int, delivered: Sequence[int]) -> bool:
    """Whether the chunks, each having delivered so many bytes, make up a record of `size` bytes (XC-FANOUT-005).

    All three tests are needed: equal lengths alone pass a plan whose tail was dropped, an equal sum alone one chunk's
    excess for another's lack, both together one chunk that is read twice for another that is not read.
    """
    lengths = [chunk.length for chunk in plan]
    in_order = [chunk.offset for chunk in plan] == starts(lengths)[:-1]
    return in_order and lengths == list(delivered) and sum(lengths) == size


# ---------------------------------------------------------------------------------------------- when more chunks help


@attrs.frozen(slots=False)
class ReadTime:
    """Time of one token as a function of the chunks n of a record, in one unit throughout: rest + service / min(n, lanes) + request * n.

    rest: all that the plan does not change. service: the reading of the token's records by one worker each. request:
    what one more chunk a record costs, over all records of the token. lanes: how many chunks of a record are served at
    the same time.
    """  # noqa: E501

    rest: float
    service: float
    request: float
    lanes: int = MOST_CHUNKS

    def of(self, chunks: int) -> float:
        """The time of a token whose records are read in that many chunks; raises `InvalidModel` for fewer than one."""
        if chunks < 1 or self.lanes < 1:
            cure = "give whole numbers from 1"
            raise InvalidModel(f"{chunks} chunks on {self.lanes} lanes", where="read time", cure=cure)
        return self.rest + self.service / min(chunks, self.lanes) + self.request * chunks

    def best(self, most: int = MOST_CHUNKS) -> int:
        """The number of chunks up to `most` that takes least time, the smaller of equals; raises what `of` raises."""
        self.of(most)
        return min(range(1, most + 1), key=self.of)

    def helps(self, chunks: int) -> bool:
        """Whether one chunk more than that many still saves time.

        Below the lanes that is service > request * n * (n + 1); from the lanes on nothing is saved.
        """
        return chunks < self.lanes and self.service > self.request * chunks * (chunks + 1)


@attrs.frozen(slots=False)
class Fit:
    """A least-squares fit of `ReadTime` to a sweep: milliseconds a token, measured minus modelled, by chunks."""

    time: ReadTime
    residuals: Mapping[int, float]

    @property
    def worst(self) -> float:
        """The largest residual, in milliseconds without its sign."""
        return max(map(abs, self.residuals.values()))


def fit(sweep: Mapping[int, float], lanes: int = MOST_CHUNKS) -> Fit:
    """The three times that explain tokens per second by number of chunks best, for a given number of lanes.

    `sweep` maps chunks to tokens per second. Raises `InvalidModel` for chunks or lanes that are no whole number from 1,
    for a rate that is not finite and above 0, and where the points cannot determine three times.
    """
    if type(lanes) is not int or lanes < 1:
        raise InvalidModel(f"{lanes!r} lanes", where="fit", cure="give a whole number of lanes from 1")
    for chunks, rate in sweep.items():
        if type(chunks) is not int or chunks < 1 or not (isfinite(rate) and rate > 0):
            raise InvalidModel(
                f"{rate!r} tokens per second at {chunks!r} chunks",
                where="fit",
                cure="give rates above 0, chunks from 1",
            )
    if len({min(chunks, lanes) for chunks in sweep}) < 2 or len(sweep) < 3:
        cure = "measure at three or more splits, two of them up to the lanes"
        raise InvalidModel(f"{len(sweep)} points and {lanes} lanes", where="fit", cure=cure)
    rows = [(1.0, 1 / min(chunks, lanes), float(chunks)) for chunks in sweep]
    times = [1000 / rate for rate in sweep.values()]
    normal = [[sum(r[i] * r[j] for r in rows) for j in range(3)] for i in range(3)]
    right = [sum(r[i] * t for r, t in zip(rows, times, strict=True)) for i in range(3)]
    rest, service, request = _solved(normal, right)
    found = ReadTime(rest, service, request, lanes)
    return Fit(found, {chunks: 1000 / rate - found.of(chunks) for chunks, rate in sweep.items()})


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """The solution of a positive definite system, by elimination without pivoting."""
    rows = [[*line, value] for line, value in zip(matrix, right, strict=True)]
    for i, pivot in enumerate(rows):
        for j, line in enumerate(rows):
            if i != j:
                factor = line[i] / pivot[i]
                rows[j] = [a - factor * b for a, b in zip(line, pivot, strict=True)]
    return [line[-1] / line[i] for i, line in enumerate(rows)]


SWEEPS: Mapping[str, Mapping[int, float]] = MappingProxyType(
    {
        "pool": MappingProxyType({1: 11.71, 2: 12.46, 4: 12.52, 8: 12.02}),
        "dispatch": MappingProxyType({1: 11.04, 2: 12.07, 4: 13.33, 8: 12.04}),
    }
)
"""Published tokens per second by split of Flash-MoE forks, Q3 records of 332 pages on an M5 Max, warm files.

`pool`: eight persistent workers. `dispatch`: a Grand Central Dispatch group.
"""
