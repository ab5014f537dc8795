"""`expertcache run` decodes real text through the runtime, verifies it, and ends well however it is ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from expertcache_reference import tinymoe
from expertcache_reference.compute import Resident
from expertcache_reference.stores import open_store, pack
from expertcache_reference.tinymoe import TINY, Loaded, weights_path
from expertcache_spec import history
from expertcache_spec.model import Key

from .models import mlx, weights
from .running import ROOT, process, run, run_json, waited_for

FEW = ("--tokens", 8, "--prompt", "Don Abbondio ")
PASSES = 1 + 8 - 1


def test_the_text_and_what_it_took_are_printed() -> None:
    ran = run("run", *FEW, "--slots", 60, "--policy", "lfu", "--seed", 3, "--temperature", 0.5)
    assert (ran.code, ran.err) == (0, "")
    for words in (
        "lfu, budget 60 slots, split:1, pread, numpy", "prompt    13 bytes", "decoded   8 bytes",
        "requests, from the device", "overlap", f"memory    {60 * 49152} bytes of slots at most",
    ):  # fmt: skip
        assert words in ran.out
    assert "verified" not in ran.out


def test_the_same_seed_gives_the_same_text_whatever_the_cache_is() -> None:
    texts = {
        run_json("run", *FEW, "--temperature", 1, "--seed", 2, *cache)["text"]
        for cache in (
            ("--slots", 50),
            ("--budget", "4MiB", "--discipline", "pipelined", "--workers", 1, "--way", "mmap"),
        )
    }
    assert len(texts) == 1
    assert run_json("run", *FEW, "--temperature", 1, "--seed", 3)["text"] not in texts


def test_verify_compares_every_logit_and_the_log_is_legal_and_counts_the_same(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    found = run_json("run", *FEW, "--verify", "--log", path, "--slots", 60)
    assert found["verified"] == {"logits": (13 + 7) * 256, "differ": 0, "first": None}
    with path.open("rb") as file:
        header, lines = history.read_log(file)
        told = list(lines)
    assert history.check(header, iter(told)).answer == "legal"
    counts = {op: sum(record["op"] == op for _, record in told) for op in ("hit", "miss", "evict", "select")}
    report = found["report"]
    assert (report["hits"], report["misses"], report["evictions"]) == (counts["hit"], counts["miss"], counts["evict"])
    assert counts["select"] == PASSES * TINY.layers
    assert report["application_bytes"] == report["misses"] * 49152


def test_verify_finds_one_wrong_bit_of_one_expert(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Loaded.resident

    def wrong(self: Loaded) -> Resident:
        records = dict(right(self).records)
        for expert in range(TINY.experts):
            record = bytearray(records[Key(5, expert)])
            record[1] ^= 0x40  # the high exponent bit of gate's first weight
            records[Key(5, expert)] = bytes(record)
        return Resident(records)

    monkeypatch.setattr(Loaded, "resident", wrong)
    ran = run("run", *FEW, "--verify")
    assert ran.code == 1
    assert "DIFFER, the first in pass 0" in ran.out


@pytest.mark.parametrize("kind", ["layers", "gguf"])
def test_it_streams_from_what_pack_made_of_the_model(kind: str, tmp_path: Path) -> None:
    with weights_path() as path:
        pack(open_store(path), tmp_path / f"m.{kind}", kind)
    found = run_json("run", *FEW, "--verify", "--store", tmp_path / f"m.{kind}", "--discipline", "staged")
    assert found["verified"]["first"] is None
    assert found["text"] == run_json("run", *FEW)["text"]


def test_a_store_of_another_model_is_refused(tmp_path: Path) -> None:
    other = mlx(tmp_path / "model", weights(range(6), 24, TINY.part_shapes)).parent  # type: ignore[arg-type]
    pack(open_store(other), tmp_path / "packed", "layers")
    for store, said in ((other, "no store that `pack` has made"), (tmp_path / "packed", "not the tiny model's")):
        ran = run("run", *FEW, "--store", store)
        assert ran.code == 1
        assert said in ran.err


def test_a_log_is_not_written_under_the_name_of_a_compressed_one(tmp_path: Path) -> None:
    ran = run("run", *FEW, "--log", tmp_path / "log.jsonl.gz")
    assert ran.code == 2
    assert "leave .gz out" in ran.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--prompt", ""), "give a prompt"),
        (("--prompt", "a", "--tokens", "65537"), "give 65536 at most"),
        (("--temperature", "nan"), "temperature nan"),
        (("--compute", "cuda"), "one of numpy, mlx"),
        (("--slots", "3"), "raise the budget"),
        (("--policy", "belady"), "belady"),
        (("--discipline", "free"), "free is a bound"),
        (("--way", "telepathy"), "telepathy"),
        (("--workers", "0"), "workers"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(options: tuple[str, ...], words: str) -> None:
    ran = run("run", *options)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert words in ran.err


def test_a_log_that_exists_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("mine")
    ran = run("run", *FEW, "--log", path)
    assert ran.code == 2
    assert "the file exists" in ran.err
    assert path.read_text() == "mine"


INTERRUPTED = """
import os, signal, sys
from expertcache_reference.cli import main
from expertcache_reference.tinymoe import Sampler
choose, calls = Sampler.choose, []
def stopped(self, logits):
    calls.append(1)
    if len(calls) == 5:
        os.kill(os.getpid(), signal.SIGINT)
    return choose(self, logits)
