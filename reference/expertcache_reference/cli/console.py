"""What is shown: progress and warnings on stderr, tables and JSON on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table
from rich.text import Text

from expertcache_reference.cli.failures import printable
from expertcache_reference.cli.options import record_bytes, shown
from expertcache_reference.traces import load_trace
from expertcache_spec.trace import Trace

Item = TypeVar("Item")

_PLAIN_WIDTH = 200
"""Columns of a table that goes to a file or a pipe."""


@contextmanager
def _bar(what: str) -> Iterator[tuple[Progress, TaskID]]:
    """A progress bar that exists only while stderr is a terminal."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        yield progress, progress.add_task(printable(what), total=None)


def load(
    source: str, sizes: str | None = None, *, drop_weights: bool = False, form: str = "auto"
) -> tuple[Trace, list[str]]:
    """The trace and what its reader notes, with progress by bytes of the file."""
    with measured(f"reading {shown(source)}") as progress:
        return load_trace(
            source, format=form, record_bytes=record_bytes(sizes), drop_weights=drop_weights, progress=progress
        )


@contextmanager
def measured(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """Gives a function that is told how much is done and of how much, and shows it while the block lasts."""
    with _bar(what) as (progress, task):
        yield lambda done, total: progress.update(task, completed=done, total=total or None)


@contextmanager
def tracked(items: Iterable[Item], total: int | None, what: str) -> Iterator[Iterator[Item]]:
    """Gives the items, with progress by count for as long as the block lasts."""
    with _bar(what) as (progress, task):
        progress.update(task, total=total)

        def counted() -> Iterator[Item]:
            for count, item in enumerate(items, 1):
                yield item
                if not count % 1024:
                    progress.update(task, completed=count)

        yield counted()


def warn(messages: Iterable[str]) -> None:
    """Say each warning on stderr, loudly."""
    for message in messages:
        typer.secho(f"WARNING: {printable(message)}", err=True, fg="yellow", bold=True)


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on stdout."""
    typer.echo(json.dumps(value, indent=2, allow_nan=False))


def print_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]], *, left: int = 1) -> None:
    """A table on stdout: the first `left` columns are text, the others numbers."""
    table = Table(title=Text(printable(title)), title_justify="left")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index < left else "right", no_wrap=index < 1 or index >= left)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console = Console() if sys.stdout.isatty() else Console(width=_PLAIN_WIDTH)
    with console.capture() as printed:
        console.print(table)
    typer.echo(printed.get(), nl=False)  # rich would end the program by itself on a broken pipe


def count(number: int, noun: str) -> str:
    """The number with its noun, in the plural where it is not one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def rate(part: int, whole: int) -> str:
    """The ratio as a percentage, derived from its integers."""
    return f"{100 * part / whole:.2f} %" if whole else "-"
