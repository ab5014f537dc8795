"""`expertcache check`, through the real command line."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from expertcache_spec.history import log_of
from expertcache_spec.model import Budget
from expertcache_spec.replay import Replay
from expertcache_spec.trace import decode_trace

from .running import ROOT, run

CLI = ("-m", "expertcache_reference.cli")


def records() -> list[dict[str, Any]]:
    """The log of a small LRU replay, header first."""
    trace = decode_trace([[0, 1], [2, 1], [3, 0], [0, 4], [1, 2]], record_bytes=65536)
    found = log_of(Replay(trace, "lru", Budget(slots=3)), split=2)
    return json.loads(json.dumps(list(found)))  # type: ignore[no-any-return]


def put(path: Path, found: list[dict[str, Any]]) -> Path:
    """The log as a file; packed where its name says so."""
    data = b"".join(json.dumps(record).encode() + b"\n" for record in found)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.rule("XC-HIST-012")
@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz"])
def test_a_legal_log_exits_with_0(tmp_path: Path, name: str) -> None:
    ran = run("check", put(tmp_path / name, records()))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"{tmp_path / name}: legal, {len(records()) - 2} lines\n"


@pytest.mark.rule("XC-HIST-005", "XC-HIST-012")
def test_an_illegal_log_exits_with_1_and_shows_rule_and_witness(tmp_path: Path) -> None:
    found = records()
    victim = next(n for n, record in enumerate(found) if record.get("op") == "evict")
    found[victim]["key"] = [0, 1]
    path = put(tmp_path / "run.jsonl", found)
    ran = run("check", path)
    assert ran.code == 1
    assert f"line {victim + 1} breaks XC-EVICT-020:" in ran.out
    assert f"  {victim + 1}: {json.dumps(found[victim])}" in ran.out
    told = json.loads(run("check", path, "--json").out)
    assert (told["answer"], told["line"]) == ("illegal", victim + 1)
    assert told["witness"][-1] == {"line": victim + 1, "text": json.dumps(found[victim])}
    assert all(json.loads(each["text"]) == found[each["line"] - 1] for each in told["witness"])


@pytest.mark.rule("XC-HIST-012")
def test_an_undecided_log_exits_with_3_and_says_why(tmp_path: Path) -> None:
    found = records()
    found[0]["policy"] = None
    ran = run("check", put(tmp_path / "run.jsonl", found))
    assert ran.code == 3
    assert "unknown" in ran.out
    assert "XC-HIST-005 could not be judged: the log declares no policy" in ran.out


@pytest.mark.rule("XC-HIST-002")
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda data: data[:-5], "the last line has no end"),
        (lambda data: b"\x00\xff" + data, "run.jsonl:1: not UTF-8"),
        (lambda data: b"", "the log is empty"),
        (lambda data: gzip.compress(data)[:-20], "cannot read: "),
        (lambda data: gzip.compress(data)[:40] + b"damaged" * 10, "cannot read: "),
        (lambda data: data + b"x" * (17 << 20), "no end of line within"),
    ],
)
def test_what_is_no_log_exits_with_1_and_one_line(tmp_path: Path, spoil: Any, said: str) -> None:
    path = put(tmp_path / "run.jsonl", records())
    path.write_bytes(spoil(path.read_bytes()))
    ran = run("check", path)
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err
    assert "Cure:" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.rule("XC-HIST-002")
def test_a_missing_file_and_a_directory_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        ran = run("check", path)
        assert ran.code == 1
        assert "cannot open the file" in ran.err


def test_an_interrupt_ends_with_130(tmp_path: Path) -> None:
    fifo = tmp_path / "run.jsonl"
    os.mkfifo(fifo)
    command = [sys.executable, *CLI, "check", str(fifo)]
    running = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with fifo.open("wb") as pipe:  # opens when the command has opened it
        pipe.write(json.dumps(records()[0]).encode() + b"\n")
        pipe.flush()
        time.sleep(0.2)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in err
