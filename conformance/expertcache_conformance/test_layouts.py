"""Chapter layout: where a planner says that records lie. A declared layout is compared, an own one held to the laws."""

import pytest

from expertcache_conformance.adapters.planning import OWN_LAYOUT
from expertcache_conformance.examination import Examination
from expertcache_conformance.questions.drawing import layout_questions
from expertcache_conformance.questions.drawing_reads import (
    files_questions,
    reads_questions,
    table_questions,
    window_questions,
)


@pytest.mark.rule("XC-LAYOUT-001", "XC-LAYOUT-002", "XC-LAYOUT-003", "XC-LAYOUT-004", "XC-LAYOUT-005")
@pytest.mark.parametrize("kind", ["packed-layers", "stacked-tensors", "record-blocks", "bundled-rows", "flat-blobs"])
def test_the_records_of_a_declared_layout_lie_where_it_says(exam: Examination, kind: str) -> None:
    exam.plans("layout", layouts=kind)
    exam.ask(layout_questions(kind))


@pytest.mark.rule("XC-LAYOUT-001", "XC-LAYOUT-002", "XC-LAYOUT-003", "XC-LAYOUT-004")
def test_a_layout_of_its_own_obeys_the_laws(exam: Examination) -> None:
    exam.plans("layout", layouts=OWN_LAYOUT)
    exam.ask(layout_questions(OWN_LAYOUT))


@pytest.mark.rule("XC-LAYOUT-006", "XC-LAYOUT-010")
def test_requests_hold_every_wanted_extent_once_and_no_resident_record(exam: Examination) -> None:
    exam.plans("reads")
    exam.ask(reads_questions())


@pytest.mark.rule("XC-LAYOUT-008")
def test_a_direct_read_is_on_the_grain_and_in_the_file(exam: Examination) -> None:
    exam.plans("windows")
    exam.ask(window_questions())


@pytest.mark.rule("XC-LAYOUT-007")
def test_a_side_table_stands_behind_the_weights_and_moves_none(exam: Examination) -> None:
    exam.plans("tables")
    exam.ask(table_questions())


@pytest.mark.rule("XC-LAYOUT-009")
def test_files_that_are_not_the_layouts_own_are_refused(exam: Examination) -> None:
    exam.plans("opening")
    exam.ask(files_questions())
