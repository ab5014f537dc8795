"""Planners: chunk plans, layouts and schedules that an implementation makes, beside or instead of a cache."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from expertcache_conformance.adapters import CannotLoad, Implementation, InvalidProfile, load, parse_profile
from expertcache_conformance.adapters.planning import LAYOUTS, Table
from expertcache_conformance.answers import Crashed
from expertcache_conformance.decoding import InvalidReplay
from expertcache_conformance.miniatures import ODD_PLANNERS, PLANNERS, Planner
from expertcache_conformance.questions import (
    ChunkQuestion,
    FilesQuestion,
    LayoutQuestion,
    ReadsQuestion,
    ScheduleQuestion,
    TableQuestion,
    WindowQuestion,
    answered,
    decode_question,
)
from expertcache_conformance.questions.base import Question
from expertcache_conformance.questions.drawing import chunk_questions, layout_questions, schedule_questions
from expertcache_conformance.questions.drawing_reads import (
    files_questions,
    reads_questions,
    table_questions,
    window_questions,
)
from expertcache_conformance.rundown import Case, Rundown, examine
from expertcache_spec.model import Key
from expertcache_spec.rules import RULES
from expertcache_spec.schedule import schedule

from .suite import report, suite

HERE = "expertcache_conformance.miniatures:"
PLANS = ("test_chunks", "test_layouts", "test_schedules")


def about_plans(case: Case) -> bool:
    return case.name.startswith(PLANS)


def run(subject: Planner) -> Rundown:
    """Every test of plans, which are all that a planner claims."""
    return _run(subject.name)


@cache
def _run(name: str) -> Rundown:
    subject = next(each for each in (*PLANNERS, *ODD_PLANNERS) if each.name == name)
    return examine(Implementation(subject.name, parse_profile(subject.PROFILE), subject), only=about_plans)


@pytest.mark.parametrize("subject", PLANNERS, ids=lambda subject: subject.name)
def test_a_wrong_planner_is_caught_with_exactly_its_rules(subject: Planner) -> None:
    found = run(subject)
    assert set(found.broken) == subject.breaks, "\n\n".join(v.text() for v in found.broken.values())
    assert not found.crashed
    for finding in found.broken.values():
        assert finding.expected != finding.got
        assert finding.rule in finding.text()
        assert RULES[finding.rule].text in finding.text()


@pytest.mark.parametrize("subject", ODD_PLANNERS, ids=lambda subject: subject.name)
def test_an_odd_but_legal_planner_passes(subject: Planner) -> None:
    found = run(subject)
    assert not found.broken, "\n\n".join(finding.text() for finding in found.broken.values())
    assert not found.crashed
    assert found.passed


def test_planners_are_many_and_each_is_named_once() -> None:
    assert len(PLANNERS) >= 12
    assert len(ODD_PLANNERS) >= 2
    names = [subject.name for subject in (*PLANNERS, *ODD_PLANNERS)]
    assert len(set(names)) == len(names)
    for subject in (*PLANNERS, *ODD_PLANNERS):
        assert subject.breaks <= set(RULES)
        assert subject.sentence.endswith(".")


SMALLEST: dict[str, tuple[int, ...]] = {
    "dropped_tail_chunk": (1, 3, 2),  # one size, three pages, two chunks
    "zero_length_chunk": (1, 1),
    "remainder_to_the_last_chunk": (1, 3, 2),
    "count_of_the_record_before": (2,),
    "extent_beyond_the_file": (1,),
    "overlapping_extents": (2,),
    "another_experts_bytes": (2,),
    "a_part_is_read_again_with_its_record": (1, 0, 0),
    "resident_layers_are_read_too": (1, 1, 0),
    "the_length_alone_is_rounded": (2, 1, 1),
    "the_table_follows_at_once": (1, 1, 2),
    "the_fingerprint_is_enough": (1, 1),
    "threshold_off_by_one": (1,),
    "speculation_before_demand": (2,),
    "lease_ended_at_encode": (2,),
    "reads_what_is_on_its_way": (2,),
    "combine_by_arrival": (1,),
}
"""How small the witness must become: the first numbers of the question's size."""


@pytest.mark.parametrize("name", SMALLEST)
def test_a_finding_shows_the_smallest_question(name: str) -> None:
    subject = next(each for each in PLANNERS if each.name == name)
    (finding,) = run(subject).broken.values()
    size = SMALLEST[name]
    assert finding.size[: len(size)] <= size, finding.text()


# ------------------------------------------------------------------------------------------------ profiles


def profile(**fields: Any) -> dict[str, Any]:
    return {"name": "planner", "policies": [], **fields}


