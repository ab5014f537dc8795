"""The suite's own test subjects: each wrong one is caught with exactly its rules, each odd one passes."""

from typing import Any

import pytest

from expertcache_conformance.adapters import Implementation, parse_profile
from expertcache_conformance.features import agrees
from expertcache_conformance.miniatures import MINIATURES, ODDITIES, Miniature
from expertcache_conformance.miniatures.witnesses import LONGEST, gather, read
from expertcache_conformance.rundown import Case, Rundown, cases, examine
from expertcache_spec.rules import RULES


def policy_of(subject: Miniature) -> str:
    """The first policy that it claims, without parameters."""
    return str(subject.claims["policies"][0]).partition(":")[0]


LONG = {"touch_lost_now_and_then": 1000, "count_ceiling": 40, "counts_in_one_byte": 520}
"""Witnesses that must be long, because the fault is: a thousand touches in 300 events, two counts beyond 15, or
beyond 255."""


PLAIN = ("lru", "fifo", "lfu", "lfu-reset")
"""Policies whose right subjects meet the whole suite every day, and their wrong ones the tests about the rules that
they break. Those of the others meet the tests of their own policy; everything meets the whole suite at night."""
NIGHTLY = [
    subject
    for subject in (*MINIATURES, *ODDITIES)
    if subject.breaks or policy_of(subject) not in PLAIN or "bytes" in subject.claims.get("capabilities", ())
]


def run(subject: Miniature, *, whole: bool = False) -> Rundown:
    """Everything but the real trace, which the slow and simple caches would take minutes for; or see `PLAIN`."""
    implementation = Implementation(subject.name, parse_profile(subject.PROFILE), subject)
    return examine(implementation, only=lambda case: "real_trace" not in case.name and (whole or daily(subject, case)))


OF_BYTES = {
    "keeps_bytes_of_a_failed_read": "of_a_failed_read", "reads_the_old_models_files": "after_a_rebind",
    "seeds_without_reading": "[seeds]", "gives_a_slot_twice": "[reset]",
    "one_scratch_for_all_that_is_not_kept": "not_kept", "copies_what_it_holds": "not_kept",
    "reads_at_every_look": "not_kept",
}  # fmt: skip
"""Of those that hold bytes, the test that they meet every day, where it is not the first one."""


def daily(subject: Miniature, case: Case) -> bool:
    """Whether the subject meets the test every day."""
    if "bytes" in subject.claims.get("capabilities", ()):
        return "test_bytes" in case.name and OF_BYTES.get(subject.name, "until_its_lease_ends") in case.name
    if policy_of(subject) not in PLAIN:
        return f"[{policy_of(subject)}]" in case.name
    return not subject.breaks or bool(subject.breaks & set(case.rules)) or "test_generated_passes[" in case.name


def check(subject: Miniature, found: Rundown) -> None:
    """What is found is what the subject breaks, and a short program shows it."""
    assert set(found.broken) == subject.breaks, "\n\n".join(v.text() for v in found.broken.values())
    assert not found.crashed
    assert subject.breaks or len(found.passed) >= (1 if "bytes" in subject.claims.get("capabilities", ()) else 6)
    for violation in found.broken.values():
        assert violation.size[0] <= LONG.get(subject.name, 12)


@pytest.mark.parametrize("subject", MINIATURES, ids=lambda subject: subject.name)
def test_a_wrong_implementation_is_caught_with_exactly_its_rules(subject: Miniature) -> None:
    check(subject, run(subject))


def _daily(subjects: list[Miniature], *long: str) -> list[Any]:
    """Each subject once; those that take longest at night, and each must be one of them."""
    assert {*long} <= {subject.name for subject in subjects}
    return [pytest.param(each, marks=pytest.mark.nightly if each.name in long else ()) for each in subjects]


SLOW = ("sighted_cache", "hotter_cache", "quiet_cache", "backwards_cache", "speculating_cache")


@pytest.mark.parametrize("subject", _daily(ODDITIES, *SLOW), ids=lambda subject: subject.name)
def test_an_odd_but_right_implementation_passes(subject: Miniature) -> None:
    check(subject, run(subject))


@pytest.mark.nightly
@pytest.mark.parametrize("subject", NIGHTLY, ids=lambda subject: subject.name)
def test_the_rest_of_the_suite_finds_nothing_else(subject: Miniature) -> None:
    check(subject, run(subject, whole=True))


def test_miniatures_are_many_and_each_breaks_a_known_rule() -> None:
    assert len(MINIATURES) >= 80
    assert len(ODDITIES) >= 8
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


def without_a_witness(subject: Miniature) -> bool:
    """What no short program shows: faults of the conversation, and those that need a thousand touches or counts."""
    return LONG.get(subject.name, 0) > LONGEST or all(rule.startswith("XC-CONF") for rule in subject.breaks)


def test_every_miniature_has_shipped_a_witness_that_still_tells_it_apart() -> None:
    witnesses, subjects = read(), {subject.name: subject for subject in MINIATURES}
    assert {witness.miniature for witness in witnesses} == {
        subject.name for subject in MINIATURES if not without_a_witness(subject)
    }
    for witness in witnesses:
        assert witness.rule in subjects[witness.miniature].breaks
        assert len(witness.program.operations) <= LONGEST
        if witness.rule.startswith("XC-EVICT"):
            subject = subjects[witness.miniature]
            assert not agrees(witness.program, Implementation(subject.name, parse_profile(subject.PROFILE), subject)), (
                witness.miniature
            )


@pytest.mark.nightly
def test_the_shipped_witnesses_are_what_the_miniatures_give_now() -> None:
    given = [witness.line() for witness in gather(MINIATURES)]
    assert given == [witness.line() for witness in read()]
