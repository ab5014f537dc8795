"""`expertcache trace validate`: whether files are good traces, in bounded memory."""

from __future__ import annotations

from typing import Annotated

import typer

from expertcache_reference.cli import options
from expertcache_reference.cli.console import count, tracked, warn
from expertcache_reference.cli.failures import BAD_TRACE, complain, printable
from expertcache_reference.traces import stream_trace
from expertcache_spec.errors import InvalidTrace


def validate(
    sources: Annotated[list[str], typer.Argument(metavar="FILE...", help="Trace files, or builtin:NAME.")],
    drop_weights: options.DropWeights = False,
) -> None:
    """Check every event of every file; exit with 1 if any file is bad."""
    bad = 0
    for source in sources:
        try:
            with (
                stream_trace(source, drop_weights=drop_weights) as reading,
                tracked(reading.events, None, f"checking {options.shown(source)}") as events,
            ):
                number = sum(1 for _ in events)
        except InvalidTrace as error:
            complain(error)
            bad += 1
            continue
        warn(f"{source}: {note}" for note in reading.notes)
        typer.echo(f"{printable(source)}: ok, {count(number, 'event')}")
    if bad:
        raise typer.Exit(BAD_TRACE)
