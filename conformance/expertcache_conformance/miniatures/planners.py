"""The planners. Those of chunks and layouts, each wrong in one sentence, after a report, some only odd; then schedules.

`planners_in_time` has those of schedules, `planners_of_reads` those of reads and files; all of them join `PLANNERS` or
`ODD_PLANNERS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from expertcache_conformance.adapters.planning import LAYOUTS, LayoutRequest
from expertcache_conformance.miniatures import planners_in_time, planners_of_reads  # noqa: F401 - they join the lists
from expertcache_conformance.miniatures.planner import ODD_PLANNERS, PLANNERS, Planner, planner
from expertcache_conformance.miniatures.planners_of_reads import placed
from expertcache_spec.fanout import Chunk, chunk_plan
from expertcache_spec.layout import Extent
from expertcache_spec.model import Key

__all__ = ["ODD_PLANNERS", "PLANNERS", "Planner"]

Chunks = Sequence[tuple[int, int]]


# ------------------------------------------------------------------------------------------------ chunks


def lengths(sizes: Iterable[int]) -> Chunks:
    """Chunks of those lengths, end to end."""
    found: list[tuple[int, int]] = []
    for size in sizes:
        found.append((sum(length for _, length in found), size))
    return found


def pages_of(size: int, page: int, wanted: int) -> tuple[int, int]:
    """Pages and chunks of a record as they should be; no pages where it is read whole."""
    count = len(chunk_plan(size, wanted, page))
    return (size // page if count > 1 else 0), count


@planner("Flash-MoE forks, tiered records", "XC-FANOUT-001")
def dropped_tail_chunk(size: int, page: int, wanted: int) -> Chunks:
    """The pages that do not divide evenly are not read."""
    pages, count = pages_of(size, page, wanted)
    return lengths([pages // count * page] * count) if pages else [(0, size)]


@planner("Flash-MoE forks, tiered records", "XC-FANOUT-001")
def zero_length_chunk(size: int, page: int, wanted: int) -> Chunks:
    """A last chunk of no bytes makes up the number asked for."""
    plan = [(chunk.offset, chunk.length) for chunk in chunk_plan(size, wanted, page)]
    return [*plan, (size, 0)] if size and len(plan) < wanted else plan


@planner("Flash-MoE --cache-io-split, before the clamp", "XC-FANOUT-002")
def more_chunks_than_pages(size: int, page: int, wanted: int) -> Chunks:
    """The count is clamped to 8 and not to the record's pages, and pages are cut to reach it."""
    if not size or size % page or wanted < 2 or size // page >= min(wanted, 8):
        return chunk_plan(size, wanted, page)
    share = size // min(wanted, 8)
    return lengths([share] * (min(wanted, 8) - 1) + [size - share * (min(wanted, 8) - 1)])


