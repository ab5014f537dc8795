"""The planning side of the adapter protocol: chunk plans, layouts, schedules, asked of the implementation itself.

A planner keeps no cache. Its methods are functions of what they are given: the same question gets the same answer.
Declared refusals and crashes are as for caches, but nothing that is claimed may be refused (XC-CONF-003).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs

from expertcache_spec.model import Key
from expertcache_spec.schedule import Scenario
from expertcache_spec.schedule.disciplines import NAMES

OWN_LAYOUT = "own"
LAYOUTS = ("packed-layers", "stacked-tensors", "record-blocks", "bundled-rows", "flat-blobs", OWN_LAYOUT)
"""Kinds of layouts: those of `expertcache_spec.layout`, and one that the implementation packs as it likes."""
DISCIPLINES: tuple[str, ...] = NAMES

PLANNING: Mapping[str, tuple[str, ...]] = {
    "chunks": ("plan_chunks",),
    "layout": ("extents", "files"),
    "reads": ("plan_reads",),
    "windows": ("read_window",),
    "tables": ("table_row", "extents"),
    "opening": ("accepts",),
    "schedule": ("plan_schedule",),
    "evaluator": ("plan_schedule",),
}
"""Capability to the methods that it needs; `files` only where the layout `own` is claimed."""


@attrs.frozen
class Table:
    """A side table: its rows, the bytes of each, and the page that it begins on."""

    rows: int
    row_bytes: int
    page: int


@attrs.frozen
class LayoutRequest:
    """A layout and its geometry.

    kind: one of `LAYOUTS`. experts: records of a layer. parts: for each routed layer, part name to bytes, in the order
    of the record. alignment: what blocks begin on, in bytes. header: bytes of the file before the first record. rows:
    of every part, for bundled rows. roll: the most bytes of a file, for flat blobs, which lie by number. files: names
    and bytes of the files in order, as the weights alone take; empty for a layout of the implementation's own.
    resident: how many of the first routed layers are loaded at the start. table: a side table beside the weights.
    """

    kind: str
    experts: int
    parts: Mapping[int, Mapping[str, int]]
    alignment: int = 1
    header: int = 0
    rows: int = 1
    files: Mapping[str, int] = attrs.field(factory=dict)
    roll: int = 0
    resident: int = 0
    table: Table | None = None


class Planner(Protocol):
    """What the planning capabilities add to a module, each its own methods."""

    def plan_chunks(self, size: int, page: int, wanted: int) -> Any:
        """The chunks that a record of `size` bytes is read in: pairs (offset, length) in order, in bytes."""

    def extents(self, layout: LayoutRequest, key: Key) -> Any:
        """The record's extents in the order of its bytes: triples (file, offset, length).

        One extent may be answered in several that follow each other.
        """

    def files(self, layout: LayoutRequest) -> Any:
        """Names of the files of the implementation's own layout, to their bytes."""

    def plan_reads(self, layout: LayoutRequest, keys: Sequence[Key]) -> Any:
        """The requests that fetch the records on demand: triples (file, offset, length), in any order."""

    def read_window(self, offset: int, length: int, grain: int, file_size: int) -> Any:
        """The direct read that holds the extent: where it begins, its length, and where the extent begins in it."""

    def table_row(self, layout: LayoutRequest, number: int) -> Any:
        """The extent (file, offset, length) of a row of the layout's side table."""

    def accepts(self, layout: LayoutRequest, found: Mapping[str, tuple[int, str]], fingerprint: str) -> Any:
        """Whether the files may be used; `found` has bytes and fingerprint of every one that is there.

        `fingerprint` is the one that each file of the layout carries.
        """

    def plan_schedule(self, request: Scenario) -> Any:
        """When everything that the request calls for runs: `tasks` or `order`, and `sums`.

        tasks: seven values each, (event, kind, place, part, start, end, lane), as `expertcache_spec.schedule.TaskId`
        and `Span` define them. order: instead of them, only (event, kind, place, part) in the order in which the tasks
        begin; it is judged as the schedule that runs one after the other, except by XC-SCHED-014. sums: for each event
        the slots in the order in which its combine adds them; not judged where it is left out.
        """
