"""`expertcache trace info`, `validate` and `convert`, and the program around them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from expertcache_reference.traces import open_trace, write_trace
from expertcache_spec import SPEC_VERSION
from expertcache_spec.trace import decode_trace

from .files import CSV, GEMMA, INSTRUCT_FACTS, QWEN, dumped, put, request
from .running import process, run, run_json


def test_info_counts_what_is_published_about_the_traces() -> None:
    qwen = run_json("trace", "info", "builtin:qwen3-30b-a3b")
    assert (qwen["passes"], qwen["rows"]["prefill"]) == ({"decode": 128, "prefill": 1}, 28 * 47 + 1)
    assert (qwen["keys_touched"], qwen["keys_total"]) == (3733, 6144)
    assert (sum(qwen["lookups"].values()), sum(qwen["selections"].values())) == (39526, 44766)
    assert (qwen["token_cycle_slots"], qwen["token_cycle_bytes"]) == (288, 822804480)
    assert qwen["fingerprint"] == open_trace(QWEN).fingerprint
    assert qwen["warnings"] == []
    facts = run_json("trace", "info", INSTRUCT_FACTS)
    assert (facts["keys_touched"], facts["streams"], facts["token_cycle_bytes"]) == (728, 4, None)
    assert (facts["overlap_shared"], facts["overlap_pairs"]) == (56451, (1331 - 4) * 24)
    assert round(facts["overlap"], 3) == 0.443


def test_overlap_is_that_of_adjacent_decode_passes_of_one_stream(tmp_path: Path) -> None:
    info = run_json("trace", "info", put(tmp_path / "t.csv", CSV))
    # layer 0: {0,3} then {1,2}, nothing shared; layer 1: {3,1} then {0,1}, one of two
    assert (info["overlap_shared"], info["overlap_pairs"], info["overlap"]) == (1, 2, 0.25)


def test_info_without_json_is_readable() -> None:
    ran = run("trace", "info", GEMMA)
    assert ran.code == 0
    for words in (
        "distinct keys    2362 of 3840",
        "180 slots, 709226496 bytes",
        "30 layers (30 routed), 128 experts, top-6",
    ):
        assert words in ran.out


def test_suspicious_traces_are_warned_about_loudly(tmp_path: Path) -> None:
    one = request("a", tokens=40)
    for walk in one["ids"]:
        walk[7] = walk[3]
    path = put(tmp_path / "t.jsonl", dumped([one]))
    for command in ("info", "validate"):
        ran = run("trace", command, path)
        assert ran.code == 0
        assert re.search("WARNING: .*layers 3, 7 are identical", ran.err)
    assert any("layers 3, 7" in warning for warning in run_json("trace", "info", path)["warnings"])


def test_validate_goes_on_after_a_bad_file_and_exits_with_1(tmp_path: Path) -> None:
    bad = put(tmp_path / "bad.csv", CSV[:-30])
    ran = run("trace", "validate", bad, GEMMA, tmp_path / "none.csv")
    assert ran.code == 1
    assert ran.out == f"{GEMMA}: ok, 3870 events\n"
    assert [line.split(": ")[1].split(":")[0] for line in ran.err.splitlines()] == [
        str(bad),
        str(tmp_path / "none.csv"),
    ]
    assert run("trace", "validate", "builtin:gemma-4-26b-a4b").code == 0


@pytest.mark.rule("XC-TRACE-006")
def test_convert_goes_round_both_forms(tmp_path: Path) -> None:
    first, second, third = tmp_path / "a.npz", tmp_path / "b.jsonl", tmp_path / "c.jsonl.gz"
    assert run("trace", "convert", GEMMA, first, "--name", "round").code == 0
    assert run("trace", "convert", first, second, "--to", "jsonl", "--from", "npz").code == 0
    assert run("trace", "convert", second, third).code == 0
    trace = open_trace(third)
    assert (trace.name, trace.events) == ("round", open_trace(GEMMA).events)


def test_convert_drops_weights_and_sets_record_sizes(tmp_path: Path) -> None:
    source, target = put(tmp_path / "t.csv", CSV.replace("0.6", "nan")), tmp_path / "t.jsonl"
    refused = run("trace", "convert", source, target)
    assert (refused.code, target.exists()) == (1, False)
    assert "--drop-weights" in refused.err
    done = run(
        "trace", "convert", source, target, "--drop-weights", "--record-bytes", "5,6", "--about", "licence=MIT=yes"
    )
    assert done.code == 0, done.err
    trace = open_trace(target)
    assert trace.geometry.record_bytes == (5, 6)
    assert trace.about["licence"] == "MIT=yes"
    assert all(event.weights is None for event in trace.events)


def test_convert_replaces_nothing_unasked_and_refuses_bad_options(tmp_path: Path) -> None:
    source, target = put(tmp_path / "t.csv", CSV), put(tmp_path / "t.jsonl", "precious")
    ran = run("trace", "convert", source, target)
    assert (ran.code, target.read_text()) == (2, "precious")
    assert "--force" in ran.err
    assert run("trace", "convert", source, target, "--force").code == 0
    assert len(open_trace(target).events) == 6
    for options in (["--to", "csv"], ["--from", "vllm"], ["--about", "nonsense"], ["--to", "npz"]):
        assert run("trace", "convert", source, tmp_path / "new.jsonl", *options).code == 2
    assert not (tmp_path / "new.jsonl").exists()


@pytest.mark.parametrize(("signal", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_while_writing_leaves_nothing_behind(signal: str, code: int, tmp_path: Path) -> None:
    program = f"""
