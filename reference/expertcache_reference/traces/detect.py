"""The formats that can be read, and which one a file is in, by its content."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs

from expertcache_reference.traces.lines import Lines
from expertcache_reference.traces.strictjson import parse
from expertcache_spec.errors import InvalidTrace, UnknownName
from expertcache_spec.traceformat import FORMAT


@attrs.frozen
class Format:
    """A format's name, what it is, and how a file in it begins."""

    name: str
    what: str
    begins: str


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        found.name: found
        for found in (
            Format("jsonl", "canonical JSON Lines", f'{{"format":"{FORMAT}"'),
            Format("npz", "canonical arrays", "a zip archive"),
            Format("bigmoe-on-edge", "BigMoeOnEdge route trace CSV", "# route_trace v1"),
            Format("gpt-oss", "gpt-oss-20b routing by request, JSON Lines", 'an object with "ids"'),
        )
    }
)
"""Format name to format; all but `npz` may be compressed with gzip."""

_LISTED = "; ".join(f"{found.name} ({found.what}) begins with {found.begins}" for found in FORMATS.values())


def known(name: str) -> str:
    """The name itself; raises `UnknownName` unless it is `auto` or a format."""
    if name != "auto" and name not in FORMATS:
        raise UnknownName(f"format {name!r}", where="format", cure=f"one of auto, {', '.join(FORMATS)}")
    return name


def detect(lines: Lines) -> str:
    """The format's name, from the first bytes or the first line; raises `InvalidTrace`, listing the formats."""
    if lines.magic(4) == b"PK\x03\x04":
        return "npz"
    first = lines.peek()
    if first.startswith((b"# route_trace", b"turn,")):
        return "bigmoe-on-edge"
    if first.lstrip().startswith(b"{"):
        record = parse(lines.peek_text(), f"{lines.name}:1")
        if isinstance(record, dict) and "format" in record:
            return "jsonl"
        if isinstance(record, dict) and "ids" in record:
            return "gpt-oss"
    if not first:
        raise InvalidTrace("the file is empty", where=lines.name, cure="check that the capture ran")
    raise InvalidTrace("no known trace format", where=f"{lines.name}:1", cure=f"known formats: {_LISTED}")
