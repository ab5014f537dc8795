"""The plans of the reference: chunks, layouts and schedules, straight from the specification."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from expertcache_spec.fanout import Chunk, chunk_plan
from expertcache_spec.layout import (
    Extent,
    FoundFile,
    Layout,
    Shape,
    bundled_rows,
    check_files,
    flat_blobs,
    packed_layers,
    reads_of,
    record_blocks,
    resident_prefix,
    stacked_tensors,
    window,
    with_side_table,
)
from expertcache_spec.layout import fingerprint as fingerprint_of
from expertcache_spec.layout.files import WrongFile
from expertcache_spec.model import Key
from expertcache_spec.schedule import Scenario, schedule


class Table(Protocol):
    """A side table that is asked about."""

    @property
    def rows(self) -> int: ...  # noqa: D102
    @property
    def row_bytes(self) -> int: ...  # noqa: D102
    @property
    def page(self) -> int: ...  # noqa: D102


class LayoutRequest(Protocol):
    """What is asked about a layout: its kind, the shape of the model, and what the kind needs."""

    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def experts(self) -> int: ...  # noqa: D102
    @property
    def parts(self) -> Mapping[int, Mapping[str, int]]: ...  # noqa: D102
    @property
    def alignment(self) -> int: ...  # noqa: D102
    @property
    def header(self) -> int: ...  # noqa: D102
    @property
    def rows(self) -> int: ...  # noqa: D102
    @property
    def roll(self) -> int: ...  # noqa: D102
    @property
    def resident(self) -> int: ...  # noqa: D102
    @property
    def table(self) -> Table | None: ...  # noqa: D102


LAYOUTS: Mapping[str, Callable[[Shape, LayoutRequest], Layout]] = {
    "packed-layers": lambda shape, _: packed_layers(shape),
    "stacked-tensors": lambda shape, asked: stacked_tensors(shape, asked.alignment, header=asked.header),
    "record-blocks": lambda shape, asked: record_blocks(shape, asked.alignment, header=asked.header),
    "bundled-rows": lambda shape, asked: bundled_rows(shape, asked.rows),
    "flat-blobs": lambda shape, asked: flat_blobs(shape, asked.alignment, asked.roll),
}
"""Kind of layout to the layout of a request; the reference packs its own as record blocks."""


TABLE = "table"
"""The name of the side table of a request."""


def _layout(asked: LayoutRequest) -> Layout:
    make = LAYOUTS.get(asked.kind, LAYOUTS["record-blocks"])
    found = resident_prefix(make(Shape(asked.experts, asked.parts), asked), asked.resident)
    table = asked.table
    return found if table is None else with_side_table(found, TABLE, table.rows, table.row_bytes, table.page)


def plan_chunks(size: int, page: int, wanted: int) -> tuple[Chunk, ...]:
    """The chunks that a record of that many bytes is read in."""
    return chunk_plan(size, wanted, page)


def extents(layout: LayoutRequest, key: Key) -> tuple[Extent, ...]:
    """Where a record lies."""
    return _layout(layout).place(key)


def files(layout: LayoutRequest) -> Mapping[str, int]:
    """The files of the layout, with their bytes."""
    return _layout(layout).files


def plan_reads(layout: LayoutRequest, keys: Sequence[Key]) -> list[Extent]:
    """The requests that fetch the records."""
    return [read.extent for read in reads_of(_layout(layout), keys)]


def read_window(offset: int, length: int, grain: int, file_size: int) -> tuple[int, int, int]:
    """Where the direct read begins, its length, and where the extent begins in it."""
    found, skipped = window(Extent("", offset, length), grain, file_size)
    return found.offset, found.length, skipped


def table_row(layout: LayoutRequest, number: int) -> Extent:
    """Where a row of the side table lies."""
    return _layout(layout).tables[TABLE].row(number)


def accepts(layout: LayoutRequest, found: Mapping[str, tuple[int, str]], fingerprint: str) -> bool:
    """Whether the files may be used: each is there, whole, and carries the fingerprint.

    `check_files` names a layout by its own fingerprint, so one that is asked about stands for it.
    """
    asked = _layout(layout)
    own = fingerprint_of(asked, fingerprint)
    there = {name: FoundFile(size, own if said == fingerprint else said) for name, (size, said) in found.items()}
    try:
        check_files(asked, fingerprint, there)
    except WrongFile:
        return False
    return True


def plan_schedule(request: Scenario) -> dict[str, Any]:
    """The evaluator's schedule."""
    found = schedule(request)
    return {"tasks": [(*task, *span) for task, span in found.spans.items()], "sums": found.sums}
