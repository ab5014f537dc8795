"""Reading and writing routing traces: one entry for every format, strict, and bounded in memory.

`open_trace` gives a whole trace, `stream_trace` its events one by one, `write_trace` writes the canonical forms.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import as_file
from os import PathLike
from pathlib import Path

import attrs

from expertcache_reference.traces import bigmoe, builtin, bulk, bulk_read, canonical, gptoss
from expertcache_reference.traces.atomic import CannotWrite, written
from expertcache_reference.traces.detect import FORMATS, detect, known
from expertcache_reference.traces.dirt import Watch
from expertcache_reference.traces.lines import Lines, Progress, opened
from expertcache_reference.traces.reading import Reading
from expertcache_spec.errors import UnknownName
from expertcache_spec.model import Geometry
from expertcache_spec.trace import Trace

WRITERS = ("jsonl", "npz")
"""The formats that can be written."""

_TEXT = {"jsonl": canonical.read, "bigmoe-on-edge": bigmoe.read, "gpt-oss": gptoss.read}


class TraceWarning(UserWarning):
    """Something about a trace that its reader accepts and its user must hear."""


@contextmanager
def stream_trace(
    source: str | PathLike[str],
    *,
    format: str = "auto",  # noqa: A002
    record_bytes: int | Sequence[int] | None = None,
    drop_weights: bool = False,
    progress: Progress | None = None,
) -> Iterator[Reading]:
    """The header and the checked events of a trace file or `builtin:NAME`, in bounded memory.

    `format` is `auto` (by content) or a key of `FORMATS`; `record_bytes` replaces the file's record size (with a note
    where that differs), one for all routed layers or one for each layer; `drop_weights` leaves the weights unread.
    Raises `InvalidTrace` here or while the events are taken, `UnknownName` for a format or builtin that does not exist,
    `InvalidModel` for record sizes that do not fit the layers.
    """
    known(format)
    with _path(source) as path, opened(path) as raw:
        lines = Lines(str(source), raw, progress)
        found = detect(lines) if format == "auto" else format
        if found == "npz":
            reading = bulk_read.read(raw, lines.name, drop_weights=drop_weights)
        else:
            reading = _TEXT[found](lines, drop_weights=drop_weights)
        if record_bytes is not None:
            stated, geometry = reading.header.geometry, with_record_bytes(reading.header.geometry, record_bytes)
            reading.header = attrs.evolve(reading.header, geometry=geometry)
            reading.notes += _replaced(stated, geometry)
        reading.events = Watch().through(reading.events, reading.notes)
        yield reading


def open_trace(
    source: str | PathLike[str],
    *,
    format: str = "auto",  # noqa: A002
    record_bytes: int | Sequence[int] | None = None,
    drop_weights: bool = False,
    progress: Progress | None = None,
) -> Trace:
    """The whole trace, with the arguments and errors of `stream_trace`; what it notes becomes a `TraceWarning`."""
    trace, notes = load_trace(
        source, format=format, record_bytes=record_bytes, drop_weights=drop_weights, progress=progress
    )
    for note in notes:
        warnings.warn(f"{source}: {note}", TraceWarning, stacklevel=2)
    return trace


def load_trace(
    source: str | PathLike[str],
    *,
    format: str = "auto",  # noqa: A002
    record_bytes: int | Sequence[int] | None = None,
    drop_weights: bool = False,
    progress: Progress | None = None,
) -> tuple[Trace, list[str]]:
    """As `open_trace`, with the notes returned beside the trace."""
    with stream_trace(
        source, format=format, record_bytes=record_bytes, drop_weights=drop_weights, progress=progress
    ) as reading:
        events, header = tuple(reading.events), reading.header
    return Trace(header.geometry, events, header.name, header.about), reading.notes


def with_record_bytes(geometry: Geometry, record_bytes: int | Sequence[int]) -> Geometry:
    """The geometry with records of that size in every routed layer, or with one size for each layer."""
    if isinstance(record_bytes, int):
        sizes = tuple(record_bytes if layer in geometry.routed else 0 for layer in range(geometry.layers))
    else:
        sizes = tuple(record_bytes)
    return attrs.evolve(geometry, record_bytes=sizes)


def _replaced(stated: Geometry, given: Geometry) -> list[str]:
    """What to say where the record sizes given are not those that the file states."""
    if stated.record_bytes is None:
        return []
    before, now = ([geometry.size(layer) for layer in stated.routed] for geometry in (stated, given))
    if before == now:
        return []
    states, gave = (", ".join(map(str, sorted(set(sizes)))) for sizes in (before, now))
    return [f"the file states records of {states} bytes, and {gave} bytes were given: the given sizes are used"]


def write_trace(trace: Trace, path: str | PathLike[str], *, to: str = "", force: bool = False) -> None:
    """Write the trace whole or not at all, as `to` or as the suffix says: `.jsonl`, `.jsonl.gz` or `.npz`.

    Raises `CannotWrite` when the file exists (unless `force`) or cannot be written, `UnknownName` where the format is
    neither given nor in the suffix.
    """
    target = Path(path)
    by_suffix = "npz" if target.suffix == ".npz" else "jsonl" if {".jsonl"} & set(target.suffixes[-2:]) else ""
    wanted = to or by_suffix
    if wanted not in WRITERS or by_suffix not in ("", wanted):
        raise UnknownName(
            f"format {wanted or target.suffix!r}",
            where=str(target),
            cure=f"one of {', '.join(WRITERS)}, and a suffix to match",
        )
    with written(target, force=force) as file:
        if wanted == "npz":
            bulk.write(trace, file)
        else:
            canonical.write(trace, file, compress=target.suffix == ".gz")


@contextmanager
def _path(source: str | PathLike[str]) -> Iterator[Path]:
    text = str(source)
    if not text.startswith(builtin.PREFIX):
        yield Path(source)
        return
    with as_file(builtin.resource(text.removeprefix(builtin.PREFIX))) as path:
        yield path


__all__ = [
    "FORMATS",
    "WRITERS",
    "CannotWrite",
    "Reading",
    "TraceWarning",
    "load_trace",
    "open_trace",
    "stream_trace",
    "with_record_bytes",
    "write_trace",
]
