"""Chapter model: keys, records and budgets."""

import pytest

from expertcache_conformance.examination import Examination
from expertcache_conformance.scenarios import passes


@pytest.mark.rule("XC-MODEL-001")
def test_equal_experts_of_different_layers_are_different_keys(exam: Examination) -> None:
    exam.hunt(passes, exam.config(layers=3, experts=3, slots=5), volume=60)


@pytest.mark.rule("XC-MODEL-003")
def test_the_tighter_of_slots_and_bytes_wins(exam: Examination) -> None:
    sizes = (2, 2)
    exam.hunt(
        passes,
        exam.config(slots=5, size=8, record_bytes=sizes, overflow="error"),
        exam.config(slots=3, size=99, record_bytes=sizes, overflow="error"),
        volume=80,
    )


@pytest.mark.rule("XC-MODEL-004", "XC-MODEL-002")
def test_each_record_is_charged_its_own_size(exam: Examination) -> None:
    exam.hunt(passes, exam.config(slots=None, size=13, record_bytes=(2, 4)), volume=120)


@pytest.mark.rule("XC-MODEL-006")
def test_the_first_layers_get_the_remainder_of_a_layered_budget(exam: Examination) -> None:
    exam.hunt(passes, exam.config(slots=11, layers=3, experts=6, scope="layer"), volume=80)
