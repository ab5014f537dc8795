"""`expertcache trace info`: what a trace contains."""

from __future__ import annotations

from typing import Any

import typer

from expertcache_reference.cli import options
from expertcache_reference.cli.console import count, print_json, print_table, tracked, warn
from expertcache_reference.cli.failures import printable
from expertcache_reference.traces import stream_trace
from expertcache_reference.traces.describe import Description
from expertcache_spec.trace import fingerprint

_BY_PHASE = ("passes", "events", "rows", "lookups", "selections")


def info(
    source: options.Source,
    record_bytes: options.RecordBytes = None,
    drop_weights: options.DropWeights = False,
    as_json: options.Json = False,
) -> None:
    """Print the geometry, counts, route overlap, token cycle, fingerprint and warnings of a trace."""
    sizes = options.record_bytes(record_bytes)
    with stream_trace(source, record_bytes=sizes, drop_weights=drop_weights) as reading:
        header = reading.header
        counted = Description(header.geometry)
        with tracked(counted.through(reading.events), None, f"reading {options.shown(source)}") as events:
            name = fingerprint(header.geometry, events)
    facts = {"name": header.name, "about": dict(header.about), "fingerprint": name, **counted.as_dict()}
    warn(reading.notes)
    if as_json:
        print_json({**facts, "overlap": counted.overlap, "warnings": reading.notes})
    else:
        _print(facts, counted)


def _print(facts: dict[str, Any], counted: Description) -> None:
    geometry, keys = counted.geometry, f"{facts['keys_touched']} of {facts['keys_total']}"
    cycle = facts["token_cycle_bytes"]
    sizes = "unknown" if geometry.record_bytes is None else ", ".join(map(str, sorted(set(geometry.record_bytes))))
    overlap = "no adjacent decode passes" if counted.overlap is None else f"{counted.overlap:.3f}"
    lines = {
        "name": facts["name"],
        **facts["about"],
        "fingerprint": facts["fingerprint"],
        "geometry": f"{geometry.layers} layers ({len(geometry.routed)} routed), {geometry.experts} experts, "
        f"top-{geometry.top_k}",
        "record bytes": sizes,
        "token cycle": f"{count(facts['token_cycle_slots'], 'slot')}, {'unknown' if cycle is None else cycle} bytes",
        "streams": facts["streams"],
        "distinct keys": keys,
        "route overlap": f"{overlap} of k between adjacent decode passes "
        f"({facts['overlap_shared']} experts in {facts['overlap_pairs']} pairs)",
        "recorded events": f"{facts['events_with_recording']}, with weights {facts['events_with_weights']}",
    }
    for label, value in lines.items():
        typer.echo(printable(f"{label:16} {value}"))
    phases = sorted(facts["passes"])
    rows = [[phase, *(str(facts[name][phase]) for name in _BY_PHASE)] for phase in phases]
    print_table("by phase", ("phase", *_BY_PHASE), rows)
