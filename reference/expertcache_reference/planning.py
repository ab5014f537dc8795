"""The plans of the reference: chunks, layouts and schedules, straight from the specification."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from expertcache_spec.fanout import Chunk, chunk_plan
from expertcache_spec.layout import (
    Extent,
    Layout,
    Shape,
    bundled_rows,
    packed_layers,
    record_blocks,
    stacked_tensors,
)
from expertcache_spec.model import Key
from expertcache_spec.schedule import Scenario, schedule


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


LAYOUTS: Mapping[str, Callable[[Shape, LayoutRequest], Layout]] = {
    "packed-layers": lambda shape, _: packed_layers(shape),
    "stacked-tensors": lambda shape, asked: stacked_tensors(shape, asked.alignment, header=asked.header),
    "record-blocks": lambda shape, asked: record_blocks(shape, asked.alignment, header=asked.header),
    "bundled-rows": lambda shape, asked: bundled_rows(shape, asked.rows),
}
"""Kind of layout to the layout of a request; the reference packs its own as record blocks."""


def _layout(asked: LayoutRequest) -> Layout:
    make = LAYOUTS.get(asked.kind, LAYOUTS["record-blocks"])
    return make(Shape(asked.experts, asked.parts), asked)


def plan_chunks(size: int, page: int, wanted: int) -> tuple[Chunk, ...]:
    """The chunks that a record of that many bytes is read in."""
    return chunk_plan(size, wanted, page)


def extents(layout: LayoutRequest, key: Key) -> tuple[Extent, ...]:
    """Where a record lies."""
    return _layout(layout).place(key)


def files(layout: LayoutRequest) -> Mapping[str, int]:
    """The files of the layout, with their bytes."""
    return _layout(layout).files


def plan_schedule(request: Scenario) -> dict[str, Any]:
    """The evaluator's schedule."""
    found = schedule(request)
    return {"tasks": [(*task, *span) for task, span in found.spans.items()], "sums": found.sums}
