"""The bulk form (`.npz`), its layout and its writer: the fields of the canonical format as flat arrays.

    header      the header record of `traceformat` as JSON bytes
    stream, pass, phase, layer, has      one entry for each event; `has` is a sum of the bits in `HAS`
    rows        event -> its rows: offsets, one more than events, from 0
    ids         row -> its selections: offsets, one more than rows, from 0
    experts     one entry for each selection
    weights (one for each selection), scores (one for each row and expert), positions (one for each row), accepted (one
    for each event), hit and bytes (one for each distinct expert): end to end, of the events that have them

Every array is one-dimensional and little-endian. The archive carries neither time nor system, so equal traces give
equal bytes. `bulk_read` reads it.
"""

from __future__ import annotations

import json
import zipfile
from io import BytesIO
from typing import Any, BinaryIO

import numpy as np

from expertcache_spec.errors import InvalidTrace
from expertcache_spec.trace import PHASES, Event, Trace
from expertcache_spec.traceformat import Header, encode_header

COLUMNS = {
    "header": "|u1", "stream": "<i8", "pass": "<i8", "phase": "|u1", "layer": "<i8", "has": "|u1", "rows": "<i8",
    "ids": "<i8", "experts": "<i8", "weights": "<f8", "scores": "<f8", "positions": "<i8", "accepted": "<i8",
    "hit": "|u1", "bytes": "<i8",
}  # fmt: skip
"""Array name to type."""

HAS = {"weights": 1, "scores": 2, "positions": 4, "accepted": 8, "recorded": 16}
"""Optional field to its bit in `has`."""


def columns(trace: Trace) -> dict[str, Any]:
    """The arrays of a trace, by name; raises `InvalidTrace` for a number that 64 bits do not hold."""
    lists: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    lists["rows"].append(0)
    lists["ids"].append(0)
    lists["header"] = list(json.dumps(encode_header(Header(trace.geometry, trace.name, trace.about))).encode())
    for event in trace.events:
        if event.lookahead is not None:
            raise InvalidTrace("the bulk form has no lookahead scores", where=trace.name, cure="write the text form")
        _append(lists, event)
    try:
        return {name: np.array(lists[name], dtype=kind) for name, kind in COLUMNS.items()}
    except OverflowError as error:
        raise InvalidTrace("a number beyond 64 bits", where=trace.name, cure="use smaller numbers") from error


def _append(lists: dict[str, list[Any]], event: Event) -> None:
    has = sum(bit for name, bit in HAS.items() if getattr(event, name) is not None)
    for name, value in (("stream", event.stream), ("pass", event.pass_index), ("layer", event.layer), ("has", has)):
        lists[name].append(value)
    lists["phase"].append(PHASES.index(event.phase))
    lists["rows"].append(lists["rows"][-1] + len(event.rows))
    for row in event.rows:
        lists["experts"] += row
        lists["ids"].append(len(lists["experts"]))
    for name in ("weights", "scores"):
        for line in getattr(event, name) or ():
            lists[name] += line
    lists["positions"] += event.positions or ()
    lists["accepted"] += () if event.accepted is None else (event.accepted,)
    if event.recorded is not None:
        lists["hit"] += event.recorded.hits
        lists["bytes"] += event.recorded.bytes


def write(trace: Trace, file: BinaryIO) -> None:
    """Write the archive."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in columns(trace).items():
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr, info.compress_type = 3, 0o644 << 16, zipfile.ZIP_DEFLATED
            data = BytesIO()
            np.lib.format.write_array(data, array, version=(1, 0), allow_pickle=False)
            archive.writestr(info, data.getvalue(), compresslevel=6)
