"""Runs the suite as a user does: pytest in a folder of the user's, with an implementation by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs

CACHES = Path(__file__).with_name("caches")


@attrs.frozen
class Run:
    """What a run printed and how it ended."""

    code: int
    text: str


def suite(folder: Path, *arguments: str, flags: tuple[str, ...] = (), select: str = "") -> Run:
    """`pytest --pyargs expertcache_conformance` in the folder, with the test caches on the path."""
    environment = os.environ | {"PYTHONPATH": str(CACHES), "COLUMNS": "140"}
    environment.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, *flags, "-m", "pytest", "--pyargs", "expertcache_conformance", "-p", "no:cacheprovider"]
    command += [*arguments, *(["-k", select] if select else [])]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return Run(done.returncode, done.stdout + done.stderr)


def report(path: Path) -> dict[str, Any]:
    """The JSON report."""
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded
