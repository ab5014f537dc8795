"""Chapter residency: the machine."""

import pytest

from expertcache_conformance import scenarios
from expertcache_conformance.examination import Examination
from expertcache_conformance.scenarios import passes, pressure


@pytest.mark.rule("XC-RES-001", "XC-RES-005", "XC-EVICT-003")
def test_an_event_is_judged_and_protected_as_a_whole(exam: Examination) -> None:
    exam.events_only()
    exam.hunt(passes, exam.config(slots=4), exam.config(slots=3, layers=1))


@pytest.mark.rule("XC-RES-002", "XC-TRACE-001")
def test_a_repeat_inside_an_event_is_no_second_lookup(exam: Examination) -> None:
    exam.events_only()
    exam.hunt(passes, exam.config(slots=6, layers=1))


@pytest.mark.rule("XC-RES-003", "XC-RES-028")
def test_what_was_admitted_and_not_evicted_is_a_hit(exam: Examination) -> None:
    exam.hunt(passes, exam.config(slots=12, experts=6), exam.config(slots=5))


@pytest.mark.rule("XC-RES-008", "XC-RES-010")
def test_the_budget_is_used_and_never_exceeded(exam: Examination) -> None:
    exam.hunt(passes, exam.config(slots=3, room="reserve"), exam.config(slots=7, room="reserve"))


@pytest.mark.rule("XC-RES-006")
@pytest.mark.parametrize("touch", ["router", "hits_first"])
def test_recency_inside_an_event_follows_the_touch_order(exam: Examination, touch: str) -> None:
    exam.events_only()
    exam.hunt(pressure, exam.telling("touch", touch, pressure, slots=6, layers=1, experts=9))


@pytest.mark.rule("XC-RES-007")
@pytest.mark.parametrize("repeats", ["promote", "ignore"])
def test_a_later_row_promotes_or_does_not(exam: Examination, repeats: str) -> None:
    exam.events_only()
    exam.hunt(pressure, exam.telling("repeats", repeats, pressure, slots=6, layers=1, experts=9))


@pytest.mark.rule("XC-RES-012")
@pytest.mark.parametrize("overflow", ["error", "bypass"])
def test_an_event_that_cannot_fit_is_refused_or_bypassed(exam: Examination, overflow: str) -> None:
    exam.events_only()
    exam.hunt(passes, exam.config(slots=2, layers=1, overflow=overflow))


@pytest.mark.rule("XC-RES-013", "XC-RES-012")
def test_an_event_that_cannot_fit_is_served_in_waves(exam: Examination) -> None:
    exam.events_only()
    exam.hunt(passes, exam.config(slots=2, layers=1, overflow="waves"))


@pytest.mark.rule("XC-RES-014")
def test_capacity_zero_serves_everything_and_keeps_nothing(exam: Examination) -> None:
    exam.hunt(passes, exam.config(slots=0), volume=40)


@pytest.mark.rule("XC-RES-025")
def test_room_trim_loads_then_evicts_down(exam: Examination) -> None:
    exam.events_only()
    exam.hunt(passes, exam.config(slots=4, room="trim"), exam.config(slots=3, layers=1, room="trim"))


@pytest.mark.rule("XC-RES-026")
def test_room_retain_keeps_the_best_of_residents_and_event(exam: Examination) -> None:
    exam.events_only()
    exam.hunt(passes, exam.config(slots=2, layers=1, room="retain"), exam.config(slots=4, room="retain"))


@pytest.mark.rule("XC-RES-004", "XC-RES-015", "XC-RES-017", "XC-RES-027")
def test_leases_last_from_selection_to_release(exam: Examination) -> None:
    exam.events_only()
    exam.hunt(
        scenarios.leases, *(exam.config(slots=slots, experts=9, capability="leases") for slots in (5, 9)), volume=400
    )


@pytest.mark.rule("XC-RES-024")
@pytest.mark.parametrize("rule", ["wait", "bypass", "error"])
def test_without_a_legal_victim_the_declared_rule_applies(exam: Examination, rule: str) -> None:
    exam.events_only()
    exam.hunt(scenarios.leases, exam.config(slots=3, layers=1, capability="leases", no_victim=rule))


@pytest.mark.rule("XC-RES-016", "XC-RES-009")
def test_a_failed_read_leaves_nothing_behind(exam: Examination) -> None:
    exam.events_only()
    exam.hunt(scenarios.faults, exam.config(slots=4, capability="faults"))


@pytest.mark.rule("XC-RES-018", "XC-RES-019")
def test_pins_protect_and_unpinning_refreshes_nothing(exam: Examination) -> None:
    # Without several records a pin leaves room for nothing; overflow is not what is asked here.
    exam.hunt(scenarios.pins, exam.config(slots=6, layers=1, experts=9, capability="pins"))


@pytest.mark.rule("XC-RES-011")
def test_a_resize_takes_effect_at_once_and_lasts(exam: Examination) -> None:
    exam.hunt(scenarios.resizes, exam.config(slots=6, capability="resize"))


@pytest.mark.rule("XC-RES-020")
def test_seeds_fill_free_room_and_evict_nothing(exam: Examination) -> None:
    exam.hunt(scenarios.seeds, exam.config(slots=5, capability="seeds"))


@pytest.mark.rule("XC-RES-021")
def test_prefetches_take_free_room_only(exam: Examination) -> None:
    exam.events_only()
    exam.hunt(scenarios.prefetches, exam.config(slots=5, capability="prefetch"))


@pytest.mark.rule("XC-RES-022")
def test_a_reset_takes_what_its_scope_names(exam: Examination) -> None:
    exam.hunt(scenarios.resets, exam.config(slots=5, capability="reset"))


@pytest.mark.rule("XC-RES-023")
def test_another_model_finds_nothing_of_the_former(exam: Examination) -> None:
    exam.hunt(scenarios.rebinds, exam.config(slots=5, capability="rebind"))
