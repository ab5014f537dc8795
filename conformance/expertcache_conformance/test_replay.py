"""A replay file, run again: the only test of a run with `--impl-replay`."""

import pytest

from expertcache_conformance.examination import Examination
from expertcache_conformance.program import Program


def test_replay(exam: Examination, replayed: Program) -> None:
    if replayed is None:
        pytest.skip("no --impl-replay")
    exam.exhaust([exam.for_policy(replayed)], keep=True)
