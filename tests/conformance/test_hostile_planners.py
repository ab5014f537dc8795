"""Planners that answer too much, too little, or with a lawless layout of their own: each is judged, none hangs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import attrs
import pytest

from expertcache_conformance.adapters import Implementation, parse_profile
from expertcache_conformance.examination import Examination, RulesBroken
from expertcache_conformance.questions import ChunkQuestion, LayoutQuestion, ScheduleQuestion, answered
from expertcache_conformance.questions.drawing import layout_questions
from expertcache_conformance.rundown import examine
from expertcache_spec.schedule import Costs, Discipline, Scenario, divided, load_of, schedule

HUGE = 10**5000
CHUNK = ChunkQuestion(16384, 4096, 2, 16384)


class Overlapping:
    """A layout of its own: every record at the beginning of one file, or the file one byte short."""

    def __init__(self, size: int, *, stacked: bool = False) -> None:
        self.size, self.stacked = size, stacked

    def extents(self, layout: Any, key: Any) -> list[tuple[str, int, int]]:
        starts = {at: n for n, at in enumerate((k, e) for k in layout.parts for e in range(layout.experts))}
        size = sum(layout.parts[key[0]].values())
        return [("a.bin", starts[tuple(key)] * 10**9 if self.stacked else 0, size)]

    def files(self, layout: Any) -> dict[str, int]:
        return {"a.bin": self.size}


@pytest.mark.rule("XC-LAYOUT-001", "XC-LAYOUT-002")
@pytest.mark.parametrize(
    ("planner", "rule"),
    [(Overlapping(10**9), "XC-LAYOUT-002"), (Overlapping(2, stacked=True), "XC-LAYOUT-001")],
    ids=["overlapping", "beyond the file"],
)
def test_a_wrong_layout_of_its_own_is_judged_to_the_smallest_witness(planner: Overlapping, rule: str) -> None:
    claims = {"name": "own", "policies": [], "capabilities": ["layout"], "layouts": ["own"]}
    exam = Examination(Implementation("own", parse_profile(claims), planner))
    with pytest.raises(RulesBroken) as broken:
        exam.ask(layout_questions("own"))
    found = {finding.rule: finding for finding in broken.value.violations}
    assert rule in found
    assert found[rule].size[0] <= 2, found[rule].text()


def test_no_layout_question_is_about_records_without_bytes() -> None:
    for question in layout_questions("own"):
        for less in question.smaller():
            assert isinstance(less, LayoutQuestion)
            assert less.shape.keys()


# ------------------------------------------------------------------------------------------------ too much


def endless() -> Iterator[tuple[int, int]]:
    return ((n, 1) for n in count())


class Endless:
    """No generator, and no end either."""

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return endless()


@pytest.mark.rule("XC-CONF-001")
@pytest.mark.parametrize(
    "answer",
    [lambda: HUGE, lambda: [(0, HUGE)], lambda: [(-HUGE, 4096)], lambda: {"offset": HUGE}, lambda: [HUGE], endless,
     Endless, lambda: [endless()], lambda: {"error": HUGE}],
    ids=["huge", "length", "offset", "mapping", "row", "generator", "iterable", "endless row", "error"],
)  # fmt: skip
def test_an_answer_beyond_all_measure_is_out_of_form(answer: Any) -> None:
    class Asked:
        def plan_chunks(self, *asked: int) -> Any:
            return answer()

    found = answered(CHUNK, Asked())
    assert found is not None
    assert found.rule == "XC-CONF-001"
    assert len(found.text()) < 2000


# ------------------------------------------------------------------------------------------------ too little


@attrs.frozen
class Evaluating:
    """Answers the evaluator's schedule: with or without sums, in times or as an order only."""

    sums: bool
    timed: bool

    def plan_schedule(self, request: Any) -> dict[str, Any]:
        found = schedule(request)
        spans = sorted(found.spans.items(), key=lambda item: (item[1].start, item[1].end, item[0]))
        rows = [(*task, *span) for task, span in spans]
        told = {"tasks": rows} if self.timed else {"order": [row[:4] for row in rows]}
        return {**told, **({"sums": found.sums} if self.sums else {})}


LEFT_OPEN = {"slot_order": "no answer tells its sums", "speculation": "no answer tells times"}


@pytest.mark.rule("XC-SCHED-009", "XC-SCHED-014")
@pytest.mark.parametrize(("sums", "timed"), [(True, True), (False, True), (True, False)])
def test_what_no_answer_tells_is_not_judged(sums: bool, timed: bool) -> None:
    claims = {"name": "a", "policies": [], "capabilities": ["schedule"], "disciplines": ["sync"]}
    planner = Implementation("a", parse_profile(claims), Evaluating(sums, timed))
    found = examine(planner, only=lambda case: case.name.startswith("test_schedules"))
    assert not found.crashed
    for word, judged in {"slot_order": sums, "speculation": timed}.items():
        assert any(word in name for name in found.passed) == judged, found
        assert any(word in name for name in found.not_judged) != judged, found
        assert judged or LEFT_OPEN[word] in " ".join(found.not_judged.values())


@pytest.mark.rule("XC-SCHED-011", "XC-SCHED-012", "XC-SCHED-013")
@pytest.mark.parametrize(
    ("name", "rule"), [("split", "XC-SCHED-011"), ("staged", "XC-SCHED-012"), ("pipelined", "XC-SCHED-013")]
)
@pytest.mark.parametrize("guard", ["threshold", "tokens", "entries"])
def test_a_guard_taken_wrongly_is_named_by_its_disciplines_own_rule(name: Any, rule: str, guard: str) -> None:
    load = attrs.evolve(load_of(3, [0, 1]), tokens=2, entries=2)
    record = (divided([2, 2], [2]),)
    discipline = attrs.evolve(Discipline(name), **{guard: 2})
    asked = Scenario((load,), record, Costs(1, 1, 1, 1, 1, 1), discipline=discipline)

    class OffByOne:
        def plan_schedule(self, request: Scenario) -> dict[str, Any]:
            late = attrs.evolve(request.discipline, **{guard: getattr(request.discipline, guard) + 1})
            return Evaluating(sums=True, timed=True).plan_schedule(attrs.evolve(request, discipline=late))

    found = answered(ScheduleQuestion(asked), OffByOne())
    assert found is not None
    assert (found.rule, f"with {guard} 3, not 2" in found.note) == (rule, True), found.text()
