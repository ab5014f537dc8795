"""Chapter prefetch, as far as a cache takes part: reads into its slots that nobody has asked for yet."""

import pytest

from expertcache_conformance import scenarios
from expertcache_conformance.examination import Examination


@pytest.mark.rule("XC-PREFETCH-014", "XC-RES-021", "XC-RES-027")
def test_demand_meets_a_speculative_read_and_joins_it(exam: Examination) -> None:
    exam.events_only()
    exam.hunt(scenarios.meetings, *(exam.config(slots=slots, capability="prefetch") for slots in (3, 7)), volume=60)


@pytest.mark.rule("XC-PREFETCH-008", "XC-RES-021")
def test_speculation_evicts_nothing_when_there_is_no_room(exam: Examination) -> None:
    exam.events_only()
    exam.hunt(scenarios.prefetches, exam.config(slots=3, layers=1, experts=9, capability="prefetch"), volume=60)


@pytest.mark.rule("XC-RES-016", "XC-RES-021")
def test_a_speculative_read_that_fails_leaves_nothing_behind(exam: Examination) -> None:
    exam.events_only()
    exam.config(slots=4, capability="faults")
    exam.hunt(scenarios.failed_prefetches, exam.config(slots=4, capability="prefetch"), volume=60)


@pytest.mark.rule("XC-METRIC-004")
def test_what_became_of_every_prefetch_is_counted_once(exam: Examination) -> None:
    exam.events_only()
    exam.hunt(scenarios.counted_prefetches, exam.config(slots=4, capability="prefetch-counts"), volume=100)
