"""The canonical JSON Lines form (`.jsonl`, `.jsonl.gz`); `expertcache_spec.traceformat` says what a record means."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import BinaryIO

from expertcache_reference.traces.errors import At
from expertcache_reference.traces.lines import Lines
from expertcache_reference.traces.reading import Reading
from expertcache_reference.traces.strictjson import parse
from expertcache_spec.trace import Event, Trace, canonical_line
from expertcache_spec.traceformat import decode_events, decode_header, encode


def read(lines: Lines, *, drop_weights: bool = False) -> Reading:
    """Header and events of the file; raises `InvalidTrace` at the first line that breaks a rule (XC-TRACE-008)."""
    records = _records(lines, drop_weights)
    place, first = next(records)
    header = decode_header(first, place)
    return Reading(header, _placed(decode_events(records, header), lines.name))


def _placed(events: Iterator[Event], name: str) -> Iterator[Event]:
    """The events; what is wrong with the whole file names the file."""
    with At(name):
        yield from events


def _records(lines: Lines, drop_weights: bool) -> Iterator[tuple[str, object]]:
    for place, text in lines:
        record = parse(text, place)
        if drop_weights and isinstance(record, dict):
            record.pop("weights", None)
        yield place, record


def write(trace: Trace, file: BinaryIO, *, compress: bool = False) -> None:
    """Write every record; gzip carries neither time nor name, so equal traces give equal bytes."""
    if compress:
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
            packed.writelines(map(canonical_line, encode(trace)))
    else:
        file.writelines(map(canonical_line, encode(trace)))
