"""CrossHair looks for numbers that break a law of a small pure function; at night, and with the extra `search`."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from .running import ROOT

CHECK = (sys.executable, "-m", "crosshair", "check", "--analysis_kind=asserts")
LAWS = ROOT / "tests" / "spec" / "crosshair_laws.py"


@pytest.mark.nightly
@pytest.mark.rule("XC-MODEL-005", "XC-MODEL-006", "XC-FANOUT-001")
def test_no_numbers_are_found_that_break_a_law() -> None:
    laws = [node.name for node in ast.parse(LAWS.read_text()).body if isinstance(node, ast.FunctionDef)]
    assert len(laws) >= 4
    done = subprocess.run(
        [*CHECK, "--per_condition_timeout=60", str(LAWS)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.nightly
def test_a_law_that_is_false_would_be_found(tmp_path: object) -> None:
    path = ROOT.joinpath(str(tmp_path), "false_law.py")
    path.write_text("def law(n: int) -> None:\n    assert n > 5\n    assert n * n != 49\n")
    done = subprocess.run(
        [*CHECK, str(path)],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 1
