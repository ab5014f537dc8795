"""Least-Stale and prefetch against a real file system, warm and cold, beside what the replay says. Asserts nothing.

Conditions: `cold`, the file's pages dropped before the run, and the page cache takes what is read; `past`, dropped, and
every read goes past the page cache; `warm`, the file read once before. What a run was is in column `reads were`, by the
bytes of the file in memory before it and those that the device was asked for meanwhile. The scratch file is removed at
the end, however it comes.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from itertools import product
from pathlib import Path

import attrs
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from tests.benchmarks.filesystem.cases import Case, Load, cases, load
from tests.benchmarks.filesystem.running import Run, Setting, replayed, run
from tests.benchmarks.filesystem.tables import described, table

from expertcache_reference.disk import CONDITIONS, CannotMeasure, scratch
from expertcache_reference.disk.evidence import Condition
from expertcache_reference.system import this_machine
from expertcache_spec.errors import ExpertCacheError, UnknownName
from expertcache_spec.model import parse_size

COLUMNS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.filesystem", description=__doc__)
    for name in CONDITIONS:
        parser.add_argument(f"--{name}", action="append_const", const=name, dest="conditions", help=f"run {name}")
    parser.add_argument("--folder", type=Path, default=Path(), help="where the scratch file is made")
    parser.add_argument("--trace", default="tinymoe-python", help="a builtin trace")
    parser.add_argument("--record", default="1MiB", help="bytes of a record")
    parser.add_argument("--slots", type=int, default=72)
    parser.add_argument("--passes", type=int, default=100, help="tokens")
    parser.add_argument("--layers", type=int, help="only the first so many")
    parser.add_argument("--case", action="append", metavar="NAME", help="only this one; may be repeated")
    parser.add_argument("--turns", type=int, default=3, help="how often each is run")
    for name, field in attrs.fields_dict(Setting).items():
        parser.add_argument(f"--{name}", type=type(field.default), default=field.default)
    parser.add_argument("--json", type=Path, help="write every run to this file")
    return parser.parse_args()


def measure(
    found: Load, chosen: list[Case], conditions: list[Condition], setting: Setting, turns: int, console: Console
) -> list[Run]:
    """Every case in every condition, turn after turn, forwards and backwards."""
    machine, runs = this_machine(), list[Run]()
    plan = list(product(conditions, chosen))
    with Progress(*COLUMNS, console=console, transient=True) as progress:
        task = progress.add_task("running", total=turns * len(plan))
        for turn in range(turns):
            for condition, case in plan if turn % 2 == 0 else plan[::-1]:
                progress.update(task, description=f"{condition}: {case.name}")
                runs.append(run(machine, found, case, condition, setting))
                progress.advance(task)
    order = [case.name for case in chosen]
    return sorted(runs, key=lambda each: order.index(each.case))


def _chosen(found: Load, names: list[str] | None) -> list[Case]:
    known = {case.name: case for case in cases(found)}
    for name in names or ():
        if name not in known:
            raise UnknownName(f"case {name!r}", where="--case", cure=f"one of {'; '.join(known)}")
    return [case for name, case in known.items() if not names or name in names]


def _measured(options: argparse.Namespace, console: Console) -> None:
    found = load(options.trace, parse_size(options.record).bytes, options.slots, options.passes, options.layers)
    setting = Setting(**{name: getattr(options, name) for name in attrs.fields_dict(Setting)})
    conditions: list[Condition] = options.conditions or list(CONDITIONS)
    chosen = _chosen(found, options.case)
    with Progress(*COLUMNS[:2], console=console, transient=True) as progress:
        task = progress.add_task("writing the scratch file")
        size = next(iter(found.layout.files.values()))
        with scratch(
            options.folder, size, lambda done, total: progress.update(task, completed=done, total=total)
        ) as at:
            progress.stop()
            found = attrs.evolve(found, file=at)
            runs = measure(found, chosen, conditions, setting, options.turns, console)
    replays = {case.name: replayed(found, case) for case in chosen}
    for condition in conditions:
        console.print(table(found, condition, runs, replays))
    if options.json is not None:
        options.json.write_text(json.dumps(described(found, setting, runs, replays), indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """Measure and print."""
    options, console = _options(), Console(width=None if sys.stdout.isatty() else 220)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the scratch file goes then too
    try:
        _measured(options, console)
    except (ExpertCacheError, CannotMeasure) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        console.print("interrupted")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
