"""The commands: from `replay` to `pack`, and those under `trace` and `store`."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from expertcache_reference.cli.check import check
from expertcache_reference.cli.compare import compare
from expertcache_reference.cli.failures import Commands
from expertcache_reference.cli.identify import identify_command
from expertcache_reference.cli.io import io_command
from expertcache_reference.cli.pack import pack_command
from expertcache_reference.cli.policies import policies
from expertcache_reference.cli.replay import replay
from expertcache_reference.cli.run import run
from expertcache_reference.cli.store_info import store_info
from expertcache_reference.cli.study import study
from expertcache_reference.cli.timeline import timeline
from expertcache_reference.cli.trace_convert import convert
from expertcache_reference.cli.trace_info import info
from expertcache_reference.cli.trace_validate import validate
from expertcache_reference.cli.whatif import whatif
from expertcache_spec import SPEC_VERSION

app = typer.Typer(
    cls=Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
    help="Replay and compare expert caches on routing traces.",
)  # fmt: skip
traces = typer.Typer(no_args_is_help=True, help="Look at, check and convert traces.")
app.add_typer(traces, name="trace")
stores = typer.Typer(no_args_is_help=True, help="Look at and check a model's files.")
app.add_typer(stores, name="store")
app.command()(replay)
app.command()(compare)
app.command()(run)
app.command()(whatif)
app.command()(timeline)
app.command()(check)
app.command()(policies)
app.command()(study)
app.command("identify")(identify_command)
app.command("pack")(pack_command)
app.command("io")(io_command)
traces.command()(info)
traces.command()(validate)
traces.command()(convert)
stores.command("info")(store_info)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"expertcache {version('expertcache')}, specification {SPEC_VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    show: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Expert caches on routing traces."""
