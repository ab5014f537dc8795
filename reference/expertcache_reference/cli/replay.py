"""`expertcache replay`: one trace through one policy at one budget."""

from __future__ import annotations

from typing import Annotated, Any

import attrs
import typer

from expertcache_reference.cli import axes, hotlists, options
from expertcache_reference.cli.console import count, load, print_json, print_table, rate, tracked, warn
from expertcache_reference.cli.failures import BAD_TRACE
from expertcache_spec.engines import Mismatch, mismatches
from expertcache_spec.eviction.spelling import spell
from expertcache_spec.metrics import Row
from expertcache_spec.model import format_size
from expertcache_spec.replay import Replay, Result, as_dict
from expertcache_spec.residency import SETTINGS

_FEW = 10
"""Mismatches that are printed; all are counted."""

_COLUMNS = ("lookups", "hits", "misses", "bypassed", "evictions", "collisions", "reloads", "reads", "bytes_read")


def replay(
    source: options.Source,
    policy: options.PolicyName = None,
    budget: options.SizeBudget = None,
    slots: options.Slots = None,
    scope: options.Scope = None,
    room: options.Room = None,
    touch: options.Touch = None,
    repeats: options.Repeats = None,
    overflow: options.Overflow = None,
    no_victim: options.NoVictim = None,
    admission: options.Admission = None,
    mode: options.Mode = "event",
    record_bytes: options.RecordBytes = None,
    drop_weights: options.DropWeights = False,
    prefetch: axes.PrefetchWords = None,
    misses: axes.MissesWords = None,
    profile: options.ProfileName = None,
    hotlist: hotlists.File = None,
    formula: hotlists.FormulaName = None,
    preload: hotlists.Preload = None,
    cold: hotlists.Cold = False,
    full_layers: hotlists.FullLayers = None,
    against_recording: Annotated[
        bool, typer.Option("--against-recording", help="Compare each key with what the engine recorded.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Replay a trace through a policy at a budget, and print what was counted."""
    if against_recording and mode != "event":
        raise typer.BadParameter("an engine's recording is of whole events: use --replay event")
    chosen = options.settings(
        profile, scope=scope, room=room, touch=touch, repeats=repeats, overflow=overflow, no_victim=no_victim,
        admission=admission,
    )  # fmt: skip
    spelled, (limit, unit) = options.policy(policy, profile), options.budget(slots, budget)
    guesses, losses = axes.prefetch(prefetch), axes.misses(misses)
    asked = hotlists.Asked(hotlist, formula, preload, cold, full_layers)
    trace, notes = load(source, record_bytes, drop_weights=drop_weights)
    options.for_model(spelled, trace.geometry)
    begun = hotlists.started(asked, profile, limit, trace.geometry)
    run = Replay(
        trace, spelled.card, begun.budget, chosen, mode, parameters=spelled.parameters,  # type: ignore[arg-type]
        prefetch=guesses, misses=losses, start=begun.start,
    )  # fmt: skip
    found = _run(run, against_recording)
    result = run.result()
    warnings = [*result.warnings, *notes]
    warn(warnings)
    if as_json:
        compared = {} if found is None else {"against_recording": _comparison(run, found)}
        print_json({**as_dict(result), "warnings": warnings, **begun.described(), **compared})
    else:
        _print(result, unit, begun)
    if found is not None:
        _report(run, found, quiet=as_json)
        if found:
            raise typer.Exit(BAD_TRACE)


def _run(run: Replay, compare: bool) -> list[Mismatch] | None:
    """Take every step; the keys that differ from the recording, or None where none was asked for."""
    geometry, found = run.trace.geometry, list[Mismatch]()
    sizes = [geometry.size(layer) for layer in range(geometry.layers)] if compare else []
    with tracked(run, len(run.events), f"replaying {run.card.name}") as steps:
        for index, (event, step) in enumerate(zip(run.events, steps, strict=True)):
            if compare:
                found += mismatches(index, event, step, sizes)
    return found if compare else None


def _comparison(run: Replay, found: list[Mismatch]) -> dict[str, Any]:
    return {
        "keys": sum(len(event.keys) for event in run.events),
        "mismatches": len(found),
        "first": [{**entry._asdict(), "key": list(entry.key)} for entry in found[:_FEW]],
    }


def _report(run: Replay, found: list[Mismatch], *, quiet: bool) -> None:
    compared = _comparison(run, found)
    typer.echo(f"recording: {compared['mismatches']} of {compared['keys']} keys differ", err=quiet)
    for entry in found[:_FEW]:
        event = run.events[entry.event]
        typer.echo(
            f"  stream {event.stream} pass {event.pass_index} layer {entry.key.layer} expert {entry.key.expert}: "
            f"recorded {_said(entry.expected_hit, entry.expected_bytes)}, "
            f"replayed {_said(entry.got_hit, entry.got_bytes)}",
            err=quiet,
        )


def _said(hit: bool, read: int) -> str:
    return f"{'hit' if hit else 'miss'} of {read} bytes"


def _print(result: Result, unit: str, begun: hotlists.Started) -> None:
    manifest, total = result.manifest, result.total
    known = manifest.bytes is not None or result.counters.peak_bytes > 0
    limits = [] if manifest.slots is None else [count(manifest.slots, "slot")]
    limits += [] if manifest.bytes is None else [f"{format_size(manifest.bytes, unit)} ({manifest.bytes} bytes)"]
    typer.echo(f"trace     {manifest.trace_sha256}")
    policy = spell(manifest.policy, manifest.parameters)
    typer.echo(f"policy    {policy}, {manifest.replay} replay, budget {' and '.join(limits)}")
    typer.echo(f"settings  {', '.join(f'{k} {getattr(manifest.settings, k)}' for k in SETTINGS)}")
    for line in begun.told():
        typer.echo(f"start     {line}")
    for label, axis, counts in (
        ("prefetch", manifest.prefetch, result.prefetch),
        ("misses", manifest.misses, result.losses),
    ):
        if axis is not None:
            typer.echo(f"{label:<9} {_words(axis)}")
        if counts is not None:
            typer.echo(f"          {_words({name: n for name, n in attrs.asdict(counts).items() if n}) or 'nothing'}")
    if manifest.optimum is not None:
        typer.echo(f"optimum   {manifest.optimum}")
    peak = f", {result.counters.peak_bytes} bytes" if known else ""
    typer.echo(f"peak      {count(result.counters.peak_slots, 'record')}{peak}")
    rows = [*((str(phase), row) for phase, row in result.counters.per_phase().items()), ("total", total)]
    print_table(manifest.trace, ("phase", *_COLUMNS, "hit rate"), (_cells(label, row, known) for label, row in rows))


def _words(facts: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items() if not isinstance(value, dict | list | tuple))


def _cells(label: str, row: Row, known: bool) -> list[str]:
    counts = [str(getattr(row, name)) if known or name != "bytes_read" else "unknown" for name in _COLUMNS]
    return [label, *counts, rate(row.hits, row.lookups)]
