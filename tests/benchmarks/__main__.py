"""`make bench`: speeds beside peers, measured in the same run. Prints ratios, asserts nothing.

Lookups per second of process CPU time, the median of interleaved rounds. Every contender runs in a fresh process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.benchmarks.traces import as_oracle_general, routing

PEERS = ("libcachesim_plugin_lru", "libcachesim_native_lru", "cachetools_lru")
POLICIES = ("lru", "fifo", "lfu", "lfu-reset", "belady")


def measure(command: list[str], **environment: str) -> dict[str, float] | None:
    """Run one contender; None when it is not installed."""
    done = subprocess.run(
        [sys.executable, "-m", *command], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        if "ModuleNotFoundError" in done.stderr:
            return None
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--tokens", type=int, default=256, help="tokens of the synthetic trace (240 lookups each)")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        trace = str(Path(folder) / "trace.oracleGeneral")
        as_oracle_general(routing(options.tokens), Path(trace))
        contenders = {
            **{
                f"specification {name}": (["tests.benchmarks.replayed", name, str(options.tokens)], "off")
                for name in POLICIES
            },
            "specification lru, contracts on": (["tests.benchmarks.replayed", "lru", str(options.tokens)], "on"),
            **{name: (["tests.benchmarks.peers", name, trace], "off") for name in PEERS},
        }
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        misses: dict[str, float] = {}
        for number in range(options.rounds):
            for name, (command, contracts) in contenders.items():
                console.print(f"round {number + 1} of {options.rounds}: {name}", highlight=False)
                if (found := measure(command, EXPERTCACHE_CONTRACTS=contracts)) is not None:
                    seconds[name].append(found["seconds"])
                    misses[name] = found["misses"]
    print_table(console, options.tokens * 240, seconds, misses)


def print_table(console: Console, lookups: int, seconds: dict[str, list[float]], misses: dict[str, float]) -> None:
    """One row for each contender: speed, ratio to the plugin, and misses, which show that the work was done."""
    plugin = seconds["libcachesim_plugin_lru"]
    table = Table(
        "contender", "M lookups/s", "x libCacheSim plugin", "misses", title=f"{lookups:,} lookups, 1,889 slots"
    )
    for name, times in seconds.items():
        if not times:
            table.add_row(name, "not installed", "", "")
            continue
        speed = lookups / statistics.median(times) / 1e6
        ratio = f"{statistics.median(plugin) / statistics.median(times):.2f}" if plugin else ""
        table.add_row(name, f"{speed:.3f}", ratio, f"{misses[name]:,.0f}")
    console.print(table)


if __name__ == "__main__":
    main()
