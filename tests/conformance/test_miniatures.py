"""The suite's own test subjects: each wrong one is caught with exactly its rules, each odd one passes."""

import pytest

from expertcache_conformance.adapters import Implementation, parse_profile
from expertcache_conformance.miniatures import MINIATURES, ODDITIES, Miniature
from expertcache_conformance.rundown import Case, Rundown, cases, examine
from expertcache_spec.rules import RULES

LONG = {"touch_lost_now_and_then": 1000, "count_ceiling": 40, "counts_in_one_byte": 520}
"""Witnesses that must be long, because the fault is: a thousand touches in 300 events, two counts beyond 15, or
beyond 255."""


def run(subject: Miniature) -> Rundown:
    """Everything but the real trace, which the slow and simple caches would take minutes for."""
    implementation = Implementation(subject.name, parse_profile(subject.PROFILE), subject)
    return examine(implementation, only=without_the_real_trace)


def without_the_real_trace(case: Case) -> bool:
    return "real_trace" not in case.name


@pytest.mark.parametrize("subject", MINIATURES, ids=lambda subject: subject.name)
def test_a_wrong_implementation_is_caught_with_exactly_its_rules(subject: Miniature) -> None:
    found = run(subject)
    assert set(found.broken) == subject.breaks, "\n\n".join(v.text() for v in found.broken.values())
    assert not found.crashed
    for violation in found.broken.values():
        assert len(violation.program.operations) <= LONG.get(subject.name, 12)


@pytest.mark.parametrize("subject", ODDITIES, ids=lambda subject: subject.name)
def test_an_odd_but_right_implementation_passes(subject: Miniature) -> None:
    found = run(subject)
    assert not found.broken, "\n\n".join(violation.text() for violation in found.broken.values())
    assert not found.crashed
    assert len(found.passed) > 10


def test_miniatures_are_many_and_each_breaks_a_known_rule() -> None:
    assert len(MINIATURES) >= 15
    assert len(ODDITIES) >= 3
    assert len({subject.name for subject in (*MINIATURES, *ODDITIES)}) == len(MINIATURES) + len(ODDITIES)
    for subject in MINIATURES:
        assert subject.breaks
        assert subject.breaks <= set(RULES)
        assert subject.sentence.endswith(".")


def test_every_test_of_the_suite_cites_a_rule_that_exists() -> None:
    listed = list(cases())
    assert len(listed) > 50
    for case in listed:
        assert case.rules, case.name
        assert set(case.rules) <= set(RULES), case.name
