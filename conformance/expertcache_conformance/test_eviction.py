"""Chapter eviction: every claimed policy, hits and victims step by step."""

from itertools import chain

import pytest

from expertcache_conformance.examination import Examination
from expertcache_conformance.hunt import seeded
from expertcache_conformance.scenarios import endurance, every_sequence, every_set_sequence, long_counts, passes

policies = pytest.mark.parametrize(
    "policy",
    [
        pytest.param("fifo", marks=pytest.mark.rule("XC-EVICT-010")),
        pytest.param("lru", marks=pytest.mark.rule("XC-EVICT-020", "XC-EVICT-021", "XC-EVICT-022")),
        pytest.param("lfu", marks=pytest.mark.rule("XC-EVICT-030", "XC-EVICT-031", "XC-EVICT-032", "XC-EVICT-033")),
        pytest.param("lfu-reset", marks=pytest.mark.rule("XC-EVICT-040", "XC-EVICT-041", "XC-EVICT-042")),
        pytest.param("belady", marks=pytest.mark.rule("XC-EVICT-050")),
    ],
)


@pytest.mark.rule("XC-EVICT-002")
@policies
def test_every_short_sequence_of_single_keys(exam: Examination, policy: str) -> None:
    configs = [exam.config(policy, slots=slots, layers=1, experts=4, top_k=1) for slots in (2, 3)]
    exam.exhaust(chain.from_iterable(every_sequence(config, keys=4, length=5) for config in configs))


@pytest.mark.rule("XC-EVICT-002")
@policies
def test_every_short_sequence_of_sets(exam: Examination, policy: str) -> None:
    exam.events_only()
    configs = [exam.config(policy, slots=slots, layers=1, experts=4, top_k=2) for slots in (2, 3)]
    exam.exhaust(chain.from_iterable(every_set_sequence(config, keys=4, length=3) for config in configs))


@policies
def test_generated_passes(exam: Examination, policy: str) -> None:
    exam.hunt(passes, exam.config(policy, slots=4), exam.config(policy, slots=9, layers=3))


@policies
def test_generated_passes_by_layer(exam: Examination, policy: str) -> None:
    exam.hunt(passes, exam.config(policy, slots=8, scope="layer"))


@policies
def test_long_counts(exam: Examination, policy: str) -> None:
    exam.hunt(long_counts, *(exam.config(policy, slots=slots, layers=1, top_k=1) for slots in (2, 3)), volume=60)


@policies
def test_thousands_of_accesses_to_a_small_cache(exam: Examination, policy: str) -> None:
    exam.exhaust(seeded(endurance, exam.config(policy, slots=5), 3))


@policies
def test_the_real_trace_step_by_step(exam: Examination, policy: str) -> None:
    exam.replay_real_trace(policy, slots=1024)


@pytest.mark.rule("XC-EVICT-051")
def test_belady_with_bypass_refuses_what_is_wanted_no_sooner(exam: Examination) -> None:
    exam.hunt(passes, exam.config("belady", slots=4, admission="refusable"))


@pytest.mark.rule("XC-MODEL-004")
def test_the_real_trace_under_a_byte_budget(exam: Examination) -> None:
    exam.replay_real_trace("lru", size=4000 << 20)
