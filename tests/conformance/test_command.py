"""The suite as a command: options, outcomes, reports, replay files."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import jsonschema
import pytest

from expertcache_conformance.test_eviction import _rules
from expertcache_spec.eviction import POLICIES

from .suite import report, suite

FIFO = "expertcache_conformance.miniatures:fifo_sold_as_lru"
PLAIN = "expertcache_conformance.miniatures:plain_cache"
NONSENSE = "expertcache_conformance.miniatures:answers_nonsense"
QUICK = "test_generated_passes or test_adapter"


def test_a_right_cache_conforms_and_the_verdict_says_to_what(tmp_path: Path) -> None:
    run = suite(tmp_path, "--impl", "ordered", select=QUICK)
    assert run.code == 0
    assert "ordered conforms to expertcache 0.1 {replay event; lru}" in run.text
    assert "not claimed" in run.text


def test_a_wrong_cache_is_told_the_rule_the_sentence_and_the_shortest_trace(tmp_path: Path) -> None:
    run = suite(tmp_path, "--impl", FIFO, select="test_generated_passes")
    assert run.code == 1
    assert "XC-EVICT-021: Under LRU every hit makes the key the most recent" in run.text
    for line in ("expected {", "got      {", "every answer is FIFO: a hit does not refresh", "--impl-replay"):
        assert line in run.text
    assert "Traceback" not in run.text


def test_the_replay_file_replays(tmp_path: Path) -> None:
    suite(tmp_path, "--impl", FIFO, select="test_generated_passes")
    files = sorted((tmp_path / ".expertcache-failures").glob("XC-EVICT-021-*.json"))
    assert files
    again = suite(tmp_path, "--impl", FIFO, "--impl-replay", str(files[0]))
    assert again.code == 1
    assert "XC-EVICT-021" in again.text
    right = suite(tmp_path, "--impl", PLAIN, "--impl-replay", str(files[0]))
    assert right.code == 0
    assert "1 passed" in right.text


def test_a_damaged_replay_file_is_refused(tmp_path: Path) -> None:
    for text in ("", "{}", '{"format": "expertcache-replay", "version": 1, "config": {}}'):
        (tmp_path / "bad.json").write_text(text)
        run = suite(tmp_path, "--impl", PLAIN, "--impl-replay", "bad.json")
        assert run.code == 4
        assert "bad.json" in run.text


def test_reports_are_the_same_bytes_from_run_to_run_and_under_xdist(tmp_path: Path) -> None:
    for name, arguments in (("one", ()), ("two", ()), ("three", ("-n", "2"))):
        run = suite(tmp_path, "--impl", FIFO, "--impl-report", f"{name}.json", *arguments, select=QUICK)
        assert run.code == 1, run.text
    first = (tmp_path / "one.json").read_bytes()
    assert first == (tmp_path / "two.json").read_bytes() == (tmp_path / "three.json").read_bytes()


def test_the_report_is_keyed_by_rule(tmp_path: Path) -> None:
    suite(tmp_path, "--impl", FIFO, "--impl-report", "report.json", select=QUICK)
    written = report(tmp_path / "report.json")
    shape = {
        "type": "object",
        "required": ["format", "version", "header", "rules", "expected", "footer"],
        "properties": {
            "rules": {
                "type": "object",
                "propertyNames": {"pattern": "^XC-[A-Z]+-[0-9]{3}$"},
                "additionalProperties": {"required": ["level", "sentence", "verdict", "tests", "violations"]},
            },
            "footer": {"required": ["verdict", "tests", "programs", "errors", "complete"]},
        },
    }
    jsonschema.validate(written, shape)
    assert written["rules"]["XC-EVICT-021"]["verdict"] == "failed"
    assert written["rules"]["XC-EVICT-021"]["violations"][0]["replay"]
    assert written["rules"]["XC-EVICT-030"]["verdict"] == "not claimed"
    assert written["footer"]["programs"] > 40
    assert written["header"]["implementation"]["name"] == "fifo_sold_as_lru"


def test_an_expected_failure_must_fail_and_nothing_else_may(tmp_path: Path) -> None:
    entry = '[[expected]]\nrule = "{}"\nreason = "known, tracked elsewhere"\n'
    (tmp_path / "right.toml").write_text(entry.format("XC-EVICT-021"))
    (tmp_path / "wrong.toml").write_text(entry.format("XC-EVICT-021") + entry.format("XC-EVICT-020"))
    (tmp_path / "unknown.toml").write_text(entry.format("XC-EVICT-999"))
    assert suite(tmp_path, "--impl", FIFO, "--impl-expect", "right.toml", select="test_generated_passes").code == 0
    run = suite(tmp_path, "--impl", FIFO, "--impl-expect", "wrong.toml", select="test_generated_passes")
    assert run.code == 1
    assert "XC-EVICT-020 was expected to fail" in run.text
    assert suite(tmp_path, "--impl", FIFO, "--impl-expect", "unknown.toml").code == 4


def test_a_crash_is_an_error_and_not_a_broken_rule(tmp_path: Path) -> None:
    (tmp_path / "crashing.py").write_text(
        "PROFILE = {'name': 'crashing', 'policies': ['lru']}\n"
        "class Cache:\n"
        "    def step(self, event):\n"
        "        raise RuntimeError('boom')\n"
        "def open_cache(config):\n"
        "    return Cache()\n"
    )
    run = suite(tmp_path, "--impl", "crashing", "--impl-report", "report.json", select="test_generated_passes")
    assert run.code == 1
    assert "RuntimeError: boom" in run.text
    assert "no verdict" in run.text
    assert report(tmp_path / "report.json")["footer"]["errors"]


def test_a_module_beside_the_prompt_is_found_without_an_install(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from ordered import PROFILE, open_cache\n")
    assert suite(tmp_path, "--impl", "mine", select="test_generated_passes").code == 0


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module", "no module 'no_such_module'"),
        ("ordered:nothing", "has no attribute 'nothing'"),
        ("json", "does not offer PROFILE and open_cache"),
    ],
)
def test_what_cannot_be_loaded_is_refused_with_the_reason(tmp_path: Path, name: str, said: str) -> None:
    run = suite(tmp_path, "--impl", name)
    assert run.code == 4
    assert said in run.text


def test_an_invalid_profile_is_refused_with_every_field_that_is_off(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(
        "PROFILE = {'name': 'odd', 'polices': [], 'policies': ['lur'], 'settings': {'room': ['big']}}\n"
        "def open_cache(config): ...\n"
    )
    run = suite(tmp_path, "--impl", "odd")
    assert run.code == 4
    for said in ("unknown field 'polices'", "policy 'lur'", "unknown room 'big'"):
        assert said in run.text


def test_the_list_says_what_would_run_and_runs_nothing(tmp_path: Path) -> None:
    run = suite(tmp_path, "--impl", FIFO, "--impl-list", "--impl-report", "report.json")
    assert run.code == 0
    assert "would run    test_eviction::test_generated_passes[lru]" in run.text
    assert "not claimed  test_eviction::test_generated_passes[fifo]" in run.text
    assert not (tmp_path / "report.json").exists()


def test_without_an_implementation_nothing_passes(tmp_path: Path) -> None:
    run = suite(tmp_path)
    assert run.code == 4
    assert "--impl NAME" in run.text
    assert suite(tmp_path, "--impl-list").code == 4


def test_optimized_python_is_refused(tmp_path: Path) -> None:
    run = suite(tmp_path, "--impl", PLAIN, flags=("-O",))
    assert run.code == 4
    assert "-O" in run.text


def test_rule_ids_reach_junit(tmp_path: Path) -> None:
    suite(tmp_path, "--impl", PLAIN, "--junitxml", "junit.xml", select="test_generated_passes")
    properties = ElementTree.parse(tmp_path / "junit.xml").iter("property")
    assert "XC-EVICT-020" in {element.get("value") for element in properties if element.get("name") == "rule"}


def test_nonsense_is_named_as_such(tmp_path: Path) -> None:
    run = suite(tmp_path, "--impl", NONSENSE, select="test_answers_are_well_formed")
    assert run.code == 1
    assert "XC-CONF-001" in run.text
    replays = list((tmp_path / ".expertcache-failures").glob("*.json"))
    assert json.loads(replays[0].read_text())["rule"] == "XC-CONF-001"


def test_no_rule_of_a_policy_leaves_the_examination_unnoticed() -> None:
    # A policy's rules follow from the module that states them: a class that moves takes them along (see `CLAUSES`).
    named = {rule for policy in POLICIES for rule in _rules(policy)}
    assert len(named) == 93
    assert all(POLICIES[policy].rule in _rules(policy) for policy in POLICIES)
