"""`expertcache trace convert`: any readable trace into a canonical one."""

from __future__ import annotations

from typing import Annotated

import attrs
import typer

from expertcache_reference.cli import options
from expertcache_reference.cli.console import count, load, warn
from expertcache_reference.cli.failures import printable
from expertcache_reference.traces import FORMATS, WRITERS, write_trace


def convert(
    source: options.Source,
    target: Annotated[str, typer.Argument(metavar="OUT", help="A file that does not exist: .jsonl, .jsonl.gz, .npz.")],
    to: Annotated[
        str, typer.Option("--to", help=f"One of {', '.join(WRITERS)}; by the suffix of OUT if left out.")
    ] = "",
    form: Annotated[str, typer.Option("--from", help=f"One of auto, {', '.join(FORMATS)}.")] = "auto",
    drop_weights: options.DropWeights = False,
    record_bytes: options.RecordBytes = None,
    name: Annotated[str | None, typer.Option("--name", help="The name of the trace.")] = None,
    about: Annotated[
        list[str] | None, typer.Option("--about", metavar="KEY=TEXT", help="A fact about the trace; may be repeated.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
) -> None:
    """Convert a trace to the canonical JSON Lines or array form, whole or not at all."""
    pairs = [fact.partition("=") for fact in about or ()]
    if not all(key and equals for key, equals, _ in pairs):
        raise typer.BadParameter("--about takes KEY=TEXT")
    trace, notes = load(source, record_bytes, drop_weights=drop_weights, form=form)
    warn(notes)
    facts = {**trace.about, **{key: text for key, _, text in pairs}}
    trace = attrs.evolve(trace, name=trace.name if name is None else name, about=facts)
    write_trace(trace, target, to=to, force=force)
    typer.echo(f"{printable(target)}: {count(len(trace.events), 'event')}, {trace.fingerprint}")
