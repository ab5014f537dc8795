"""Speed of every policy's replay beside peers of the same run, and its growth with capacity. Asserts nothing.

CPU time of one thread, every contender in a process of its own, rounds interleaved, traces drawn with a fixed seed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from tests.benchmarks import measuring, plot
from tests.benchmarks.growth import growth
from tests.benchmarks.tables import growth_table, speed_table
from tests.benchmarks.traces import as_oracle_general, routing

from expertcache_spec.eviction import POLICIES

SUFFIXES = (".png", ".svg")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--policy", action="append", choices=tuple(POLICIES), help="only this one; may be repeated")
    parser.add_argument("--only", choices=("speed", "growth"), help="one of the two tables")
    parser.add_argument("--long", action="store_true", help="more lookups, 7 and 5 rounds instead of 3 and 2")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the growth table, as PNG or SVG")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep what was measured, as JSON")
    parser.add_argument("--load", type=Path, metavar="FILE", help="show what was kept, measure nothing")
    options = parser.parse_args()
    for path in filter(None, (options.plot, options.save)):
        if not path.parent.is_dir():
            parser.error(f"{path}: its folder does not exist")
    if options.plot is not None and options.plot.suffix not in SUFFIXES:
        parser.error(f"{options.plot}: a plot ends in {' or '.join(SUFFIXES)}")
    return options


def measured(options: argparse.Namespace, console: Console) -> measuring.Measured:
    """Run every contender that the options ask for."""
    policies = options.policy or tuple(POLICIES)
    tokens, lookups, turns, growing = (1024, 122_880, 7, 5) if options.long else (256, 15_360, 3, 2)
    found: measuring.Measured = {"lookups": tokens * 240, "speed": {}, "growth": {}}
    with tempfile.TemporaryDirectory() as folder:
        if options.only != "growth":
            trace = Path(folder) / "trace.oracleGeneral"
            as_oracle_general(routing(tokens), trace)
            contenders = measuring.commands(policies, tokens, trace)
            found["speed"] = measuring.speeds(measuring.rounds(contenders, turns, console, "speed"))
        if options.only != "speed":
            contenders = measuring.growing(policies, lookups)
            found["growth"] = measuring.costs(measuring.rounds(contenders, growing, console, "growth"), lookups)
    return found


def show(found: measuring.Measured, picture: Path | None, console: Console) -> None:
    """Print the tables, and draw the second one where a picture is asked for."""
    if found["speed"]:
        console.print(speed_table(found["lookups"], found["speed"]))
    if not found["growth"]:
        return
    grown = growth({policy: {int(slots): cost for slots, cost in by.items()} for policy, by in found["growth"].items()})
    console.print(growth_table(grown))
    if picture is not None:
        try:
            plot.draw(grown, picture)
        except ModuleNotFoundError:
            console.print("No plot: matplotlib is not installed. Cure: pip install 'expertcache[plot]'")


def kept(path: Path) -> measuring.Measured:
    """What `--save` has written."""
    try:
        found: measuring.Measured = json.loads(path.read_text(encoding="utf-8"))
        if found.keys() != {"lookups", "speed", "growth"}:
            raise ValueError("not what --save writes")
    except (OSError, ValueError, AttributeError) as error:
        raise SystemExit(f"--load {path}: {error}. Cure: a file that --save has written") from None
    return found


def main() -> int:
    """Measure, or load; print; save and draw where asked."""
    options, console = arguments(), Console(width=None if sys.stdout.isatty() else 100)
    try:
        if options.load is None:
            print("measuring; Ctrl-C ends it", flush=True)
        found = kept(options.load) if options.load else measured(options, Console(stderr=True))
    except KeyboardInterrupt:
        console.print("interrupted: nothing is written")
        return 130
    if options.save is not None:
        part = options.save.with_name(f".{options.save.name}.part")
        part.write_text(json.dumps(found, indent=1) + "\n")
        part.replace(options.save)
    show(found, options.plot, console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
