"""Running the command line, inside the test and as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from typer.testing import CliRunner

from expertcache_reference.cli.commands import app

ROOT = Path(__file__).parents[2]


class Ran(NamedTuple):
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


def run(*arguments: object) -> Ran:
    """The command line inside this process; anything but an exit is raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    return Ran(result.exit_code, result.stdout, result.stderr)


def run_json(*arguments: object) -> dict[str, Any]:
    """What the command printed on stdout, which must be one JSON object, after a good end."""
    ran = run(*arguments, "--json")
    assert ran.code == 0, ran.err
    value = json.loads(ran.out)
    assert isinstance(value, dict)
    return value


def process(*command: object, contracts: str = "on", timeout: float = 120, folder: Path = ROOT) -> Ran:
    """A Python process of its own: `-m module ...` or `-c code ...`."""
    done = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, cwd=folder, timeout=timeout, check=False,
        env={**os.environ, "EXPERTCACHE_CONTRACTS": contracts, "COLUMNS": "80"},
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr)


def waited_for(ready: Callable[[], bool]) -> None:
    """Sleep until it is so; an error after half a minute."""
    for _ in range(600):
        if ready():
            return
        time.sleep(0.05)
    raise AssertionError("it never began")
