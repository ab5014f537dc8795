"""Chapter schedule: what a planner says runs when. Any legal schedule will do, unless the evaluator's is claimed."""

from collections.abc import Iterator

import pytest

from expertcache_conformance.examination import Examination
from expertcache_conformance.questions.drawing import schedule_questions
from expertcache_conformance.questions.schedules import ScheduleQuestion

VOLUME = 80
"""Scenarios for each discipline."""

disciplines = pytest.mark.parametrize(
    "discipline",
    [
        pytest.param("sync", marks=pytest.mark.rule("XC-SCHED-010")),
        pytest.param("split", marks=pytest.mark.rule("XC-SCHED-011")),
        pytest.param("staged", marks=pytest.mark.rule("XC-SCHED-012")),
        pytest.param("pipelined", marks=pytest.mark.rule("XC-SCHED-013")),
        "free",
    ],
)


@pytest.mark.rule(
    "XC-SCHED-001",
    "XC-SCHED-002",
    "XC-SCHED-003",
    "XC-SCHED-004",
    "XC-SCHED-005",
    "XC-SCHED-006",
    "XC-SCHED-015",
)
@disciplines
def test_every_schedule_is_legal(exam: Examination, discipline: str) -> None:
    exam.plans("schedule", disciplines=discipline)
    exam.ask(schedule_questions(discipline, VOLUME))


@pytest.mark.rule("XC-SCHED-009")
def test_results_are_added_in_slot_order(exam: Examination) -> None:
    exam.plans("schedule")
    exam.ask_about("XC-SCHED-009", of_every_discipline(exam))


@pytest.mark.rule("XC-SCHED-014")
def test_no_speculation_starts_while_demand_waits(exam: Examination) -> None:
    exam.plans("schedule")
    exam.ask_about("XC-SCHED-014", of_every_discipline(exam))


def of_every_discipline(exam: Examination) -> Iterator[ScheduleQuestion]:
    """A few questions under each claimed discipline."""
    for discipline in exam.implementation.profile.disciplines:
        yield from schedule_questions(discipline, VOLUME // 4)


@pytest.mark.rule("XC-SCHED-007")
@disciplines
def test_the_evaluators_schedule_is_the_one_that_the_rules_determine(exam: Examination, discipline: str) -> None:
    exam.plans("evaluator", disciplines=discipline)
    exam.ask(schedule_questions(discipline, VOLUME, exact=True))
