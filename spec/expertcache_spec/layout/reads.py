"""Reads: which requests fetch a set of records under a layout, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import NamedTuple

import attrs

from expertcache_spec.contracts import ensure
from expertcache_spec.errors import InvalidModel
from expertcache_spec.layout.extents import Extent
from expertcache_spec.layout.placing import Layout
from expertcache_spec.model import Key


class Read(NamedTuple):
    """One request: what it fetches, and the extents that it was made for."""

    extent: Extent
    wanted: tuple[Extent, ...]


@ensure(lambda extents, result: sorted(e for read in result for e in read.wanted) == sorted(extents), "XC-LAYOUT-006")
def coalesce(extents: Sequence[Extent], gap: int = 0, most: int | None = None) -> list[Read]:
    """Requests for the extents, in file order: neighbours at most `gap` bytes apart become one (XC-LAYOUT-006).

    The bytes of a gap are read and thrown away. `most` bounds the bytes of a request that joins several extents; one
    extent stays one request.
    """
    found: list[list[Extent]] = []
    for extent in sorted(extents):
        if found:
            first, last = found[-1][0], max(found[-1], key=lambda e: e.end)
            near = extent.file == last.file and extent.offset - last.end <= gap
            if near and (most is None or max(extent.end, last.end) - first.offset <= most):
                found[-1].append(extent)
                continue
        found.append([extent])
    return [Read(Extent(g[0].file, g[0].offset, max(e.end for e in g) - g[0].offset), tuple(g)) for g in found]


def reads_of(layout: Layout, keys: Iterable[Key], gap: int = 0, most: int | None = None) -> list[Read]:
    """The requests that fetch the records; none for those of resident layers."""
    wanted = [extent for key in keys if key.layer not in layout.resident for extent in layout.place(key)]
    return coalesce(wanted, gap, most)


def wasted(reads: Iterable[Read]) -> int:
    """Bytes that the requests fetch and nobody wanted; what a request was asked for twice it fetches once."""
    found = 0
    for read in reads:
        end = read.extent.offset
        for extent in sorted(read.wanted):
            found += max(extent.offset - end, 0)
            end = max(end, extent.end)
        found += read.extent.end - end
    return found


@attrs.frozen(slots=False)
class ReadCost:
    """The time of requests one after the other: a fixed part each, and their bytes at a bandwidth.

    request: seconds a request. bandwidth: bytes a second. mbolt's replay uses 73 us and 11.3 GB/s. Raises
    `InvalidModel` for a time below 0, a bandwidth that is not above it, and what is not finite.
    """

    request: float
    bandwidth: float

    def __attrs_post_init__(self) -> None:
        if not (isfinite(self.request) and isfinite(self.bandwidth) and self.request >= 0 < self.bandwidth):
            said = f"{self.request!r} s a request at {self.bandwidth!r} bytes a second"
            raise InvalidModel(said, where="read cost", cure="give finite numbers, the bandwidth above 0")

    def of(self, count: int, size: int) -> float:
        """Seconds of `count` requests of together `size` bytes."""
        return count * self.request + size / self.bandwidth

    @property
    def worthwhile_gap(self) -> int:
        """The largest gap whose bytes cost no more time than the request that they save."""
        return int(self.request * self.bandwidth)
