"""`expertcache io`: what this disk delivers, cold and warm, with the evidence."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import attrs
import typer

from expertcache_reference.cli import options
from expertcache_reference.cli.console import measured, print_json, print_table
from expertcache_reference.cli.failures import printable
from expertcache_reference.disk import CONDITIONS, CannotMeasure, Line, Plan, Point, read_claim, scratch, summary
from expertcache_reference.disk import sweep as swept
from expertcache_reference.disk import verdict as judged
from expertcache_reference.reader import WAYS, check_ways
from expertcache_reference.system import this_machine
from expertcache_reference.system.seam import Machine
from expertcache_spec.errors import UnknownName
from expertcache_spec.model import parse_size


def io_command(
    path: Annotated[str, typer.Argument(metavar="DIR|FILE", help="A folder for a scratch file, or a file to read.")],
    scratch_size: Annotated[str, typer.Option("--scratch", metavar="SIZE", help="Bytes of the scratch file.")] = "1GiB",
    record: Annotated[str, typer.Option("--record", metavar="SIZE", help="Bytes of a record.")] = "7077888B",
    records: Annotated[int, typer.Option("--records", min=1, help="Records of a run.")] = 16,
    at_once: Annotated[int, typer.Option("--at-once", min=1, help="Records asked for together.")] = 1,
    chunks: Annotated[str, typer.Option("--chunks", metavar="N,...", help="Fan-outs to try.")] = "1,2,4,8",
    workers: Annotated[str, typer.Option("--workers", metavar="N,...", help="Pools to try.")] = "1,4,8",
    conditions: Annotated[
        str, typer.Option("--conditions", metavar="NAME,...", help=f"Of {', '.join(CONDITIONS)}.")
    ] = ",".join(CONDITIONS),
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Runs of each point.")] = 3,
    way: Annotated[str, typer.Option("--way", help=f"One of {', '.join(WAYS)}.")] = "pread",
    seed: Annotated[int, options.number("--seed", "Of the places that are read.")] = 0,
    claim: Annotated[
        str | None, typer.Option("--claim", metavar="BYTES/SECONDS", help="Judge a rate, like 94.67GiB/4.97s.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Measure the fan-out sweep, cold and warm, and say which runs were cold, by what evidence."""
    plan = Plan(
        parse_size(record).bytes, records, at_once, _numbers("--chunks", chunks), _numbers("--workers", workers),
        _named(conditions), rounds, way, seed,  # type: ignore[arg-type]
    )  # fmt: skip
    for pool in plan.workers:
        check_ways(pool, way)
    claimed, machine = read_claim(claim) if claim else None, this_machine()
    with _file(path, parse_size(scratch_size).bytes) as file:
        points = _measure(machine, file, plan, path)
    lines = summary(points)
    found = judged(lines, claimed) if claimed else None
    if as_json:
        print_json(described(machine, path, plan, points, lines, found))
    else:
        _print(path, plan, lines, found)


def _numbers(option: str, text: str) -> tuple[int, ...]:
    found = tuple(options.whole_number(word) for word in text.split(","))
    if any(number < 1 for number in found):
        raise typer.BadParameter(f"{option} {text!r}: whole numbers from 1")
    return found


def _named(text: str) -> tuple[str, ...]:
    for name in text.split(","):
        if name not in CONDITIONS:
            raise UnknownName(f"condition {name!r}", where="--conditions", cure=f"one of {', '.join(CONDITIONS)}")
    return tuple(text.split(","))


@contextmanager
def _file(path: str, size: int) -> Iterator[Path]:
    """The file itself, or a scratch file in the folder."""
    if not Path(path).is_dir():
        if Path(path).exists() and not Path(path).is_file():  # to open a pipe would wait for who writes to it
            raise CannotMeasure("neither a folder nor a regular file", where=path, cure="name one of these")
        yield Path(path)
        return
    with measured("writing the scratch file") as progress, scratch(Path(path), size, progress) as file:
        yield file


def _measure(machine: Machine, file: Path, plan: Plan, shown: str) -> list[Point]:
    try:
        with measured(f"reading {options.shown(shown)}") as progress:
            return list(swept(machine, file, plan, progress))
    except OSError as error:
        full = error.errno == errno.ENOMEM
        cure = "ask for smaller records, or fewer at once" if full else "name a file that can be read"
        raise CannotMeasure(f"{error.strerror or error}", where=shown, cure=cure) from error


def described(
    machine: Machine, path: str, plan: Plan, points: list[Point], lines: list[Line], found: tuple[str, str] | None
) -> dict[str, Any]:
    """All of it: application and physical bytes apart, null where the machine does not say."""
    return {
        "system": machine.name,
        "page": machine.page,
        "path": path,
        "plan": attrs.asdict(plan),
        "lines": [
            {
                **line._asdict(),
                "evidence": line.evidence._asdict(),
                "bytes_per_second": round(line.rate) if line.nanoseconds else None,
            }
            for line in lines
        ],
        "runs": [
            {**attrs.asdict(point), "evidence": point.evidence._asdict(), "state": point.evidence.state}
            for point in points
        ],
        "claim": {"verdict": found[0], "why": found[1]} if found else None,
    }


def _share(part: int | None, whole: int) -> str:
    return "unknown" if part is None else f"{100 * part / whole:.1f} %"


def _print(path: str, plan: Plan, lines: list[Line], found: tuple[str, str] | None) -> None:
    columns = ("prepared", "chunks", "workers", "ms a record", "GB/s", "in memory before", "from the device", "state")
    rows = [
        (
            line.condition, str(line.chunks), str(line.workers), f"{line.nanoseconds / line.records / 1e6:.3f}",
            f"{line.rate / 1e9:.2f}", _share(line.evidence.resident, line.evidence.application),
            _share(line.evidence.physical, line.evidence.application), line.state,
        )
        for line in lines
    ]  # fmt: skip
    print_table(f"{path}: shares are of the bytes asked for, medians of all rounds", columns, rows)
    if found:
        typer.echo(printable(f"claim: {found[0]}, for records of {plan.record} bytes. {found[1]}"))
