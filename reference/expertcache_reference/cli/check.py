"""`expertcache check`: whether an event log is a legal history, by every rule that it lets be judged."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from expertcache_reference.cli.console import print_json, tracked
from expertcache_reference.cli.failures import BAD_TRACE, complain, printable
from expertcache_reference.cli.logs import pieces_of
from expertcache_reference.cli.options import Json, shown
from expertcache_spec.history import InvalidLog, Verdict, read_log
from expertcache_spec.history import check as check_history
from expertcache_spec.history.reading import split_lines
from expertcache_spec.rules import RULES

UNKNOWN = 3
"""Exit code of a log in which no rule is broken and some could not be judged."""


def check(
    log: Annotated[str, typer.Argument(metavar="LOG", help="An event log, JSON Lines, plain or gzip.")],
    as_json: Json = False,
) -> None:
    """Check a whole event log: exit with 0 if legal, 1 if illegal or no log, 3 if some rule could not be judged."""
    path = Path(log)
    try:
        with pieces_of(path) as (found, total), tracked(found, total, f"checking {shown(log)}") as pieces:
            header, lines = read_log(pieces, log)
            verdict = check_history(header, lines)
        said = _said(path, verdict)
    except InvalidLog as error:
        complain(error)
        raise typer.Exit(BAD_TRACE) from None
    if as_json:
        print_json({"log": log, **_as_dict(verdict, said)})
    else:
        _print(log, verdict, said)
    raise typer.Exit({"legal": 0, "illegal": BAD_TRACE, "unknown": UNKNOWN}[verdict.answer])


def _said(path: Path, verdict: Verdict) -> dict[int, str]:
    """The text of the witness lines, read again; none where the log came through a pipe and is gone."""
    if not verdict.witness or not path.is_file():
        return {}
    with pieces_of(path) as (pieces, _):
        wanted = islice(split_lines(pieces, str(path)), verdict.witness[-1])
        return {n: text.decode(errors="replace") for n, text in enumerate(wanted, 1) if n in verdict.witness}


def _as_dict(verdict: Verdict, said: dict[int, str]) -> dict[str, Any]:
    return {
        "answer": verdict.answer,
        "records": verdict.records,
        "line": verdict.line,
        "rule": verdict.rule,
        "what": verdict.what,
        "witness": [{"line": line, "text": printable(text)} for line, text in said.items()],
        "undecided": dict(verdict.undecided),
    }


def _print(log: str, verdict: Verdict, said: dict[int, str]) -> None:
    typer.echo(f"{printable(log)}: {verdict.answer}, {verdict.records} lines")
    if verdict.rule is not None:
        typer.echo(f"  line {verdict.line} breaks {verdict.rule}: {printable(verdict.what)}")
        typer.echo(f"  {RULES[verdict.rule].text}")
    for line, text in said.items():
        typer.echo(f"  {line}: {printable(text)}")
    for rule, why in verdict.undecided.items():
        typer.echo(f"  {rule} could not be judged: {printable(why)}")