Sampler.choose = stopped
sys.argv = ["expertcache", "run", "--log", {log!r}]
main()
"""


def test_an_interrupt_leaves_no_log_and_no_thread(tmp_path: Path) -> None:
    ran = process("-c", INTERRUPTED.format(log=str(tmp_path / "log.jsonl")))
    assert (ran.code, ran.out) == (130, "")
    assert ran.err == "expertcache: interrupted; nothing half-written is left\n"
    assert not list(tmp_path.iterdir())


def test_a_terminal_shows_it_live() -> None:
    pty = pytest.importorskip("pty", reason="no pseudo-terminals here")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "expertcache_reference.cli", "run", "--tokens", "40", "--json"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    ) as child:
        os.close(theirs)
        seen = _all(ours)
        assert child.stdout is not None
        out = child.stdout.read()
    assert child.returncode == 0
    for words in (b"tinymoe", b"hit rate", b"overlap", b"tokens/s"):
        assert words in seen
    assert b'"text"' in out
    assert b"hit rate" not in out


def _all(descriptor: int) -> bytes:
    """What comes until the other side is closed."""
    found = b""
    while True:
        try:
            more = os.read(descriptor, 65536)
        except OSError:  # Linux says that the other side has gone in this way
            more = b""
        if not more:
            os.close(descriptor)
            return found
        found += more


def test_the_model_answers_for_its_own_text(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe: dict[str, Any] = {**tinymoe.recipe(), "sha256": "0" * 64}
    monkeypatch.setattr("expertcache_reference.tinymoe.running.recipe", lambda: recipe)
    ran = run("run", *FEW)
    assert ran.code == 1
    assert "fingerprint" in ran.err


def test_a_policy_of_ones_own_is_streamed_under_and_its_log_is_legal(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from expertcache_spec.eviction import Card\n"
        "from expertcache_spec.eviction.base import by_order\n"
        "RULE = by_order(lambda past, key: (past.touched[key],))\n"
        "CARD = Card('mine', 'XC-EVICT-002', RULE, RULE, 'least recent', 'a test', 'O(n)')\n",
        encoding="utf-8",
    )
    command = ("-m", "expertcache_reference.cli")
    ran = process(*command, "run", *FEW, "--policy", "mine:CARD", "--log", "run.jsonl", folder=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert "mine:CARD, budget 72 slots" in ran.out
    told = process(*command, "identify", "run.jsonl", "--sold-as", "mine:CARD", folder=tmp_path)
    assert (told.code, told.err) == (0, "")


def test_no_slots_are_no_slots() -> None:
    report = run_json("run", *FEW, "--slots", 0, "--overflow", "bypass")["report"]
    assert (report["hits"], report["misses"], report["peak_slots"]) == (0, 0, 0)
    assert report["bypassed"] > 0


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (("--seed", -1), "give a whole number from 0"),
        (("--workers", 100_000), "give a whole number from 1 to 256"),
        (("--chunks", 0), "give a whole number from 1"),
        (("--slots", 1), "overflow bypass or waves; or have a pass read fewer bytes of the prompt with --chunk"),
    ],
)
def test_a_number_that_cannot_be_is_refused_with_its_cure(words: tuple[str, int], cure: str) -> None:
    ran = run("run", *FEW, *words)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert cure in ran.err


def test_a_log_that_exists_is_replaced_by_force_only(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("kept")
    ran = run("run", *FEW, "--log", path)
    assert (ran.code, "--force" in ran.err, path.read_text()) == (2, True, "kept")
    assert run("run", *FEW, "--log", path, "--force").code == 0
    with path.open("rb") as file:
        header, lines = history.read_log(file)
        assert history.check(header, iter(list(lines))).answer == "legal"


def test_a_log_whose_writer_was_killed_leaves_nothing_once_it_is_written_again(tmp_path: Path) -> None:
    log = tmp_path / "run[1].jsonl"  # a name that a pattern would take for another
    command = ("-m", "expertcache_reference.cli", "run", "--log", str(log), "--slots", "60", "--tokens")
    with subprocess.Popen([sys.executable, *command, "60000"], stdout=subprocess.DEVNULL, cwd=ROOT) as child:
        waited_for(lambda: any(path.stat().st_size > 1 << 16 for path in tmp_path.iterdir()))
        before = list(tmp_path.iterdir())
        assert run("run", *FEW, "--slots", 60, "--log", log).code == 0
        assert set(tmp_path.iterdir()) == {*before, log}, "whose writer lives stays"
        child.kill()
    assert run("run", *FEW, "--slots", 60, "--log", log, "--force").code == 0
    assert list(tmp_path.iterdir()) == [log]
