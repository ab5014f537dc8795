"""Speculation on the demand queue: what goes first, what a wrong guess costs, and what a right one turns into."""

from __future__ import annotations

from random import Random

import attrs
import pytest

from expertcache_spec.model import Key
from expertcache_spec.schedule import Scenario, Span, Storage, TaskId, divided, load_of, make_plan, schedule, violations
from expertcache_spec.schedule.work import adoptions

from .schedules import BYTE, random_record, scenario

GUESSED = attrs.evolve(load_of(1, []), prefetches=(Key(1, 9), Key(1, 0)))


def reads(case: Scenario, event: int, place: int) -> list[tuple[int, int]]:
    """Start and end of each request of that record."""
    found = schedule(case)
    assert violations(case, found) == []
    return [span[:2] for task, span in sorted(found.of(event, "read")) if task.place == place]


@pytest.mark.rule("XC-SCHED-014")
def test_speculation_starts_when_its_event_is_known_and_fills_what_demand_leaves_idle() -> None:
    case = scenario([GUESSED, load_of(1, [], layer=1)], divided([3, 3], [3]), route=2, gate_up=20)
    assert reads(case, 0, 1) == [(2, 5), (5, 8), (8, 11)]
    assert reads(case, 0, 2) == [(11, 14), (14, 17), (17, 20)]
    assert adoptions(case.loads) == {(0, 0): None, (0, 1): None}


@pytest.mark.rule("XC-SCHED-014", "XC-SCHED-016")
def test_demand_waits_for_the_request_in_service_and_for_no_other() -> None:
    case = scenario([GUESSED, load_of(1, [0], layer=1, first=5)], divided([3, 3], [3]), route=2)
    assert reads(case, 1, 0) == [(5, 8), (8, 11), (11, 14)]  # known at 4; the request in service ends at 5
    assert reads(case, 0, 1) == [(2, 5), (14, 17), (17, 20)]


@pytest.mark.rule("XC-SCHED-014", "XC-SCHED-015")
def test_a_guess_that_is_missed_is_promoted_and_read_once() -> None:
    case = scenario([GUESSED, load_of(2, [0, 1], layer=1)], divided([3], [3]), route=2)
    found = schedule(case)
    assert adoptions(case.loads) == {(0, 0): None, (0, 1): 1}
    assert [task for task in found.spans if task.kind == "read" and task.event == 1] == [
        TaskId(1, "read", slot, part) for slot in (0, 1) for part in (0, 1)
    ]
    assert reads(case, 1, 0) == [(5, 8), (8, 11)]  # before the wrong guess, which was asked for first
    assert reads(case, 1, 1) == [(11, 14), (14, 17)]
    assert reads(case, 0, 1) == [(2, 5), (17, 20)]


@pytest.mark.rule("XC-SCHED-015")
def test_a_record_on_its_way_is_not_guessed_again_until_something_misses_it() -> None:
    guess = Key(2, 0)
    first, again = (attrs.evolve(load_of(1, [], layer=layer), prefetches=(guess,)) for layer in (0, 1))
    asked = load_of(1, [0], layer=2)
    assert adoptions([first, again, asked]) == {(0, 0): 2}
    assert adoptions([first, asked, again]) == {(0, 0): 1, (2, 0): None}


@pytest.mark.rule("XC-SCHED-008", "XC-SCHED-015")
def test_a_guess_changes_when_bytes_arrive_and_not_which_are_asked_for() -> None:
    plain = scenario([load_of(1, []), load_of(1, [0], layer=1)], route=2, gate_up=4)
    guessed = attrs.evolve(plain, loads=(attrs.evolve(plain.loads[0], prefetches=(Key(1, 0),)), plain.loads[1]))
    assert schedule(guessed).spans.keys() == schedule(plain).spans.keys()
    assert (schedule(plain).makespan, schedule(guessed).makespan) == (15, 12)


def guessing(seed: int, workers: int) -> tuple[Scenario, Scenario]:
    """An event that asks for records while an earlier one's wrong guesses are read, with the guesses and without."""
    random = Random(seed)
    storage = Storage(workers, random.randint(1, workers), BYTE, random.randint(0, 3))
    first = attrs.evolve(load_of(1, []), prefetches=tuple(Key(1, 50 + n) for n in range(random.randint(1, 3))))
    second = load_of(4, range(random.randint(1, 4)), layer=1)
    case = scenario([first, second], random_record(random, 6), route=random.randint(1, 9), gate_up=random.randint(0, 9))
    case = attrs.evolve(case, storage=storage)
    return case, attrs.evolve(case, loads=(attrs.evolve(first, prefetches=()), second))


def service(case: Scenario) -> int:
    """Nanoseconds of the longest request while every worker transfers."""
    storage = case.storage
    share = max(storage.workers, storage.lanes)
    return max(storage.wait + share * storage.transfer(request.bytes) for request in case.records[0])


@pytest.mark.rule("XC-SCHED-016")
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_demand_waits_for_the_first_of_the_requests_in_service_to_end(workers: int) -> None:
    waited = 0
    for seed in range(300):
        case, _ = guessing(seed, workers)
        found = schedule(case)
        known = found.spans[TaskId(1, "route")].end
        start = min(span.start for _, span in found.of(1, "read"))
        serving = [span.end for _, span in found.of(0, "read") if span.start < known < span.end]
        assert start == (min(serving) if len(serving) == workers else known), seed
        assert start - known <= service(case)
        waited += start > known
    assert waited > 100


@pytest.mark.rule("XC-SCHED-016")
def test_with_one_worker_wrong_guesses_delay_no_read_by_more_than_one_request() -> None:
    worst = 0
    for seed in range(400):
        case, alone = guessing(seed, 1)
        found = schedule(case)
        late = [found.spans[task].end - span.end for task, span in schedule(alone).of(1, "read")]
        assert 0 <= min(late) <= max(late) <= service(case), seed
        worst = max(worst, 100 * max(late) // service(case))
    assert worst > 80  # per cent of one request: the bound is not idle


@pytest.mark.rule("XC-SCHED-016")
def test_with_two_workers_a_late_start_can_grow_on_the_way_to_the_end() -> None:
    # Who waits longer is then served beside others, in another order: the bound is on the start.
    def growth(seed: int) -> int:
        case, alone = guessing(seed, 2)
        ends = [max(span.end for _, span in schedule(each).of(1, "read")) for each in (case, alone)]
        return ends[0] - ends[1] - service(case)

    assert max(map(growth, range(60))) > 0


@pytest.mark.rule("XC-SCHED-016")
def test_smaller_requests_bound_the_delay_tighter() -> None:
    late = []
    for parts in (1, 2, 4):
        record = divided([8 // parts] * parts, [4])
        case = scenario([GUESSED, load_of(1, [0], layer=1, first=5)], record, route=1)
        late.append(min(span.start for _, span in schedule(case).of(1, "read")) - 2)
    assert late == [7, 3, 1]


@pytest.mark.rule("XC-SCHED-014")
def test_a_promoted_read_keeps_its_place_before_reads_asked_for_later() -> None:
    case = scenario([GUESSED, load_of(2, [0, 1], layer=1)], divided([3], [3]), route=2)
    order = [task.id for task in make_plan(case).tasks if task.is_read]
    assert order.index(TaskId(1, "read", 0)) < order.index(TaskId(1, "read", 1))
    assert schedule(case).spans[TaskId(0, "read", 1)] == Span(2, 5, 0)
