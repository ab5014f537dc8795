"""`expertcache timeline`: one layer or one token of a trace as a Gantt chart, or as a Chrome trace for Perfetto."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from expertcache_reference.cli import options, scheduling
from expertcache_reference.cli.console import print_json, print_table
from expertcache_reference.timeline.chrome import Drawn, chrome_trace
from expertcache_reference.timeline.gantt import gantt
from expertcache_reference.timeline.hardware import Hardware, load_hardware
from expertcache_reference.traces.atomic import all_written
from expertcache_spec.errors import UnknownName
from expertcache_spec.replay import Replay
from expertcache_spec.schedule import Discipline, Load, Scenario, breakdown, schedule

FORMS = (".png", ".svg", ".json")


def timeline(
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
    stream: Annotated[int, options.number("--stream", "The stream to draw.")] = 0,
    token: Annotated[
        int | None, options.number("--pass", "The pass to draw, from 0; the stream's first decode without.")
    ] = None,
    layer: Annotated[int | None, options.number("--layer", "One layer of it; the whole token without.")] = None,
    disciplines: scheduling.Disciplines = None,
    min_tokens: scheduling.MinTokens = 0,
    min_entries: scheduling.MinEntries = 0,
    to: Annotated[
        list[Path] | None, typer.Option("--to", help="A .png or .svg to draw, a .json for Perfetto; repeatable.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    record_bytes: options.RecordBytes = None,
    as_json: options.Json = False,
) -> None:
    """Schedule one layer or one token of a trace under each discipline, and draw it."""
    targets = to or []
    machine = load_hardware(hardware)
    run, warnings = scheduling.prepared(
        source, machine, policy, options.budget(slots, budget)[0], profile, record_bytes, scope=scope, room=room,
        touch=touch, repeats=repeats, overflow=overflow, no_victim=no_victim, admission=admission,
    )  # fmt: skip
    chosen = scheduling.disciplines(disciplines, run.trace.geometry.top_k, min_tokens, min_entries)
    with pictures(targets, force=force) as files:
        token = first_decode(run, stream) if token is None else token
        drawn = scheduled(run, machine, chosen_loads(run, machine, stream, token, layer), chosen)
        part = "" if layer is None else f", layer {layer}"
        title = f"{run.trace.name}, stream {stream}, pass {token}{part}, on {machine.name}"
        for target, file in zip(targets, files, strict=True):
            file.write(chrome_trace(drawn) if target.suffix == ".json" else gantt(drawn, title, target.suffix[1:]))
    rows = [(label, breakdown(each)) for label, (_, each) in drawn.items()]
    if as_json:
        listed = [{"discipline": label, **parts._asdict()} for label, parts in rows]
        print_json({"title": title, "rows": listed, "warnings": warnings})
    else:
        columns = ("discipline", "makespan", "compute", "overhead", "exposed", "hidden")
        print_table(f"{title}: nanoseconds", columns, ([label, *map(str, parts)] for label, parts in rows))


@contextmanager
def pictures(targets: Sequence[Path], *, force: bool) -> Iterator[list[BinaryIO]]:
    """The files to draw into, all of which appear when the block ends well; raises what forbids one of them."""
    for target in targets:
        if target.suffix not in FORMS:
            raise UnknownName(f"format {target.suffix!r}", where=str(target), cure=f"one of {', '.join(FORMS)}")
    with all_written(targets, force=force) as files:
        yield files


def first_decode(run: Replay, stream: int) -> int:
    """The stream's first decode pass; 0 where it has none."""
    return next((e.pass_index for e in run.events if e.stream == stream and e.phase == "decode"), 0)


def chosen_loads(run: Replay, machine: Hardware, stream: int, token: int, layer: int | None) -> list[Load]:
    """The loads of one pass, or of one of its layers; the replay stops behind them.

    Raises `UnknownName` where the trace has no such pass or layer.
    """
    found: list[Load] = []
    with scheduling.replayed(run, machine) as pairs:
        for event, load in pairs:
            if (event.stream, event.pass_index) == (stream, token) and layer in (None, event.layer):
                found.append(load)
            elif found:
                break
    if not found:
        passes = 1 + max((event.pass_index for event in run.events if event.stream == stream), default=-1)
        raise UnknownName(
            f"stream {stream} pass {token}" + ("" if layer is None else f" layer {layer}"),
            where=run.trace.name,
            cure=f"stream {stream} has {passes} passes; layers are {run.trace.geometry.routed}",
        )
    return found


def scheduled(run: Replay, machine: Hardware, found: Sequence[Load], chosen: Sequence[Discipline]) -> Drawn:
    """A schedule of the loads under each discipline, by its name."""
    sizes: Any = run.trace.geometry.record_bytes
    records = tuple(machine.record(size) for size in sizes)
    cases = [Scenario(tuple(found), records, machine.costs, machine.storage, each) for each in chosen]
    return {str(case.discipline): (case, schedule(case)) for case in cases}
