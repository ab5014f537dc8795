"""The runtime's figures, each beside what it is held against in the same run. Asserts nothing.

Throughput is given by the clock and by the CPU time of all cores: on a busy machine the second is the steadier one.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from tests.benchmarks.runtime import costs, overlap, reading
from tests.benchmarks.runtime.reading import Spent, Warm

SHAPES = ((608, 4, 2), (332, 4, 2), (332, 4, 8), (64, 2, 2))
"""Pages of a record, chunks, threads: the records of ds4 at Q2 and at a Q3 of 5.2 MiB, and one of a small model."""
GRID = tuple(product((64, 332), (1, 4, 8), (2, 4, 8)))
OF_LOOP, MICROSECONDS, EFFICIENCY = 0.95, 20, 0.9
"""Floors and the ceiling."""


def throughput(folder: Path, turns: int, shapes: Sequence[tuple[int, int, int]]) -> Table:
    """GB a second of a warm file; shares of the C loop are medians of the turns, each beside the loop of its turn."""
    table = Table(title="a warm file; floor 0.95 of the loop", box=SIMPLE)
    for name in ("record", "chunks", "threads", "by", "GB/s", "GB/CPU s", "of loop, clock", "of loop, CPU"):
        table.add_column(name, justify="right", no_wrap=True)
    loop = reading.compiled(folder)
    for pages, chunks, threads in shapes:
        warm = Warm(folder, pages, 32 if pages > 100 else 128, threads, chunks, 6)
        warm.write()
        contenders: dict[str, Callable[[], Spent | None]] = {
            "C loop": lambda warm=warm: None if loop is None else reading.by_loop(loop, warm),
            "same, huge pages": lambda warm=warm: None if loop is None else reading.by_loop(loop, warm, huge=True),
            "fio": lambda warm=warm: reading.by_fio(warm),
            "reader": lambda warm=warm: reading.by_reader(warm),
            "runtime": lambda warm=warm: reading.by_runtime(warm),
        }
        found = [{name: run() for name, run in contenders.items()} for _ in range(turns)]
        for name in contenders:
            spent = [(turn[name], turn["C loop"] or turn[name]) for turn in found]
            ratios = [(base.wall / own.wall, base.cpu / own.cpu, own) for own, base in spent if own and base]
            if ratios:
                clock, cpu = (statistics.median(each[at] for each in ratios) for at in (0, 1))
                rates = [statistics.median(warm.bytes / each[2][at] / 1e9 for each in ratios) for at in (0, 1)]
                table.add_row(f"{warm.size:,} B", f"{chunks}", f"{threads}", name, *(f"{rate:.2f}" for rate in rates),
                              f"{clock:.2f}", f"{cpu:.2f}")  # fmt: skip
            else:
                table.add_row(f"{warm.size:,} B", f"{chunks}", f"{threads}", name, "not installed", "", "", "")
    return table


def overheads(folder: Path, turns: int) -> Table:
    """Microseconds a lookup, efficiency of overlap, memory."""
    table = Table(title="what the runtime costs", box=SIMPLE)
    for name in ("what", "measured", "held against"):
        table.add_column(name, no_wrap=True)
    for log in (False, True):
        spent = [costs.lookup_microseconds(folder, log=log) for _ in range(turns)]
        what = f"all hits, log {'on' if log else 'off'}"
        table.add_row(what, f"{statistics.median(spent):.1f} us a lookup", "" if log else f"{MICROSECONDS} us")
    for discipline in overlap.CHUNKS:
        took = [overlap.measured(folder, discipline) for _ in range(turns)]
        found = statistics.median(overlap.computed(discipline, each) / each.seconds for each in took)
        table.add_row(f"{discipline}, of the computed schedule", f"{found:.3f}", f"{EFFICIENCY}")
    found_memory = costs.memory(folder)
    for name, size in found_memory.items():
        table.add_row(f"peak memory: {name}", f"{size / 2**20:.1f} MiB", "")
    return table


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.runtime", description=__doc__)
    parser.add_argument("--turns", type=int, default=5, help="how often each is measured")
    parser.add_argument(
        "--grid", action="store_true", help="records of 1 MiB and 5.2 MiB, 1 to 8 chunks, 2 to 8 threads"
    )
    options, console = parser.parse_args(), Console(width=None if sys.stdout.isatty() else 110)
    try:
        with tempfile.TemporaryDirectory() as folder:
            console.print(overheads(Path(folder), options.turns))
            console.print(throughput(Path(folder), options.turns, GRID if options.grid else SHAPES))
    except KeyboardInterrupt:
        console.print("interrupted")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
