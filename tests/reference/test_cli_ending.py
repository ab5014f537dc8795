"""How the command line ends when a signal, a full disk or a closed pipe ends it: in one line at most."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import pytest

from .files import CSV, put
from .running import ROOT, Ran, process

CLI = ("-m", "expertcache_reference.cli")
SIGNALS = [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")]
NEEDS_FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")

SENDS_A_SIGNAL_WHEN_IMPORTING = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.{signal})
sys.meta_path.insert(0, Finder())
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return put(tmp_path / "tiny.csv", CSV)


def started(
    command: Sequence[object], stdout: IO[bytes] | int = subprocess.PIPE, stderr: IO[bytes] | int = subprocess.PIPE,
    path: Path | None = None,
) -> Ran:  # fmt: skip
    """The command line as a process of its own, with its streams where the test wants them."""
    environment = {**os.environ, **({} if path is None else {"PYTHONPATH": str(path)})}
    done = subprocess.run(
        [sys.executable, *CLI, *map(str, command)], stdout=stdout, stderr=stderr, cwd=ROOT, env=environment,
        timeout=120, check=False,
    )  # fmt: skip
    return Ran(done.returncode, (done.stdout or b"").decode(), (done.stderr or b"").decode())


# ------------------------------------------------------------------------------------------------- signals


@pytest.mark.parametrize(("signal", "code", "word"), SIGNALS)
@pytest.mark.parametrize("module", ["expertcache_reference.cli.commands", "numpy", "expertcache_spec.rules"])
def test_a_signal_during_the_imports_ends_in_one_line(
    module: str, signal: str, code: int, word: str, tmp_path: Path
) -> None:
    put(tmp_path / "sitecustomize.py", SENDS_A_SIGNAL_WHEN_IMPORTING.format(module=module, signal=signal))
    ran = started(["policies"], path=tmp_path)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err == f"expertcache: {word}; nothing half-written is left\n"


@pytest.mark.parametrize(("signal", "code", "word"), SIGNALS)
@pytest.mark.parametrize("where", ["make_context", "invoke"])
def test_a_signal_while_the_command_line_is_read_or_run_ends_in_one_line(
    where: str, signal: str, code: int, word: str
) -> None:
    program = f"""
import os, signal, sys, time
from expertcache_reference.cli import main
from expertcache_reference.cli.failures import Commands
def stopped(self, *_, **__):
    os.kill(os.getpid(), signal.{signal}); time.sleep(10)
Commands.{where} = stopped
sys.argv = ["expertcache", "policies"]
main()
"""
    ran = process("-c", program)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err == f"expertcache: {word}; nothing half-written is left\n"


def test_a_signal_that_the_caller_ignores_stays_ignored() -> None:
    program = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
from expertcache_reference.cli import main
from expertcache_reference.cli.failures import Commands
invoke = Commands.invoke
def stopped(self, context):
    os.kill(os.getpid(), signal.SIGINT)
    return invoke(self, context)
Commands.invoke = stopped
sys.argv = ["expertcache", "policies", "lru"]
main()
"""
    ran = process("-c", program)
    assert (ran.code, ran.err) == (0, "")
    assert "lru" in ran.out


def test_the_entry_stands_on_the_standard_library_alone() -> None:
    """What is imported before the handlers stand cannot be interrupted in one line."""
    ran = process("-c", "import json, sys, expertcache_reference.cli; print(json.dumps(sorted(sys.modules)))")
    ours = [name for name in json.loads(ran.out) if name.startswith("expertcache")]
    assert ours == ["expertcache_reference", "expertcache_reference.cli"]
    assert not {"typer", "rich", "numpy", "attrs", "icontract"} & set(json.loads(ran.out))


# ------------------------------------------------------------------------------------------------- streams

COMMANDS: dict[str, tuple[str, ...]] = {
    "policies": ("policies",),
    "policies as json": ("policies", "--json"),
    "version": ("--version",),
    "help": ("replay", "--help"),
}


@NEEDS_FULL
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_stdout_ends_in_one_line(name: str) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = started(COMMANDS[name], stdout=full)
    assert ran.code == 2
    assert ran.err.splitlines() == [
        "expertcache: cannot write to stdout: No space left on device. Cure: make room, or send the output elsewhere"
    ]


@NEEDS_FULL
def test_an_output_larger_than_any_buffer_ends_in_one_line() -> None:
    program = """
import sys
from expertcache_reference.cli import main
from expertcache_reference.cli import policies
policies.as_data = lambda *_: "x" * 1_000_000
sys.argv = ["expertcache", "policies", "lru", "--json"]
main()
"""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=full, stderr=subprocess.PIPE, cwd=ROOT, check=False
        )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_a_closed_stdout_ends_in_one_line(name: str) -> None:
    command = [sys.executable, *CLI, *COMMANDS[name]]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "expertcache: stdout is closed. Cure: leave it open, or send it to a file\n"


def test_a_closed_stderr_keeps_nothing_from_being_done(tiny: Path) -> None:
    command = [sys.executable, *CLI, "replay", str(tiny), "--policy", "lru", "--slots", "3", "--json"]
    done = subprocess.run(["sh", "-c", 'exec "$@" 2>&-', "sh", *command], stdout=subprocess.PIPE, cwd=ROOT, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)["lookups"] == 13


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "help"])
def test_a_broken_pipe_is_quiet(name: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = started(COMMANDS[name], stdout=writing)
    finally:
        os.close(writing)
    assert (ran.code, ran.err) == (141, "")


@NEEDS_FULL
def test_a_full_stderr_ends_without_a_word_and_not_well() -> None:
    with Path("/dev/full").open("wb") as full:
        ran = started(["policies", "lur"], stderr=full)
    assert (ran.code, ran.out) == (2, "")


def test_an_error_of_our_own_is_not_taken_for_one_of_the_output() -> None:
    """A defect keeps its traceback: only what the streams refuse is put into words."""
    program = """
import sys
from expertcache_reference.cli import main
from expertcache_reference.cli import policies
def broken(card):
    raise OSError(28, "No space left on device")
policies.as_data = broken
sys.argv = ["expertcache", "policies", "--json"]
main()
"""
    ran = process("-c", program)
    assert ran.code == 1
    assert "Traceback" in ran.err