import os, signal, sys, time
from expertcache_reference.cli import main
from expertcache_reference.traces import canonical
def half(trace, file, **_):
    file.write(b"half"); file.flush()
    assert len(os.listdir({str(tmp_path)!r})) == 1
    os.kill(os.getpid(), signal.{signal}); time.sleep(10)
canonical.write = half
sys.argv = ["expertcache", "trace", "convert", {str(GEMMA)!r}, {str(tmp_path / "t.jsonl")!r}]
main()
"""
    ran = process("-c", program)
    assert ran.code == code
    assert "Traceback" not in ran.err
    assert list(tmp_path.iterdir()) == []


def test_hostile_text_reaches_the_terminal_escaped_and_short(tmp_path: Path) -> None:
    record = {"format": "expertcache-trace", "version": 1, "\x1b[2J\n\ud800" + "x" * 100_000: 1,
              "geometry": {"layers": 1, "experts": 1, "top_k": 1}}  # fmt: skip
    ran = process("-m", "expertcache_reference.cli", "trace", "validate", put(tmp_path / "t.jsonl", json.dumps(record)))
    assert ran.code == 1
    assert "\x1b" not in ran.err
    assert len(ran.err.splitlines()) == 1
    assert len(ran.err) < 4000


def test_the_program_says_its_versions_and_its_help() -> None:
    version = process("-m", "expertcache_reference.cli", "--version")
    assert re.fullmatch(rf"expertcache \S+, specification {re.escape(SPEC_VERSION)}\n", version.out)
    assert version.code == 0
    for command in ((), ("trace",), ("replay",), ("compare",), ("trace", "info"), ("trace", "convert")):
        assert run(*command, "--help").code == 0
    assert run("replya").code == 2


def test_one_is_singular_wherever_a_number_is_printed(tmp_path: Path) -> None:
    trace = put(tmp_path / "one.jsonl", dumped([request()]).replace("\n", ""))
    single, target = tmp_path / "single.jsonl", tmp_path / "again.jsonl"
    write_trace(decode_trace([[0]]), single)
    said = [
        run("trace", "validate", single).out,
        run("trace", "convert", single, target).out,
        run("trace", "info", single).out,
        run("replay", single, "--policy", "lru", "--slots", "1").out,
        run("compare", single, "--policies", "lru", "--slots", "1").out,
    ]
    words = ("1 event\n", "1 event,", "1 slot,", "budget 1 slot\n", "1 slot ")
    for printed, word in zip(said, words, strict=True):
        assert word in printed
        assert not re.search(r"\b1 (slot|event|record)s\b", printed)
    assert "48 events" in run("trace", "validate", trace).out
