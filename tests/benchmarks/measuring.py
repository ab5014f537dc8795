"""Contenders in processes of their own, round after round, and what is kept of them."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from tests.benchmarks.peers import PEERS
from tests.benchmarks.traces import CAPACITIES

Command: TypeAlias = tuple[list[str], str]
"""Module with its arguments, and EXPERTCACHE_CONTRACTS."""
Measured: TypeAlias = dict[str, Any]
"""What is kept: `lookups`, `speed` (contender to seconds and misses), `growth` (policy to capacity to microseconds)."""


def commands(policies: Sequence[str], tokens: int, trace: Path) -> dict[str, Command]:
    """Every contender of the speed table."""
    module = "tests.benchmarks.replayed"
    found: dict[str, Command] = {name: (["tests.benchmarks.peers", name, str(trace)], "off") for name in PEERS}
    found |= {name: ([module, name, str(tokens)], "off") for name in policies}
    return found | {"lru, contracts on": ([module, "lru", str(tokens)], "on")}


def growing(policies: Sequence[str], lookups: int) -> dict[str, Command]:
    """Every policy of the growth table; one process measures all capacities."""
    return {name: (["tests.benchmarks.replayed", name, "growth", str(lookups)], "off") for name in policies}


def measure(command: Command) -> Any:
    """What one contender prints; None when its library is not installed."""
    arguments, contracts = command
    done = subprocess.run(
        [sys.executable, "-m", *arguments], env=os.environ | {"EXPERTCACHE_CONTRACTS": contracts},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode and "ModuleNotFoundError" in done.stderr:
        return None
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def rounds(contenders: Mapping[str, Command], number: int, console: Console, what: str) -> dict[str, list[Any]]:
    """What each contender prints, once a round; the rounds interleave, so that a busy minute meets all alike."""
    found: dict[str, list[Any]] = {name: [] for name in contenders}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=number * len(contenders))
        for _, (name, command) in product(range(number), contenders.items()):
            progress.update(task, description=f"{what}: {name}")
            if (result := measure(command)) is not None:
                found[name].append(result)
            progress.advance(task)
    return found


def speeds(found: Mapping[str, list[Any]]) -> dict[str, dict[str, float]]:
    """Contender to the median of its seconds, and its misses, which show that the work was done."""
    return {
        name: {"seconds": statistics.median(each["seconds"] for each in runs), "misses": runs[-1]["misses"]}
        for name, runs in found.items()
        if runs
    }


def costs(found: Mapping[str, list[Any]], lookups: int) -> dict[str, dict[str, float]]:
    """Policy to capacity (text, as JSON has it) to microseconds a lookup, the least of the rounds."""
    return {
        policy: {
            str(capacity): min(run[str(capacity)]["seconds"] for run in runs) * 1e6 / lookups for capacity in CAPACITIES
        }
        for policy, runs in found.items()
        if runs
    }
