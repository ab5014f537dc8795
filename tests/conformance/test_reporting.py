"""Files in and out of a run, refused at its start where they are bad, and the lines that end it."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from expertcache_conformance import files
from expertcache_conformance.adapters import InvalidProfile, load, parse_profile
from expertcache_conformance.decoding import InvalidReplay, decode_program
from expertcache_conformance.program import count, encode_program
from expertcache_conformance.report import Report
from expertcache_spec.rules import RULES

from .suite import report, suite

FIFO = "expertcache_conformance.miniatures:fifo_sold_as_lru"
PLAIN = "expertcache_conformance.miniatures:plain_cache"
LUCK = "expertcache_conformance.miniatures:another_victim_each_time"
ONE = "test_answers_are_well_formed"
PASSES = "test_generated_passes"


# ------------------------------------------------------------------------------------------------- files out


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--impl-report", "none/report.json"), "none/report.json: no folder"),
        (("--impl-report", "file/report.json"), "file/report.json: no folder"),
        (("--impl-report", "folder"), "folder: is a directory"),
        (("--impl-report", "pipe"), "pipe: is no regular file"),
        (("--impl-failures", "file"), "/file: is no folder"),
        (("--impl-failures", "file/deep/down"), "/file/deep/down: is no folder"),
    ],
)
def test_a_path_that_cannot_be_written_is_refused_before_anything_runs(
    option: tuple[str, str], said: str, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("precious")
    os.mkfifo(tmp_path / "pipe")
    run = suite(tmp_path, "--impl", PLAIN, *option, select=ONE)
    assert run.code == 4
    assert f"ERROR: {option[0]}: " in run.text
    assert said in run.text
    assert "Cure: " in run.text
    assert "Traceback" not in run.text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "pipe"]
    assert (tmp_path / "file").read_text() == "precious"


def test_a_folder_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o555)
    user = os.geteuid()
    if user == 0:
        tmp_path.chmod(0o755)
        for parent in tmp_path.parents[:2]:
            parent.chmod(0o755)
        os.seteuid(65534)  # the superuser may write everywhere
    try:
        with pytest.raises(files.CannotWrite, match=r"closed.*Permission denied.*Cure"):
            files.check_file(folder / "report.json")
        with pytest.raises(files.CannotWrite, match=r"closed.*Permission denied.*Cure"):
            files.check_folder(folder / "failures")
    finally:
        os.seteuid(user)


LATE = """
from expertcache_conformance.miniatures import {name} as target
import os, pathlib
PROFILE = target.PROFILE
def open_cache(config):
    if pathlib.Path("{folder}").is_dir():
        os.rmdir("{folder}")
    pathlib.Path("{folder}").touch()
    return target.open_cache(config)
