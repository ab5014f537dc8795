"""Chapter fan-out: the chunk plans of a planner. The rules determine each of them."""

import pytest

from expertcache_conformance.examination import Examination
from expertcache_conformance.questions.drawing import chunk_questions, tiered_questions


@pytest.mark.rule("XC-FANOUT-001", "XC-FANOUT-002", "XC-FANOUT-003")
def test_every_record_is_cut_into_whole_pages(exam: Examination) -> None:
    exam.plans("chunks")
    exam.ask(chunk_questions())


@pytest.mark.rule("XC-FANOUT-004")
def test_a_record_is_cut_by_its_own_size(exam: Examination) -> None:
    exam.plans("chunks")
    exam.ask(tiered_questions())
