"""What `whatif` and `timeline` share: options, the disciplines asked for, the replay that gives loads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from expertcache_reference.cli import options
from expertcache_reference.cli.console import load, tracked, warn
from expertcache_reference.timeline.hardware import Hardware
from expertcache_spec.errors import InvalidBudget
from expertcache_spec.model import Budget
from expertcache_spec.replay import Replay
from expertcache_spec.schedule import Discipline, Load, loads, parse_discipline
from expertcache_spec.trace import Event

HardwareFile = Annotated[
    str, typer.Option("--hardware", metavar="FILE", help="A hardware file (TOML), or builtin:NAME.")
]
Policy = Annotated[
    str | None,
    typer.Option("--policy", metavar="POLICY", help="NAME or NAME:parameter=value:...; this or --profile is required."),
]
Size = Annotated[
    str | None,
    typer.Option("--budget", metavar="SIZE", help="Bytes, as 4000MiB or 4GB; this or --slots is required."),
]
Slots = Annotated[int | None, options.number("--slots", "Records; with --budget the tighter wins.")]
Disciplines = Annotated[
    str | None,
    typer.Option("--disciplines", metavar="D[,D...]", help="sync, split:N, staged[:N], pipelined[:N], free."),
]
MinTokens = Annotated[int, options.number("--min-tokens", "Decode tokens before anything but sync and free; ds4: 4.")]
MinEntries = Annotated[
    int, options.number("--min-entries", "Resident records before anything but sync and free; ds4: 1024.")
]


def disciplines(text: str | None, top_k: int, tokens: int = 0, entries: int = 0) -> list[Discipline]:
    """The disciplines asked for, each once however it is spelled; by default all, split at each threshold."""
    every = ["sync", *(f"split:{t}" for t in range(top_k - 1, 0, -1)), "staged", "pipelined", "free"]
    names = every if text is None else options.listed(text, "--disciplines")
    return list(dict.fromkeys(parse_discipline(name, tokens=tokens, entries=entries) for name in names))


def prepared(
    source: str,
    hardware: Hardware,
    policy: str | None,
    limit: Budget,
    profile: str | None,
    record_bytes: str | None,
    **given: str | None,
) -> tuple[Replay, list[str]]:
    """The replay under the settings given, ready to run, and the warnings, which have been said."""
    spelled, chosen = options.policy(policy, profile), options.settings(profile, **given)
    trace, notes = load(source, record_bytes)
    options.for_model(spelled, trace.geometry)
    if trace.geometry.record_bytes is None:  # refuse before the replay, not after it
        raise InvalidBudget(
            "times need the record size, which this trace does not give",
            where=source,
            cure="state the bytes of one record",
        )
    run = Replay(trace, spelled.card, limit, chosen, parameters=spelled.parameters)
    sizes = {trace.geometry.size(layer) for layer in trace.geometry.routed}
    warnings = [*run.result().warnings, *notes, *hardware.warnings(sizes)]
    warn(warnings)
    return run, warnings


@contextmanager
def replayed(run: Replay, hardware: Hardware) -> Iterator[Iterator[tuple[Event, Load]]]:
    """The events of the replay with their loads, with progress."""
    with tracked(loads(run), len(run.events), f"replaying for {hardware.name}") as pairs:
        yield pairs