@planner("Flash-MoE --cache-io-split, without the clamp", "XC-FANOUT-002")
def nine_chunks(size: int, page: int, wanted: int) -> Chunks:
    """As many chunks as are asked for, where there are pages for them."""
    if not size or size % page or wanted <= 8:
        return chunk_plan(size, wanted, page)
    count = min(wanted, size // page)
    share, rest = divmod(size // page, count)
    return lengths((share + (n < rest)) * page for n in range(count))


@planner("Flash-MoE --cache-io-split", "XC-FANOUT-003")
def remainder_to_the_last_chunk(size: int, page: int, wanted: int) -> Chunks:
    """The last chunk takes all the pages that do not divide evenly."""
    pages, count = pages_of(size, page, wanted)
    share = pages // count
    return lengths([share * page] * (count - 1) + [size - share * page * (count - 1)])


@planner("BigMoeOnEdge#117", "XC-FANOUT-003")
def unaligned_chunk(size: int, page: int, wanted: int) -> Chunks:
    """Equal bytes instead of whole pages."""
    _, count = pages_of(size, page, wanted)
    return lengths(size // count + (n < size % count) for n in range(count))


class _Last:
    """How many chunks the record asked for before was read in."""

    size, count = -1, 0


@planner("Flash-MoE forks, tiered records", "XC-FANOUT-004")
def count_of_the_record_before(size: int, page: int, wanted: int) -> Chunks:
    """The count stays that of the size asked for before, until it is asked for twice."""
    count = len(chunk_plan(size, wanted, page))
    if _Last.size not in (-1, size) and 1 < _Last.count <= size // page and not size % page:
        count = _Last.count
    _Last.size, _Last.count = size, len(chunk_plan(size, wanted, page))
    return chunk_plan(size, count, page)


# ------------------------------------------------------------------------------------------------ layouts


@planner("llama.cpp#6774, FreeToken#25", "XC-LAYOUT-001")
def extent_beyond_the_file(layout: LayoutRequest, key: Key) -> list[Extent]:
    """The first record's number is 1: the last one lies behind the end."""
    found = placed(layout).place(key)
    size = sum(extent.length for extent in found)
    return [extent._replace(offset=extent.offset + size) for extent in found]


@planner("colibri#1615", "XC-LAYOUT-002", layouts=["record-blocks"])
def overlapping_extents(layout: LayoutRequest, key: Key) -> list[Extent]:
    """Every record but the first begins a byte before the one before it ends, where nothing is between them."""
    found = list(placed(layout).place(key))
    first = found[0].offset <= layout.header or layout.alignment > 1
    return found if first else [extent._replace(offset=extent.offset - 1) for extent in found]


@planner("BigMoeOnEdge#117, GiorgioOppo/ds4@7344b400", "XC-LAYOUT-003", layouts=["record-blocks"])
def blocks_off_the_alignment(layout: LayoutRequest, key: Key) -> list[Extent]:
    """A block begins where there is room, a byte before the alignment, although its size is rounded up."""
    record, room = sum(layout.parts[key.layer].values()), layout.alignment
    shift = int(key.expert > 0 and record % room > 0)
    return [extent._replace(offset=extent.offset - shift) for extent in placed(layout).place(key)]


@planner("Micro-Expert-Router@64bf1e9", "XC-LAYOUT-004")
def wrong_projection_order(layout: LayoutRequest, key: Key) -> list[Extent]:
    """Up comes before gate."""
    found = list(placed(layout).place(key))
    rows = len(found) // len(layout.parts[key.layer])
    parts = [found[n : n + rows] for n in range(0, len(found), rows)]
    parts[:2] = parts[1::-1]
    return [extent for part in parts for extent in part]


@planner("colibri, scales of quantised experts", "XC-LAYOUT-004")
def a_part_left_out(layout: LayoutRequest, key: Key) -> tuple[Extent, ...]:
    """The last part of a record of several is not read."""
    found, parts = placed(layout).place(key), layout.parts[key.layer]
    rows = len(found) // len(parts)
    return found[:-rows] if len(parts) > 1 else found


@planner("ds4#514", "XC-LAYOUT-005", layouts=["packed-layers"])
def another_experts_bytes(layout: LayoutRequest, key: Key) -> tuple[Extent, ...]:
    """The experts are numbered from the end of the file."""
    return placed(layout).place(key._replace(expert=layout.experts - 1 - key.expert))


# ------------------------------------------------------------------------------------------------ odd and legal


@planner("any mmap engine", layouts=list(LAYOUTS[:-1]))
def extents_in_two_halves(layout: LayoutRequest, key: Key) -> list[tuple[str, int, int]]:
    """Every extent is told as two that follow each other."""
    found = []
    for file, offset, length in placed(layout).place(key):
        half = length // 2
        found += [(file, offset, half)] * bool(half) + [(file, offset + half, length - half)]
    return found


@planner("BigMoeOnEdge's packer", layouts=["own"])
def packs_backwards(layout: LayoutRequest, key: Key) -> list[tuple[str, int, int]]:
    """A file for each layer, its last expert first, records on the alignment with gaps between."""
    record, room = sum(layout.parts[key.layer].values()), layout.alignment
    stride = -(-record // room) * room + room
    return [(f"{key.layer}.pack", (layout.experts - 1 - key.expert) * stride, record)]


def _files(layout: LayoutRequest) -> dict[str, int]:
    ends = {layer: max(packs_backwards(layout, Key(layer, expert))[0][1] for expert in range(layout.experts))
            for layer in layout.parts}  # fmt: skip
    return {f"{layer}.pack": end + sum(layout.parts[layer].values()) for layer, end in ends.items()}


ODD_PLANNERS[-1] = attrs.evolve(ODD_PLANNERS[-1], methods={"extents": packs_backwards, "files": _files})


@planner("every engine without fan-out settings of its own")
def tuples_of_chunks(size: int, page: int, wanted: int) -> tuple[Chunk, ...]:
    """The plan of the specification in its own types."""
    return chunk_plan(size, wanted, page)
