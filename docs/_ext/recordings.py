"""Tables out of the reference: the engine's recordings replayed at build time, and the formats of trace files.

A row of a recording that the profile misses is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import nodekit as kit
import ruledomain
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from expertcache_reference.traces import FORMATS, WRITERS, open_trace
from expertcache_reference.traces.bulk import COLUMNS, HAS
from expertcache_spec.engines import BIGMOE_ON_EDGE, mismatches
from expertcache_spec.metrics import Row
from expertcache_spec.model import Budget, parse_size
from expertcache_spec.replay import Replay, run_event
from expertcache_spec.residency import Step
from expertcache_spec.trace import Trace, sequential

if TYPE_CHECKING:
    from docutils.nodes import Node
    from sphinx.application import Sphinx

RECORDINGS = {"Qwen3-30B-A3B": "builtin:qwen3-30b-a3b", "Gemma-4-26B-A4B": "builtin:gemma-4-26b-a4b"}
BUDGET = Budget(bytes=parse_size("4000MiB").bytes)


class Outcome(NamedTuple):
    """One replay of a recording: its counts, its peak, and the keys that differ from what the engine recorded."""

    total: Row
    peak_bytes: int
    differing: int


@cache
def recording(model: str) -> Trace:
    """The trace of one of the recordings."""
    return open_trace(RECORDINGS[model])


@cache
def outcome(model: str, policy: str = BIGMOE_ON_EDGE.policy, mode: str = "event", **changes: str) -> Outcome:
    """The recording replayed under the profile with `changes`."""
    trace, settings = recording(model), attrs.evolve(BIGMOE_ON_EDGE.settings, **changes)  # type: ignore[arg-type]
    run = Replay(trace, policy, BUDGET, settings)
    steps: Iterator[Step] = iter(run) if mode == "event" else key_by_key(run)
    sizes = trace.geometry.record_bytes or ()
    pairs = enumerate(zip(trace.events, steps, strict=True))
    differing = sum(len(mismatches(index, event, step, sizes)) for index, (event, step) in pairs)
    return Outcome(run.result().total, run.machine.counters.peak_bytes, differing)


def key_by_key(run: Replay) -> Iterator[Step]:
    """Each event as a textbook cache serves it: one selection after the other, judged as it comes."""
    for event in run.events:
        first: dict[Any, bool] = {}
        for single in sequential([event]):
            step = run_event(run.machine, single)
            first.setdefault(single.keys[0], bool(step.hits))
        yield Step(hits=tuple(key for key, hit in first.items() if hit))


class EngineNumbers(SphinxDirective):
    """`engine-numbers`: the totals of each recording under the profile."""

    def run(self) -> list[Node]:
        rows = []
        for model in RECORDINGS:
            found = outcome(model)
            if found.differing:
                ruledomain.warn("numbers", f"{found.differing} rows of {model} differ", self.get_location())
            total = found.total
            counts = (total.lookups, total.hits, total.evictions, total.bytes_read, found.peak_bytes, found.differing)
            rows.append((model, *(f"{count:,}" for count in counts)))
        header = ("Recording", "Lookups", "Hits", "Evictions", "Bytes read", "Peak bytes", "Rows that differ")
        return [kit.table(header, rows, "numbers")]


VARIANTS: dict[str, dict[str, str]] = {
    "the profile": {},
    "FIFO instead of LRU": {"policy": "fifo"},
    "repeats do not promote (`repeats=ignore`)": {"repeats": "ignore"},
    "hits are touched first (`touch=hits_first`)": {"touch": "hits_first"},
    "evict before load, key by key (sequential, `room=reserve`)": {"mode": "sequential", "room": "reserve"},
    "evict before load, by events (`room=reserve`)": {"room": "reserve"},
}


class NearMisses(SphinxDirective):
    """`near-misses`: the rows that differ once one thing about the profile is changed."""

    def run(self) -> list[Node]:
        rows = []
        for name, changes in VARIANTS.items():
            found = [outcome(model, **changes) for model in RECORDINGS]
            rows.append((name, *(f"{each.differing:,}" for each in found), *(f"{each.peak_bytes:,}" for each in found)))
        header = ("Changed", *(f"Rows, {model}" for model in RECORDINGS), *(f"Peak, {model}" for model in RECORDINGS))
        return [kit.table(header, rows, "numbers")]


class BulkTable(SphinxDirective):
    """`bulk-table`: the arrays of the bulk form."""

    def run(self) -> list[Node]:
        owner = {"hit": "recorded", "bytes": "recorded"}
        rows = []
        for name, kind in COLUMNS.items():
            bit = HAS.get(owner.get(name, name))
            rows.append((f"`{name}`", f"`{kind}`", "always" if bit is None else f"where `has` has bit {bit}"))
        return [kit.table(("Array", "Type", "Present"), rows)]


class FormatTable(SphinxDirective):
    """`format-table`: the formats that are read, and those that are written."""

    def run(self) -> list[Node]:
        rows = [
            (
                f"`{found.name}`",
                kit.sentence(found.what),
                [nodes.Text(found.begins)],
                "yes" if found.name in WRITERS else "",
            )
            for found in FORMATS.values()
        ]
        return [kit.table(("Format", "File", "Begins with", "Written"), rows)]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("engine-numbers", EngineNumbers)
    app.add_directive("near-misses", NearMisses)
    app.add_directive("bulk-table", BulkTable)
    app.add_directive("format-table", FormatTable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