def test_a_profile_may_claim_plans_and_no_policy() -> None:
    parsed = parse_profile(profile(capabilities=["chunks"]))
    assert parsed.policies == ()
    assert parsed.layouts == ("packed-layers",)
    assert parsed.disciplines == ("sync",)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "nothing to judge"),
        ({"capabilities": ["leases"]}, "nothing to judge"),
        ({"capabilities": ["chunks", "leases"]}, "a capability of caches is claimed, and no policy"),
        ({"capabilities": ["layout"], "layouts": ["stacked"]}, "unknown layout 'stacked'"),
        ({"capabilities": ["layout"], "layouts": "own"}, "layouts must be a list"),
        ({"capabilities": ["layout"], "layouts": []}, "nothing to judge"),
        ({"capabilities": ["schedule"], "disciplines": ["eager"]}, "unknown discipline 'eager'"),
    ],
)
def test_a_profile_that_claims_no_such_plan_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidProfile, match=said):
        parse_profile(profile(**fields))


def test_what_is_claimed_must_be_there(tmp_path: Path) -> None:
    claims = 'PROFILE = {"name": "a", "policies": [], "capabilities": ["layout"], "layouts": ["own"]}\n'
    (tmp_path / "planner_without_files.py").write_text(claims + "def extents(layout, key):\n    return []\n")
    with pytest.raises(CannotLoad, match="does not offer files"):
        load("planner_without_files", tmp_path)


def test_a_planner_is_judged_on_its_plans_alone(tmp_path: Path) -> None:
    run = suite(tmp_path, "--impl", f"{HERE}tuples_of_chunks", "--impl-report", "report.json")
    assert run.code == 0, run.text
    assert "tuples_of_chunks conforms to expertcache 0.1 {chunks}: 4/4 MUST" in run.text
    rules = report(tmp_path / "report.json")["rules"]
    passed = {rule for rule, found in rules.items() if found["verdict"] == "passed"}
    assert passed == {"XC-FANOUT-001", "XC-FANOUT-002", "XC-FANOUT-003", "XC-FANOUT-004"}
    assert {found["verdict"] for rule, found in rules.items() if rule not in passed} == {"not claimed"}


# ------------------------------------------------------------------------------------------------ findings


@pytest.mark.parametrize(
    ("name", "rule", "said"),
    [
        ("dropped_tail_chunk", "XC-FANOUT-001", "plan_chunks(size 3, page 1, wanted 2)"),
        ("threshold_off_by_one", "XC-SCHED-011", "it is a schedule of split with threshold 2, not 1"),
    ],
)
def test_a_finding_is_told_reported_and_replays(name: str, rule: str, said: str, tmp_path: Path) -> None:
    run = suite(tmp_path, "--impl", HERE + name, "--impl-report", "report.json", select=" or ".join(PLANS))
    assert run.code == 1
    for text in (RULES[rule].text, said, "expected", "got", "--impl-replay", f"breaks {rule}"):
        assert text in run.text
    assert "Traceback" not in run.text
    found = report(tmp_path / "report.json")["rules"][rule]
    assert found["verdict"] == "failed"
    assert found["violations"][0]["question"]
    file = tmp_path / ".expertcache-failures" / found["violations"][0]["replay"]
    again = suite(tmp_path, "--impl", HERE + name, "--impl-replay", str(file))
    assert again.code == 1
    assert f"the witness still fails: {rule}" in again.text
    right = suite(tmp_path, "--impl", "expertcache_reference", "--impl-replay", str(file))
    assert right.code == 0
    assert "the witness no longer fails" in right.text


def questions() -> list[Question]:
    layouts = [question for kind in LAYOUTS for question in list(layout_questions(kind))[:5]]
    names = ("sync", "split", "staged", "pipelined", "free")
    beside = [each for drawn in (reads_questions, window_questions, files_questions, table_questions)
              for each in list(drawn())[::40]]  # fmt: skip
    return [
        *list(chunk_questions())[:50],
        *layouts,
        *beside,
        *(q for name in names for q in schedule_questions(name, 8)),
    ]


def test_every_question_comes_back_from_a_replay_file() -> None:
    for question in questions():
        raw = json.loads(json.dumps({"kind": question.kind, **question.encode()}))
        assert decode_question(raw, "a.json") == question


def test_a_smaller_question_is_another_one_of_its_kind() -> None:
    for question in questions():
        smaller = list(question.smaller())
        assert question not in smaller
        assert {type(each) for each in smaller} <= {type(question)}


BLOBS = LayoutQuestion("flat-blobs", 3, ((("gate", 3), ("up", 3)),), 4, roll=16)
"""Two blobs in the first file, one in the second."""


def spoiled(raw: dict[str, Any], name: str) -> list[dict[str, Any]]:
    without = {key: value for key, value in raw.items() if key != name}
    return [without, *({**raw, name: value} for value in ("x", [5], {"a": 1}, None))]


@pytest.mark.parametrize(
    "question",
    [
        ChunkQuestion(16384, 4096, 2, 16384),
        LayoutQuestion("record-blocks", 2, ((("gate", 3), ("up", 3)),), 4),
        ReadsQuestion(BLOBS, (Key(0, 1),), 1),
        WindowQuestion(3, 4, 2, 10),
        FilesQuestion(BLOBS, ("fine", "stale")),
        TableQuestion(BLOBS, Table(1, 2, 3)),
        next(iter(schedule_questions("split", 1))),
    ],
    ids=lambda question: question.kind,
)
def test_a_damaged_question_is_refused_with_the_cure(question: Question) -> None:
    raw = json.loads(json.dumps({"kind": question.kind, **question.encode()}))
    for name in raw:
        for bad in spoiled(raw, name):
            if name == "exact" and bad.get("exact", 0) != 0:
                continue  # anything is true or false
            with pytest.raises(InvalidReplay, match=r"bad\.json.*Cure"):
                decode_question(bad, "bad.json")


