"""Recorded logs as implementations: judged by every rule, compared with the replay of their policy, never guessed."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expertcache_conformance.adapters import CannotLoad, load
from expertcache_conformance.logs import offence
from expertcache_conformance.logsteps import compare
from expertcache_conformance.rundown import Case, Rundown, examine
from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.eviction import POLICIES, make
from expertcache_spec.history import Header, Recorder, encode_header
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.residency import Residency
from expertcache_spec.trace import Event

from ..spec.logs import RECORD, Log, Mutation, counted, displacing, log, managed
from ..spec.test_history_mutants import MUTATIONS
from .suite import report, suite


def written(folder: Path, records: Log, name: str = "run.jsonl") -> str:
    """The log as a file, and how `--impl` names it."""
    data = "".join(json.dumps(record) + "\n" for record in records).encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return f"log:{name}"


def about_logs(case: Case) -> bool:
    return case.name.startswith("test_log")


def run(folder: Path, records: Log, name: str = "run.jsonl") -> Rundown:
    found = examine(load(written(folder, records, name), folder), only=about_logs)
    assert not found.crashed
    return found


LEGAL = "test_log::test_the_log_is_legal"
STEPS = "test_log::test_the_declared_policy_decides_the_same_step_by_step"


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"ahead": 0},
        {"slots": 2, "overflow": "waves"},
        {"slots": 1, "overflow": "bypass"},
        {"room": "retain"},
        {"room": "trim"},
    ],
    ids=str,
)
def test_a_legal_log_passes_by_every_rule_and_step_by_step(how: dict[str, Any], tmp_path: Path) -> None:
    found = run(tmp_path, log(**how), "run.jsonl.gz" if how else "run.jsonl")
    assert not found.broken, "\n".join(each.text() for each in found.broken.values())
    assert not found.not_judged
    assert {LEGAL, STEPS} <= set(found.passed)
    assert len(found.passed) > 15


def test_the_log_of_every_policy_is_compared_with_its_replay(tmp_path: Path) -> None:
    compared = 0
    for policy in POLICIES:
        try:
            records = log(policy)
        except ExpertCacheError:
            continue  # the policy cannot serve the trace without being told more
        target = load(written(tmp_path, records), tmp_path).target
        steps, found = compare(target)
        assert found is None, found.text()
        assert offence(target) is None
        compared += steps
    assert compared > 30 * len(POLICIES) / 2


def seeded(*priorities: int, late: int = 0) -> Log:
    """A log of route hotness whose first keys are lent so much; the last `late` of them are read beside an event."""
    model = Geometry(1, 6, 1, (RECORD,))
    machine = Residency(model, Budget(slots=len(priorities)), make("route-hotness"))
    recorder = Recorder(machine)
    early, runs = len(priorities) - late, []
    for expert, priority in enumerate(priorities):
        if expert < early:
            recorder.seed(Key(0, expert), priority)
        else:
            machine.seed([Key(0, expert)], [priority])
            recorder.say("seed", key=[0, expert], priority=priority, how="read")
            runs.append(recorder.begin_reads([Key(0, expert)]))
    selection = recorder.select(Event(0, ((len(priorities) - 1,),)))
    for expert, run in enumerate(runs, early):
        recorder.end_reads(run)
        recorder.publish(Key(0, expert))
    recorder.load(selection)
    recorder.finish(selection)
    for number, expert in enumerate((5, 4), 1):
        selection = recorder.select(Event(0, ((expert,),), pass_index=number))
        recorder.load(selection)
        recorder.finish(selection)
    recorder.end()
    header = Header(model, Budget(slots=len(priorities)), policy="route-hotness", name="seeded")
    found: Log = json.loads(json.dumps([encode_header(header), *recorder.taken()]))
    return found


@pytest.mark.rule("XC-EVICT-185")
@pytest.mark.parametrize("late", [0, 1, 2])
def test_seeds_with_priorities_are_compared_step_by_step(late: int, tmp_path: Path) -> None:
    found = run(tmp_path, seeded(9, 2, 3, late=late))
    assert not found.broken, "\n".join(each.text() for each in found.broken.values())
    assert {LEGAL, STEPS} <= set(found.passed)
    records = seeded(9, 2, 3, late=late)
    for record in records:
        if record.get("op") == "seed":
            record["priority"] = 12 - record["priority"]
    _, told = compare(load(written(tmp_path, records), tmp_path).target)
    assert told is not None
    assert "the victim is (0,0), not (0,1)" in told.text()


def sold_as(policy: str, truth: str) -> Log:
    records: Log = json.loads(json.dumps(log(truth)))
    records[0]["policy"] = {"name": policy, "parameters": {}}
    return records


def test_a_log_of_fifo_sold_as_lru_is_told_line_rule_and_step(tmp_path: Path) -> None:
    found = run(tmp_path, sold_as("lru", "fifo"))
    assert set(found.broken) == {"XC-EVICT-020"}
    text = found.broken["XC-EVICT-020"].text()
    assert "run.jsonl:" in text
    assert "the victim is (1,3), not (1,2)" in text
    assert "expected {" in text


def test_an_offline_policy_is_compared_with_what_the_log_itself_knows(tmp_path: Path) -> None:
    assert not run(tmp_path, log("belady")).not_judged
    assert set(run(tmp_path, sold_as("belady", "lru")).broken) == {"XC-EVICT-050"}


@pytest.mark.rule("XC-PREFETCH-008")
def test_what_prefetches_displace_is_judged_and_compared_step_by_step(tmp_path: Path) -> None:
    found = run(tmp_path, displacing())
    assert not found.broken
    assert {LEGAL, STEPS} <= set(found.passed)
    records = displacing()
    records[0]["policy"] = {"name": "belady", "parameters": {}}  # which no checker follows: the steps alone tell
    assert offence(load(written(tmp_path, records), tmp_path).target) is None
    broken = run(tmp_path, records).broken
    assert set(broken) == {"XC-EVICT-050"}
    assert "displace #6 (0,4)" in broken["XC-EVICT-050"].text()
    records[0]["policy"] = None
    gone = next(n for n, record in enumerate(records) if record.get("op") == "prefetch") + 1
    records.insert(gone + 1, {**records[gone], "key": [1, 1]})
    assert set(run(tmp_path, counted(records)).broken) == {"XC-RES-008"}


def test_a_log_with_all_else_that_a_cache_can_do_is_legal(tmp_path: Path) -> None:
    found = run(tmp_path, managed())
    assert not found.broken
    assert LEGAL in found.passed


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_spoiled_log_breaks_its_one_rule_and_no_step_blames_another(mutation: Mutation, tmp_path: Path) -> None:
    spoiled = mutation.log()
    mutation.spoil(spoiled)
    target = load(written(tmp_path, counted(spoiled)), tmp_path).target
    found = offence(target)
    assert found is not None
    assert found.rule == mutation.rule
    assert found.witness
    _, other = compare(target)
    assert other is None or other.rule == mutation.rule, other.text()


# ------------------------------------------------------------------------------------------------ what is not judged


def changed(change: Callable[[dict[str, Any]], None]) -> Log:
    records: Log = json.loads(json.dumps(log()))
    change(records[0])
    return records


def without(kind: str) -> Log:
    """The log of an engine that does not observe reads, say."""
    ops = {"computes": ("compute_start", "compute_end"), "combines": ("combine",)}[kind]
    records = changed(lambda header: header.update(observes=[each for each in header["observes"] if each != kind]))
    kept = [record for record in records if record.get("op") not in ops]
    kept[-1]["records"] = len(kept) - 2
    return kept


def test_a_log_that_declares_no_policy_is_not_judged_by_one(tmp_path: Path) -> None:
    found = run(tmp_path, changed(lambda header: header.update(policy=None)))
    assert not found.broken
    assert "XC-HIST-005: the log declares no policy" in found.not_judged[LEGAL]
    assert STEPS in found.not_judged


def test_a_policy_that_nobody_knows_is_not_judged(tmp_path: Path) -> None:
    found = run(tmp_path, changed(lambda header: header.update(policy={"name": "magic", "parameters": {}})))
    assert not found.broken
    assert "magic" in found.not_judged[LEGAL]


@pytest.mark.parametrize(("kind", "rule"), [("computes", "XC-HIST-008"), ("combines", "XC-HIST-009")])
def test_what_a_log_does_not_observe_is_named_and_not_passed(kind: str, rule: str, tmp_path: Path) -> None:
    found = run(tmp_path, without(kind))
    assert not found.broken
    assert f"{rule}: the log does not observe {kind}" in found.not_judged[LEGAL]
    assert not any(rule in name for name in found.passed)


def test_a_run_on_an_open_log_says_what_is_missing_and_does_not_pass(tmp_path: Path) -> None:
    subject = written(tmp_path, without("computes"))
    run = suite(tmp_path, "--impl", subject, "--impl-report", "report.json")
    assert run.code == 1
    assert "run.jsonl: no verdict, not judged: XC-HIST-008: the log does not observe computes; " in run.text
    assert "conforms to" not in run.text
    assert "Traceback" not in run.text
    rules = report(tmp_path / "report.json")["rules"]
    assert rules["XC-HIST-008"]["verdict"] == "not judged"
    assert rules["XC-HIST-009"]["verdict"] == "passed"
    assert rules["XC-EVICT-030"]["verdict"] == "not claimed"


# ------------------------------------------------------------------------------------------------ runs and files


def test_a_run_on_a_legal_log_conforms_to_what_the_log_is_about(tmp_path: Path) -> None:
    run = suite(tmp_path, "--impl", written(tmp_path, log()), "--impl-report", "report.json", select="test_log")
    assert run.code == 0, run.text
    assert "run.jsonl conforms to expertcache 0.1 {log of lru}: " in run.text
    rules = report(tmp_path / "report.json")["rules"]
    assert rules["XC-HIST-008"]["verdict"] == "passed"
    assert rules["XC-RES-011"]["verdict"] == "not claimed"  # the log resizes nothing


def test_a_run_on_an_illegal_log_fails_with_the_line_and_writes_no_replay_file(tmp_path: Path) -> None:
    run = suite(tmp_path, "--impl", written(tmp_path, sold_as("lru", "fifo")), "--impl-report", "report.json",
                select="test_log")  # fmt: skip
    assert run.code == 1
    assert "run.jsonl does not conform to expertcache 0.1 {log of lru}: breaks XC-EVICT-020" in run.text
    assert "line 128 of run.jsonl" in run.text
    assert "--impl-replay" not in run.text
    assert not (tmp_path / ".expertcache-failures").exists()
    found = report(tmp_path / "report.json")["rules"]["XC-EVICT-020"]
    assert found["verdict"] == "failed"
    assert found["violations"][0]["line"]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def garbled(path: Path) -> None:
    data = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*data[:9], b"\xff\xfe no line\n", *data[10:]]))


@pytest.mark.parametrize(("spoil", "name"), [(cut, "run.jsonl"), (cut, "run.jsonl.gz"), (garbled, "run.jsonl")])
def test_a_log_that_cannot_be_read_breaks_the_rule_of_reading(
    spoil: Callable[[Path], None], name: str, tmp_path: Path
) -> None:
    spelled = written(tmp_path, log(), name)
    spoil(tmp_path / name)
    found = examine(load(spelled, tmp_path), only=about_logs)
    assert set(found.broken) == {"XC-HIST-002"}
    assert not found.crashed
    assert not found.passed


@pytest.mark.parametrize("data", [b"", b"{}\n", b"\x1f\x8b", b"\x1f\x8bnonsense", b"\x00" * 100, None])
def test_what_is_no_log_is_refused_before_anything_runs(data: bytes | None, tmp_path: Path) -> None:
    if data is not None:
        (tmp_path / "bad.jsonl").write_bytes(data)
    with pytest.raises(CannotLoad, match=r"bad\.jsonl"):
        load("log:bad.jsonl", tmp_path)


def test_a_log_cannot_be_asked_a_replay_file(tmp_path: Path) -> None:
    planner = "expertcache_conformance.miniatures:dropped_tail_chunk"
    suite(tmp_path, "--impl", planner, select="test_chunks")
    file = min((tmp_path / ".expertcache-failures").glob("XC-FANOUT-001-*.json"))
    run = suite(tmp_path, "--impl", written(tmp_path, log()), "--impl-replay", str(file))
    assert run.code == 4
    assert "--impl-replay: a log cannot be asked; name an implementation" in run.text


def test_a_file_that_is_no_log_is_blamed_on_the_option(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("{}\n")
    run = suite(tmp_path, "--impl", "log:bad.jsonl")
    assert run.code == 4
    assert "--impl: bad.jsonl:1: not an expertcache log. Cure: " in run.text


@pytest.mark.rule("XC-HIST-012")
def test_a_log_that_says_nothing_is_no_error_and_no_pass(tmp_path: Path) -> None:
    found = log()
    empty = run(tmp_path, counted([found[0], found[-1]]))
    assert not empty.passed
    assert not empty.broken
    assert "proves nothing" in empty.not_judged[LEGAL]
    assert STEPS in empty.not_judged
