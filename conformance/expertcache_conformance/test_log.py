"""A recorded log: every line by every rule, and every decision beside the specification's."""

import pytest

from expertcache_conformance.examination import Examination


@pytest.mark.rule("XC-HIST-012")
def test_the_log_is_legal(exam: Examination) -> None:
    exam.judge_log()


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param("XC-HIST-001", marks=pytest.mark.rule("XC-HIST-001")),
        pytest.param("XC-HIST-002", marks=pytest.mark.rule("XC-HIST-002")),
        pytest.param("XC-HIST-003", marks=pytest.mark.rule("XC-HIST-003")),
        pytest.param("XC-HIST-004", marks=pytest.mark.rule("XC-HIST-004")),
        pytest.param("XC-HIST-005", marks=pytest.mark.rule("XC-HIST-005")),
        pytest.param("XC-HIST-006", marks=pytest.mark.rule("XC-HIST-006")),
        pytest.param("XC-HIST-007", marks=pytest.mark.rule("XC-HIST-007")),
        pytest.param("XC-HIST-008", marks=pytest.mark.rule("XC-HIST-008")),
        pytest.param("XC-HIST-009", marks=pytest.mark.rule("XC-HIST-009")),
        pytest.param("XC-HIST-010", marks=pytest.mark.rule("XC-HIST-010")),
        pytest.param("XC-HIST-011", marks=pytest.mark.rule("XC-HIST-011")),
        pytest.param("XC-FANOUT-005", marks=pytest.mark.rule("XC-FANOUT-005")),
        pytest.param("XC-TRACE-002", marks=pytest.mark.rule("XC-TRACE-002")),
        pytest.param("XC-RES-002", marks=pytest.mark.rule("XC-RES-002")),
        pytest.param("XC-RES-003", marks=pytest.mark.rule("XC-RES-003")),
        pytest.param("XC-RES-005", marks=pytest.mark.rule("XC-RES-005")),
        pytest.param("XC-RES-008", marks=pytest.mark.rule("XC-RES-008")),
        pytest.param("XC-RES-010", marks=pytest.mark.rule("XC-RES-010")),
        pytest.param("XC-RES-011", marks=pytest.mark.rule("XC-RES-011")),
        pytest.param("XC-RES-013", marks=pytest.mark.rule("XC-RES-013")),
        pytest.param("XC-RES-015", marks=pytest.mark.rule("XC-RES-015")),
        pytest.param("XC-RES-016", marks=pytest.mark.rule("XC-RES-016")),
        pytest.param("XC-RES-017", marks=pytest.mark.rule("XC-RES-017")),
        pytest.param("XC-RES-018", marks=pytest.mark.rule("XC-RES-018")),
        pytest.param("XC-RES-019", marks=pytest.mark.rule("XC-RES-019")),
        pytest.param("XC-RES-020", marks=pytest.mark.rule("XC-RES-020")),
        pytest.param("XC-RES-022", marks=pytest.mark.rule("XC-RES-022")),
        pytest.param("XC-RES-023", marks=pytest.mark.rule("XC-RES-023")),
    ],
)
def test_a_rule_holds_wherever_the_log_is_about_it(exam: Examination, rule: str) -> None:
    exam.judge_log(rule)


@pytest.mark.rule("XC-HIST-005")
def test_the_declared_policy_decides_the_same_step_by_step(exam: Examination) -> None:
    exam.compare_log()
