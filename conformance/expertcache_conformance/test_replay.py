"""A replay file, run again: the only test of a run with `--impl-replay`."""

import pytest

from expertcache_conformance.examination import Examination
from expertcache_conformance.program import Program
from expertcache_conformance.questions import Question

REPEATS = 25
"""How often a replayed program is run on two fresh caches each, in search of answers that do not repeat."""


def test_replay(exam: Examination, replayed: Program | Question | None) -> None:
    if replayed is None:
        pytest.skip("no --impl-replay")
    if isinstance(replayed, Question):
        exam.ask([replayed], keep=True)
        return
    program = exam.for_policy(replayed)
    exam.repeat(program, REPEATS)
    exam.exhaust([program], keep=True)
