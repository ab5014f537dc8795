"""BigMoeOnEdge route trace v1 (`.csv`, `.csv.gz`), the text: preamble, columns by name, rows, cells.

    # route_trace v1
    # model=PATH arch=NAME n_layer=N n_expert=N n_expert_used=N
    # layer=I expert_bytes=N dense_bytes=N                             one for each layer; 0 and 0 without experts
    turn,phase,step,layer,slot,expert,weight,residency,expert_bytes[,dropped]

One row is one routed expert; a cell is the n_expert_used rows of one (turn, phase, step, layer). Columns are
append-only in v1, so they are read by name; a column that this reader does not know may change what a row means, as
`dropped` did, and is refused. Source: BigMoeOnEdge docs/telemetry.md and core/include/bmoe/route_trace.h.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from expertcache_reference.traces.lines import Lines
from expertcache_spec.errors import ExpertCacheError, InvalidTrace
from expertcache_spec.model import Geometry

VERSION_LINE = "# route_trace v1"
COLUMNS = ("turn", "phase", "step", "layer", "slot", "expert", "weight", "residency", "expert_bytes")
OPTIONAL = ("dropped",)

_MODEL = re.compile(r"# model=(.*) arch=(\S+) n_layer=([0-9]{1,9}) n_expert=([0-9]{1,9}) n_expert_used=([0-9]{1,9})")
_LAYER = re.compile(r"# layer=([0-9]{1,9}) expert_bytes=([0-9]{1,18}) dense_bytes=([0-9]{1,18})")
_AGAIN = "capture again, or take the file from its source"


class Preamble(NamedTuple):
    """What the file says about the model."""

    model: str
    arch: str
    geometry: Geometry


class Row(NamedTuple):
    """One routed expert; weight is None where weights are not read."""

    line: int
    turn: int
    phase: int
    step: int
    layer: int
    slot: int
    expert: int
    weight: float | None
    residency: int
    read: int
    dropped: int

    @property
    def cell(self) -> tuple[int, int, int, int]:
        """What the rows of one cell share."""
        return self.turn, self.phase, self.step, self.layer


class _Records:
    """The lines of the file with one name for each failure to find what comes next."""

    def __init__(self, lines: Lines) -> None:
        self.name, self.lines = lines.name, iter(lines)

    def next(self, wanted: str) -> tuple[str, str]:
        for place, text in self.lines:
            return place, text
        raise InvalidTrace(f"the file ends where {wanted} should follow", where=self.name, cure=_AGAIN)


def preamble(lines: Lines) -> Preamble:
    """The `#` lines, each in its place; raises `InvalidTrace` where one is missing or disagrees."""
    records = _Records(lines)
    place, text = records.next(VERSION_LINE)
    if text != VERSION_LINE:
        raise InvalidTrace(
            f"the file begins with {text[:40]!r}", where=place, cure=f"the first line must be {VERSION_LINE!r}"
        )
    place, text = records.next("# model=")
    if not (match := _MODEL.fullmatch(text)):
        raise InvalidTrace(
            "no model line",
            where=place,
            cure="restore '# model=... arch=... n_layer=... n_expert=... n_expert_used=...'",
        )
    model, arch, layers, experts, top_k = match.groups()
    sizes = []
    for layer in range(int(layers)):
        place, text = records.next(f"# layer={layer}")
        if not (match := _LAYER.fullmatch(text)) or int(match[1]) != layer:
            raise InvalidTrace(
                f"no preamble of layer {layer}", where=place, cure=f"the model line announces {layers} layers: {_AGAIN}"
            )
        sizes.append(int(match[2]))
    routed = tuple(layer for layer, size in enumerate(sizes) if size)
    try:
        geometry = Geometry(int(layers), int(experts), int(top_k), tuple(sizes), routed=routed)
    except ExpertCacheError as error:
        raise InvalidTrace(error.what, where=place, cure=error.cure) from error
    return Preamble(model, arch, geometry)


def columns(lines: Lines) -> list[str]:
    """The column names, in file order; raises `InvalidTrace` where one is missing, doubled or unknown."""
    place, text = _Records(lines).next("the column names")
    names = text.split(",")
    missing = [name for name in COLUMNS if name not in names]
    unknown = [name for name in names if name not in COLUMNS + OPTIONAL]
    if missing or unknown or len(set(names)) != len(names):
        raise InvalidTrace(
            f"columns {text[:200]!r}",
            where=place,
            cure=f"needed once each: {','.join(COLUMNS)}; known besides: {','.join(OPTIONAL)}",
        )
    return names


def rows(lines: Lines, names: Sequence[str], *, drop_weights: bool) -> Iterator[Row]:
    """Every row after the column names, its fields checked one by one."""
    order = [names.index(name) for name in COLUMNS + OPTIONAL if name in names]
    for place, text in lines:
        fields = text.split(",")
        if text.startswith("#"):
            raise InvalidTrace("a preamble after rows", where=place, cure="two captures in one file? split them")
        if len(fields) != len(names):
            raise InvalidTrace(f"{len(fields)} fields for {len(names)} columns", where=place, cure=_AGAIN)
        picked = [fields[index] for index in order]
        turn, phase, step, layer, slot, expert, residency, read = [
            _count(name, picked[index], place) for index, name in enumerate(COLUMNS) if name != "weight"
        ]
        weight = None if drop_weights else _weight(picked[COLUMNS.index("weight")], place)
        dropped = _count("dropped", picked[-1], place) if "dropped" in names else 0
        row = Row(lines.number, turn, phase, step, layer, slot, expert, weight, residency, read, dropped)
        _sane(row, place)
        yield row


def _count(name: str, text: str, place: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise InvalidTrace(
            f"{name} is {text[:40]!r}", where=place, cure="write whole numbers from 0; padding such as -1 is no expert"
        )
    return int(text)


def _weight(text: str, place: str) -> float:
    try:
        weight = float(text) if "_" not in text else math.nan
    except ValueError:
        raise InvalidTrace(f"weight is {text[:40]!r}", where=place, cure=_AGAIN) from None
    if not math.isfinite(weight):
        raise InvalidTrace(
            f"weight is {text[:40]} (XC-TRACE-004)",
            where=place,
            cure="the engine did not know it; read the file without weights: trace convert --drop-weights",
        )
    return weight


def _sane(row: Row, place: str) -> None:
    if row.phase > 1 or row.residency > 2 or row.dropped > 1:
        raise InvalidTrace(
            f"phase {row.phase}, residency {row.residency}, dropped {row.dropped}",
            where=place,
            cure="phase is 0 or 1, residency 0 to 2, dropped 0 or 1",
        )
    if row.read and (row.residency or row.dropped):
        raise InvalidTrace(f"{row.read} bytes read for a record that no read was for", where=place, cure=_AGAIN)


def cells(found: Iterable[Row], name: str, geometry: Geometry) -> Iterator[list[Row]]:
    """The rows of each cell; raises `InvalidTrace` unless every cell has the slots 0 to top_k - 1, in order.

    Ids are judged here as well as by the specification: here their line is still known.
    """
    top_k, cell = geometry.top_k, list[Row]()
    for row in found:
        if cell and row.cell != cell[0].cell:
            raise InvalidTrace(
                f"turn, phase, step, layer {cell[0].cell} has {len(cell)} of {top_k} slots",
                where=f"{name}:{row.line}",
                cure=f"rows are missing or out of order: {_AGAIN}",
            )
        if row.slot != len(cell):
            raise InvalidTrace(
                f"slot {row.slot} where slot {len(cell)} should follow",
                where=f"{name}:{row.line}",
                cure=f"a row is doubled, missing or out of order: {_AGAIN}",
            )
        if row.expert >= geometry.experts or row.expert in (other.expert for other in cell):
            raise InvalidTrace(
                f"expert {row.expert} of 0 to {geometry.experts - 1}, after {[other.expert for other in cell]} "
                "(XC-TRACE-003)",
                where=f"{name}:{row.line}",
                cure=f"ids beyond the model, or twice in one row of the router: {_AGAIN}",
            )
        cell.append(row)
        if len(cell) == top_k:
            yield cell
            cell = []
    if cell:
        raise InvalidTrace(
            f"the file ends after {len(cell)} of {top_k} slots",
            where=f"{name}:{cell[-1].line}",
            cure=f"cut off: {_AGAIN}",
        )
