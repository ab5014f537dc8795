"""What every reader gives: the header of a trace, and its events one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs

from expertcache_spec.trace import Event
from expertcache_spec.traceformat import Header


@attrs.define
class Reading:
    """A trace being read: its header, its events (checked as they come), and what the user must hear about the file.

    `notes` is complete when the events are exhausted.
    """

    header: Header
    events: Iterator[Event]
    notes: list[str] = attrs.field(factory=list)


def stem(name: str) -> str:
    """The file's name without folder and format suffixes, as the name of a trace that has none."""
    base = Path(name).name
    for suffix in (".gz", ".jsonl", ".csv", ".npz", ".route"):
        base = base.removesuffix(suffix)
    return base or "trace"