# ------------------------------------------------------------------------------------------------ answers


class Answers:
    """A planner that always answers the same, or raises it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def plan(self, *asked: object) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    plan_chunks = extents = plan_schedule = plan_reads = read_window = table_row = accepts = plan


class Refusal(Exception):
    code = "invalid-model"


SCHEDULE = next(iter(schedule_questions("sync", 1)))
LAYOUT = LayoutQuestion("packed-layers", 1, ((("gate", 3),),))
READS, WINDOW = ReadsQuestion(LAYOUT, (Key(0, 0),)), WindowQuestion(3, 4, 2, 10)
FILES, TABLE = FilesQuestion(LAYOUT, ("fine",)), TableQuestion(LAYOUT, Table(1, 2, 3))
CHUNK = ChunkQuestion(16384, 4096, 2, 16384)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        *((CHUNK, answer) for answer in (None, 5, "ab", [5], [(0,)], [(0, 1.5)], {"offset": 0})),
        *((LAYOUT, answer) for answer in (None, [("a", 0)], [(0, 0, 3)], [("a", 0, "3")])),
        *((READS, answer) for answer in (None, 5, [("a", 0)], [("a", 0, 1.5)])),
        *((WINDOW, answer) for answer in (None, 5, (0, 1), [0, 4, "1"])),
        *((FILES, answer) for answer in (None, 0, "yes", [True])),
        *((TABLE, answer) for answer in (None, 5, ("a", 0), ("a", 0, 1.5))),
        *((SCHEDULE, answer) for answer in (None, {}, {"tasks": 5}, {"tasks": [], "order": []}, {"tasks": [(0, "x")]})),
        (SCHEDULE, {"tasks": [(0, "nap", 0, 0, 0, 1, -1)]}),
        (SCHEDULE, {"order": [], "sums": [[]] * 99}),
        (SCHEDULE, {"order": [], "sums": 5}),
    ],
    ids=lambda value: getattr(value, "kind", None) or repr(value)[:40],
)
def test_an_answer_out_of_form_breaks_the_rule_of_answers(question: Question, answer: Any) -> None:

    found = answered(question, Answers(answer))
    assert found is not None
    assert found.rule == "XC-CONF-001"
    assert found.note


@pytest.mark.parametrize("answer", [Refusal("no"), {"error": "invalid-model"}])
def test_what_is_claimed_is_not_refused(answer: Any) -> None:

    for question in (CHUNK, LAYOUT, READS, WINDOW, FILES, TABLE, SCHEDULE):
        found = answered(question, Answers(answer))
        assert found is not None
        assert found.rule == "XC-CONF-003"


def test_a_planner_that_crashes_on_one_question_and_errs_on_another_is_told_the_rule() -> None:
    class Both:
        def plan_chunks(self, size: int, page: int, wanted: int) -> list[tuple[int, int]]:
            if wanted < 1:
                raise ZeroDivisionError("chunks")
            return [(0, size - 1)] if size else []

    profile = parse_profile({"name": "both", "policies": [], "capabilities": ["chunks"]})
    found = examine(Implementation("both", profile, Both()), only=lambda case: "test_chunks" in case.name)
    assert "XC-FANOUT-001" in found.broken
    assert not found.crashed


def test_a_planner_that_crashes_is_an_error_and_no_refusal() -> None:

    with pytest.raises(Crashed, match="plan_chunks raised ZeroDivisionError"):
        answered(CHUNK, Answers(ZeroDivisionError("x")))


def test_a_task_that_is_lacking_or_runs_twice_breaks_the_rule_of_tasks() -> None:

    rows = [(*task, *span) for task, span in schedule(SCHEDULE.scenario).spans.items()]
    assert answered(SCHEDULE, Answers({"tasks": rows})) is None
    for wrong in (rows[1:], [*rows, rows[0]], [*rows, (99, *rows[0][1:])]):
        found = answered(SCHEDULE, Answers({"tasks": wrong}))
        assert found is not None
        assert found.rule == "XC-SCHED-001"


def test_an_exact_question_wants_the_evaluators_times() -> None:

    exact = ScheduleQuestion(SCHEDULE.scenario, exact=True)
    spans = schedule(SCHEDULE.scenario).spans
    assert answered(exact, Answers({"tasks": [(*task, *span) for task, span in spans.items()]})) is None
    late = [(*task, span.start + 1, span.end + 1, span.lane) for task, span in spans.items()]
    assert answered(SCHEDULE, Answers({"tasks": late})) is None
    found = answered(exact, Answers({"tasks": late}))
    assert found is not None
    assert found.rule == "XC-SCHED-007"