"""


def test_a_report_that_cannot_be_written_in_the_end_fails_the_run_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "late.py").write_text(LATE.format(name="plain_cache", folder="out"))
    run = suite(tmp_path, "--impl", "late", "--impl-report", "out/report.json", select=ONE)
    assert run.code == 4
    assert "--impl-report: out/report.json: Not a directory" in run.text
    assert "Traceback" not in run.text
    assert "INTERNALERROR" not in run.text
    assert "plain_cache conforms to" in run.text


def test_a_replay_file_that_cannot_be_written_leaves_the_finding(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "late.py").write_text(LATE.format(name="fifo_sold_as_lru", folder="out"))
    run = suite(tmp_path, "--impl", "late", "--impl-failures", "out", "--impl-report", "report.json", select=PASSES)
    assert run.code == 1
    assert "XC-EVICT-021" in run.text
    assert "no replay file: " in run.text
    assert "INTERNALERROR" not in run.text
    assert report(tmp_path / "report.json")["rules"]["XC-EVICT-021"]["verdict"] == "failed"


def test_reports_and_replay_files_have_the_permissions_that_the_user_asked_for(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        suite(tmp_path, "--impl", FIFO, "--impl-report", "report.json", select=PASSES)
    finally:
        os.umask(before)
    written = [tmp_path / "report.json", *(tmp_path / ".expertcache-failures").iterdir()]
    assert len(written) > 1
    assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {0o640}


def test_a_report_goes_through_a_link_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "report.json").write_text("old")
    (tmp_path / "link.json").symlink_to(Path("far") / "report.json")
    files.write(tmp_path / "link.json", {"new": 1})
    assert json.loads((tmp_path / "far" / "report.json").read_text()) == {"new": 1}
    assert (tmp_path / "link.json").is_symlink()
    with pytest.raises(TypeError):
        files.write(tmp_path / "link.json", {"no JSON": object()})
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["far", "link.json", "report.json"]
    assert json.loads((tmp_path / "far" / "report.json").read_text()) == {"new": 1}


# ------------------------------------------------------------------------------------------------- files in

ENTRY = '[[expected]]\nrule = "XC-RES-005"\nreason = "known"\n'


@pytest.mark.parametrize(
    "text",
    [
        "expected = [5]",
        "expected = 5",
        "expected = []",
        "other = 1",
        ENTRY.replace('"XC-RES-005"', '["XC-RES-005"]'),
        ENTRY.replace('"XC-RES-005"', "{a = 1}"),
        ENTRY.replace('"known"', "5"),
        ENTRY.replace('"known"', '" "'),
        ENTRY + "more = 1",
        ENTRY + ENTRY,
        ENTRY.replace("005", "999"),
        ENTRY + "[",
        "\udcff",
    ],
)
def test_a_list_of_expected_failures_is_read_strictly(text: str, tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(files.CannotRead, match=r"list\.toml"):
        files.read_expected(str(tmp_path / "list.toml"))


def test_a_good_list_of_expected_failures_is_read(tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_text(ENTRY)
    assert files.read_expected(str(tmp_path / "list.toml")) == {"XC-RES-005": "known"}


def test_a_bad_list_is_refused_before_anything_runs_and_named_by_its_option(tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_text("expected = [5]")
    run = suite(tmp_path, "--impl", PLAIN, "--impl-expect", "list.toml", select=ONE)
    assert run.code == 4
    assert "--impl-expect: list.toml" in run.text
    assert "INTERNALERROR" not in run.text


@pytest.mark.parametrize(
    "limits",
    [
        {"max_slots": "many"},
        {"max_slots": -1},
        {"max_slots": 1.5},
        {"max_slots": True},
        {"max_slots": None},
        [1],
        5,
        "a",
    ],
)
def test_limits_are_whole_numbers_from_0(limits: Any) -> None:
    with pytest.raises(InvalidProfile, match="limit"):
        parse_profile({"name": "odd", "policies": ["lru"], "limits": limits})


def test_every_limit_that_is_off_is_named_and_good_ones_are_kept() -> None:
    with pytest.raises(InvalidProfile, match=r"max_slots.*min_slots"):
        parse_profile({"name": "odd", "policies": ["lru"], "limits": {"max_slots": "many", "min_slots": -1}})
    good = parse_profile({"name": "even", "policies": ["lru"], "limits": {"max_slots": 0, "max_layers": 4}})
    assert good.limits == {"max_slots": 0, "max_layers": 4}


WITNESS: dict[str, Any] = {
    "format": "expertcache-replay",
    "version": 1,
    "config": {
        "policy": "lru",
        "slots": 3,
        "bytes": None,
        "geometry": {"layers": 1, "experts": 4, "top_k": 2, "record_bytes": [1]},
        "settings": {},
        "parameters": {},
        "offline": False,
    },
    "operations": [
        {"op": "step", "event": {"stream": 0, "pass": 0, "phase": "decode", "layer": 0, "experts": [[0, 1]]}},
        {"op": "pin", "key": [0, 1]},
        {"op": "seed", "keys": [[0, 2]]},
        {"op": "resize", "slots": 2},
        {"op": "reset", "text": "history"},
    ],
}
MISSING = object()


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The witness with one field changed, or without it."""
    record: dict[str, Any] = json.loads(json.dumps(WITNESS))
    place: Any = record
    for name in path[:-1]:
        place = place[name]
    if value is MISSING:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return record


BAD: dict[tuple[Any, ...], tuple[Any, ...]] = {
    ("config",): (MISSING, None, [], 5),
    ("operations",): (MISSING, None, {}, "step"),
    **{("config", name): (MISSING,) for name in WITNESS["config"]},
    ("config", "policy"): (MISSING, 5, None),
    ("config", "slots"): (MISSING, "3", -1),
    ("config", "geometry"): (MISSING, [], {}),
    ("config", "settings"): ([], {"rooom": "trim"}, {"room": "big"}, {"room": ["trim"]}),
    ("config", "parameters"): ([], 5),
    ("config", "offline"): ("no",),
    ("operations", 0): (5, [], {}, {"op": "stop"}, {"op": ["step"]}),
    ("operations", 0, "event"): (MISSING, [], {}),
    ("operations", 1, "key"): (MISSING, 5, [1], [1, 2, 3], ["a", "b"], [0, True]),
    ("operations", 2, "keys"): (MISSING, 5, [5]),
    ("operations", 2, "priorities"): (5, [], [1, 2], [-1], [True], ["3"]),
    ("operations", 3, "slots"): ("2", 2.5),
    ("operations", 4, "text"): (MISSING, 5),
}


@pytest.mark.parametrize(("path", "value"), [(path, value) for path, values in BAD.items() for value in values])
def test_a_bad_field_of_a_replay_file_is_named_with_file_and_cure(path: tuple[Any, ...], value: Any) -> None:
    with pytest.raises(InvalidReplay) as caught:
        decode_program(changed(path, value), "bad.json")
    said = str(caught.value)
    assert said.startswith("bad.json: ")
    assert "Cure: " in said
    assert "Error" not in said
    if value is MISSING:
        assert f"no field '{path[-1]}'" in said


