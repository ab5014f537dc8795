"""`expertcache whatif`: tokens a second of a trace on stated hardware, under each discipline and threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import typer

from expertcache_reference.cli import options, scheduling
from expertcache_reference.cli.console import print_json, print_table
from expertcache_reference.timeline.forecast import Forecast, forecasts, tallied
from expertcache_reference.timeline.hardware import Hardware, load_hardware
from expertcache_spec.replay import Replay

_PARTS = ("compute", "overhead", "exposed", "hidden")


def whatif(
    source: options.Source,
    hardware: scheduling.HardwareFile,
    policy: scheduling.Policy = None,
    budget: scheduling.Size = None,
    slots: scheduling.Slots = None,
    scope: options.Scope = None,
    room: options.Room = None,
    touch: options.Touch = None,
    repeats: options.Repeats = None,
    overflow: options.Overflow = None,
    no_victim: options.NoVictim = None,
    admission: options.Admission = None,
    profile: options.ProfileName = None,
    disciplines: scheduling.Disciplines = None,
    min_tokens: scheduling.MinTokens = 0,
    min_entries: scheduling.MinEntries = 0,
    record_bytes: options.RecordBytes = None,
    as_json: options.Json = False,
) -> None:
    """Print tokens a second and where the time goes, under each way to schedule reads and compute."""
    machine = load_hardware(hardware)
    run, warnings = scheduling.prepared(
        source, machine, policy, options.budget(slots, budget)[0], profile, record_bytes, scope=scope, room=room,
        touch=touch, repeats=repeats, overflow=overflow, no_victim=no_victim, admission=admission,
    )  # fmt: skip
    geometry = run.trace.geometry
    chosen = scheduling.disciplines(disciplines, geometry.top_k, min_tokens, min_entries)
    with scheduling.replayed(run, machine) as pairs:
        found = forecasts(tallied(pairs, geometry, chosen), machine)
    if as_json:
        print_json({**as_dict(run, machine, found), "warnings": warnings})
    else:
        _print(run, machine, found)


def as_dict(run: Replay, machine: Hardware, found: Sequence[Forecast]) -> dict[str, Any]:
    """The forecasts as plain data: integers of nanoseconds over all tokens, and where they come from."""
    return {
        "hardware": attrs.asdict(machine),
        "tokens": found[0].tokens,
        "events": found[0].events,
        "rows": [
            {"discipline": str(each.discipline), "overlapped": each.overlapped, **each.total._asdict(),
             "read_wall": each.total.read_wall, "hideable": each.total.hideable}
            for each in found
        ],
        "manifest": attrs.asdict(run.result().manifest),
    }  # fmt: skip


def _print(run: Replay, machine: Hardware, found: Sequence[Forecast]) -> None:
    total = run.result().total
    typer.echo(f"trace     {run.trace.fingerprint}")
    typer.echo(f"hardware  {machine.name}")
    typer.echo(f"replay    {total.lookups} lookups, {total.misses + total.bypassed} not resident, {total.reads} reads")
    typer.echo(f"decode    {found[0].tokens} tokens of {found[0].events} events; milliseconds a token:")
    columns = ("discipline", "tokens/s", "total", *_PARTS, "overlap", "events overlapped")
    print_table("one event at a time, no speculation", columns, map(_cells, found))


def _cells(row: Forecast) -> list[str]:
    parts = row.total
    times = [f"{value / row.tokens / 1e6:.3f}" for value in (parts.makespan, *(getattr(parts, n) for n in _PARTS))]
    overlap = f"{100 * parts.hidden / parts.hideable:.1f} %" if parts.hideable else "-"
    return [str(row.discipline), f"{row.speed:.2f}", *times, overlap, str(row.overlapped)]
