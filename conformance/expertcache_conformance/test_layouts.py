"""Chapter layout: where a planner says that records lie. A declared layout is compared, an own one held to the laws."""

import pytest

from expertcache_conformance.adapters.planning import OWN_LAYOUT
from expertcache_conformance.examination import Examination
from expertcache_conformance.questions.drawing import layout_questions


@pytest.mark.rule("XC-LAYOUT-001", "XC-LAYOUT-002", "XC-LAYOUT-003", "XC-LAYOUT-004", "XC-LAYOUT-005")
@pytest.mark.parametrize("kind", ["packed-layers", "stacked-tensors", "record-blocks", "bundled-rows"])
def test_the_records_of_a_declared_layout_lie_where_it_says(exam: Examination, kind: str) -> None:
    exam.plans("layout", layouts=kind)
    exam.ask(layout_questions(kind))


@pytest.mark.rule("XC-LAYOUT-001", "XC-LAYOUT-002", "XC-LAYOUT-003", "XC-LAYOUT-004")
def test_a_layout_of_its_own_obeys_the_laws(exam: Examination) -> None:
    exam.plans("layout", layouts=OWN_LAYOUT)
    exam.ask(layout_questions(OWN_LAYOUT))
