"""The runtime's plans: what its reader is about to do, asked before it does it."""

from __future__ import annotations

from collections.abc import Sequence

from expertcache_reference import planning
from expertcache_reference.reader import Flight, Request
from expertcache_reference.reader.flights import flight_of
from expertcache_reference.system.mapping import anonymous
from expertcache_spec.fanout import Chunk
from expertcache_spec.layout.extents import Extent
from expertcache_spec.model import Key


def _flight(extents: Sequence[Extent], chunks: int, page: int) -> Flight:
    """The flight of a record at those places."""
    into = anonymous(sum(extent.length for extent in extents))
    return flight_of(Request("record", extents, into, chunks), True, page)


def plan_chunks(size: int, page: int, wanted: int) -> list[Chunk]:
    """The chunks that the workers take of a record of that many bytes."""
    return [job.chunk for job in _flight([Extent("record", 0, size)], wanted, page).jobs[0]]


def extents(layout: planning.LayoutRequest, key: Key) -> tuple[Extent, ...]:
    """Where the reader finds the record: what follows on itself in a file is one request."""
    return _flight(planning.extents(layout, key), 1, 1).extents