def test_the_witness_that_they_spoil_is_good_itself() -> None:
    assert len(decode_program(WITNESS, "good.json").operations) == 5


def test_the_priorities_of_seeds_come_back_from_a_replay_file() -> None:
    record = changed(("operations", 2, "priorities"), [7])
    program = decode_program(record, "good.json")
    assert str(program.operations[2]) == "seed (0,2) priorities 7"
    assert encode_program(program)["operations"][2] == record["operations"][2]


def test_a_replay_file_without_a_configuration_is_refused_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(json.dumps(changed(("config",), MISSING)))
    run = suite(tmp_path, "--impl", PLAIN, "--impl-replay", "bad.json")
    assert run.code == 4
    assert "--impl-replay: bad.json: no field 'config'. Cure: " in run.text


# ------------------------------------------------------------------------------------------------- the last lines


def facts(outcome: str, *rules: str, broken: str | None = None, replay: str | None = None) -> dict[str, Any]:
    """What one test found."""
    violation = {"rule": broken, "operations": [{}], "config": {}, "replay": replay, "note": "a note"}
    found = {"violations": [] if broken is None else [violation], "text": "", "programs": 1}
    return {"test": f"test_{outcome}", "rules": list(rules), "outcome": outcome, **found}


def closed(*tests: dict[str, Any], replaying: bool = False) -> list[str]:
    """The lines that end a run of those tests."""
    found = Report(load(PLAIN), replaying)
    for test in tests:
        found.add(test)
    return list(found.summary({}))


CLAIMED = [rule for rule in RULES if RULES[rule].level == "MUST"][:5]
LEFT_OUT = [rule for rule in RULES if RULES[rule].level == "MUST"][5:12]


def test_the_score_counts_the_claimed_rules_whatever_is_broken() -> None:
    """Also where answers do not repeat, and nothing that was found means anything."""
    both = [facts("passed", *CLAIMED, "XC-CONF-002"), facts("not claimed", *LEFT_OUT)]
    assert closed(*both)[-1].endswith("6/6 MUST")
    assert closed(*both, facts("failed", broken=CLAIMED[0]))[-1].endswith("5/6 MUST")
    assert closed(*both, facts("failed", broken="XC-CONF-002"))[-1].endswith("0/6 MUST")


def test_a_witness_that_passes_says_that_and_nothing_of_conforming() -> None:
    last = closed(facts("passed"), replaying=True)[-1]
    assert last == "plain_cache: the witness no longer fails"


def test_a_witness_that_fails_names_the_rule_and_nothing_else() -> None:
    lines = closed(facts("failed", broken="XC-RES-005"), replaying=True)
    assert lines[-1] == "plain_cache: the witness still fails: XC-RES-005"
    assert "    shortest witness: 1 operation" in lines
    assert not any("None" in line or "conform" in line for line in lines)


def test_a_witness_that_could_not_be_asked_gets_no_verdict() -> None:
    for outcome in ("error", "not claimed", "skipped"):
        assert closed(facts(outcome), replaying=True)[-1] == "plain_cache: no verdict on the witness"


def test_one_is_singular() -> None:
    assert [count(number, "slot") for number in (0, 1, 2)] == ["0 slots", "1 slot", "2 slots"]
    assert [count(number, "entry", "entries") for number in (1, 2)] == ["1 entry", "2 entries"]
    assert "    shortest witness: 1 operation, a.json" in closed(facts("failed", broken="XC-RES-005", replay="a.json"))
    assert "1 test ended in an error" in closed(facts("error", *CLAIMED))[-1]


def test_a_replay_run_ends_with_what_became_of_the_witness(tmp_path: Path) -> None:
    suite(tmp_path, "--impl", FIFO, select=PASSES)
    file = min((tmp_path / ".expertcache-failures").glob("XC-EVICT-021-*.json"))
    for name, said, code in ((FIFO, "still fails: XC-EVICT-021", 1), (PLAIN, "no longer fails", 0)):
        run = suite(tmp_path, "--impl", name, "--impl-replay", str(file), "--impl-report", "report.json")
        assert run.code == code
        assert f"the witness {said}" in run.text
        assert "conform" not in run.text.replace("expertcache_conformance", "").replace("conformance", "")
        assert said in report(tmp_path / "report.json")["footer"]["verdict"]


# ------------------------------------------------------------------------------------------------- contracts


@pytest.mark.parametrize("switch", ["off", "0"])
def test_a_run_without_contracts_is_refused(switch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPERTCACHE_CONTRACTS", switch)
    run = suite(tmp_path, "--impl", PLAIN, select=ONE)
    assert run.code == 4
    assert f"EXPERTCACHE_CONTRACTS={switch}" in run.text
