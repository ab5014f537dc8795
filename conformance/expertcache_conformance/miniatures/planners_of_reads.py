"""Planners of reads and files, each wrong in one sentence, after a report, some only odd; they join the lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from expertcache_conformance.adapters.planning import LayoutRequest
from expertcache_conformance.miniatures.planner import ODD_PLANNERS, PLANNERS, Planner, planner
from expertcache_conformance.questions.layouts import LayoutQuestion
from expertcache_spec.layout import Extent, Layout, coalesce, reads_of, resident_prefix, window, with_side_table
from expertcache_spec.layout.extents import round_up
from expertcache_spec.model import Key

Found = Mapping[str, tuple[int, str]]


def placed(layout: LayoutRequest) -> Layout:
    """The declared layout, as it should be."""
    parts = tuple(tuple(each.items()) for each in layout.parts.values())
    asked = LayoutQuestion(layout.kind, layout.experts, parts, layout.alignment, layout.header, layout.rows,
                           layout.roll)  # fmt: skip
    found = asked.declared()
    assert found is not None
    return found


# ------------------------------------------------------------------------------------------------ requests


def streamed_layout(asked: LayoutRequest) -> Layout:
    """The layout with its resident layers, as it should be."""
    return resident_prefix(placed(asked), asked.resident)


@planner("engines that coalesce reads", "XC-LAYOUT-006")
def only_the_first_request_of_a_file(streamed: LayoutRequest, keys: Sequence[Key]) -> list[Extent]:
    """What lies behind a gap in a file is taken for read with what lies before it."""
    found: dict[str, Extent] = {}
    for read in reads_of(streamed_layout(streamed), keys):
        found.setdefault(read.extent.file, read.extent)
    return list(found.values())


@planner("engines that read a part ahead", "XC-LAYOUT-006")
def a_part_is_read_again_with_its_record(streamed: LayoutRequest, keys: Sequence[Key]) -> list[Extent]:
    """Of a record of several parts the first is read by itself too."""
    layout = streamed_layout(streamed)
    first = [layout.place(key)[0] for key in keys if key.layer not in layout.resident and len(layout.place(key)) > 1]
    return [read.extent for read in reads_of(layout, keys)] + first


@planner("ds4 [B]", "XC-LAYOUT-010")
def resident_layers_are_read_too(streamed: LayoutRequest, keys: Sequence[Key]) -> list[Extent]:
    """Records of the resident layers are read on demand like all others."""
    return [read.extent for read in reads_of(placed(streamed), keys)]


@planner("engines under a limit of bytes a read", "XC-LAYOUT-006")
def a_long_request_is_cut(streamed: LayoutRequest, keys: Sequence[Key]) -> list[Extent]:
    """A request longer than eight bytes is cut there, and the rest is forgotten."""
    found = [read.extent for read in reads_of(streamed_layout(streamed), keys)]
    return [read._replace(length=min(read.length, 8)) for read in found]


@planner("ds4, one pread a projection")
def one_request_an_extent(streamed: LayoutRequest, keys: Sequence[Key]) -> list[Extent]:
    """Nothing is coalesced."""
    layout = streamed_layout(streamed)
    return [extent for key in keys if key.layer not in layout.resident for extent in layout.place(key)]


@planner("mbolt e7e9dbf")
def gaps_are_read_and_thrown_away(streamed: LayoutRequest, keys: Sequence[Key]) -> list[Extent]:
    """All that lies between two wanted extents of one file is read with them, the last file first."""
    layout = streamed_layout(streamed)
    wanted = [extent for key in keys if key.layer not in layout.resident for extent in layout.place(key)]
    return [read.extent for read in coalesce(wanted, gap=1 << 40)][::-1]


# ------------------------------------------------------------------------------------------------ windows


@planner("BigMoeOnEdge#117", "XC-LAYOUT-008")
def the_length_alone_is_rounded(offset: int, length: int, grain: int, file_size: int) -> tuple[int, int, int]:
    """The read begins where the extent does, and is a whole number of grains where the file has them."""
    return offset, min(round_up(length, grain), file_size - offset), 0


@planner("colibri#863", "XC-LAYOUT-008")
def the_window_passes_the_end(offset: int, length: int, grain: int, file_size: int) -> tuple[int, int, int]:
    """The end is rounded beyond the file."""
    found, skipped = window(Extent("", offset, length), grain)
    return found.offset, found.length, skipped


@planner("Micro-Expert-Router@64bf1e9", "XC-LAYOUT-008")
def the_pad_is_delivered_too(offset: int, length: int, grain: int, file_size: int) -> tuple[int, int, int]:
    """What is delivered begins with the window instead of the extent."""
    found, _ = window(Extent("", offset, length), grain, file_size)
    return found.offset, found.length, 0


@planner("engines that read ahead")
def a_grain_more_where_there_is_one(offset: int, length: int, grain: int, file_size: int) -> tuple[int, int, int]:
    """The window ends a grain later, or with the file."""
    found, skipped = window(Extent("", offset, length), grain, file_size)
    return found.offset, min(round_up(found.end, grain) + grain, file_size) - found.offset, skipped


# ------------------------------------------------------------------------------------------------ side tables


def records(layout: LayoutRequest, key: Key) -> tuple[Extent, ...]:
    """The records, as they should be."""
    return placed(layout).place(key)


def with_extents(planners: list[Planner]) -> None:
    """Give the last planner of side tables the extents of its records."""
    last = planners[-1]
    planners[-1] = attrs.evolve(
        last, methods={"extents": lambda layout, key: placed(layout).place(key), **last.methods}
    )


def tabled_layout(asked: LayoutRequest, page: int) -> Layout:
    """The layout with its table, on that page."""
    table = asked.table
    assert table is not None
    return with_side_table(placed(asked), "table", table.rows, table.row_bytes, page)


@planner("ds4, n-gram tables", "XC-LAYOUT-007")
def the_table_follows_at_once(tabled: LayoutRequest, number: int) -> Extent:
    """The table begins where the weights end, on a page or not."""
    return tabled_layout(tabled, 1).tables["table"].row(number)


with_extents(PLANNERS)


@planner("ds4, Engram tables", "XC-LAYOUT-007")
def the_table_comes_first(tabled: LayoutRequest, number: int) -> Extent:
    """The table stands at the beginning of the last file, where weights are."""
    row = tabled_layout(tabled, 1).tables["table"]
    return row.row(number)._replace(offset=number * row.row_bytes)


with_extents(PLANNERS)


@planner("engines with a file for each table")
def a_file_for_the_table(tabled: LayoutRequest, number: int) -> Extent:
    """The table has a file of its own, each row on a page."""
    assert tabled.table is not None
    size = tabled.table.row_bytes
    return Extent("table.bin", number * round_up(size, tabled.table.page), size)


with_extents(ODD_PLANNERS)


# ------------------------------------------------------------------------------------------------ files


def whole(packed: LayoutRequest, found: Found) -> bool:
    """Whether every file is there with at least its bytes."""
    return all(name in found and found[name][0] >= size for name, size in packed.files.items())


@planner("Flash-MoE, ds4#514", "XC-LAYOUT-009")
def the_name_and_size_are_enough(packed: LayoutRequest, found: Found, fingerprint: str) -> bool:
    """A file of the right name and size is opened, whatever format it has."""
    return {name: size for name, (size, _) in found.items()} == dict(packed.files)


@planner("llama.cpp#6774, FreeToken#25", "XC-LAYOUT-009")
def the_fingerprint_is_enough(packed: LayoutRequest, found: Found, fingerprint: str) -> bool:
    """A file whose header is intact is opened, however long it is."""
    return set(found) == set(packed.files) and all(said == fingerprint for _, said in found.values())


@planner("engines that map what they find", "XC-LAYOUT-009")
def a_tail_is_ignored(packed: LayoutRequest, found: Found, fingerprint: str) -> bool:
    """A file that is longer than it should be is opened."""
    return whole(packed, found) and all(said == fingerprint for _, said in found.values())


@planner("engines that open files when they need them", "XC-LAYOUT-009")
def only_what_is_there_is_looked_at(packed: LayoutRequest, found: Found, fingerprint: str) -> bool:
    """A file that is missing is noticed when it is read."""
    return all(file == (packed.files[name], fingerprint) for name, file in found.items())
