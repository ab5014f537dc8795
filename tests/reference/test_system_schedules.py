"""The simulated machine finds what is planted, finds nothing in right programs, and shows it again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from expertcache_reference.system.simulated import (
    Chance,
    Faults,
    Preempting,
    RunFailed,
    SimulatedMachine,
    Simulation,
    WrongSchedule,
    exhaust,
    explore,
    replay,
    run,
)
from expertcache_reference.system.simulated.schedules import STRAIGHT, choices_of, text_of

from .simulated_programs import FILES, counting, dining, joined, pool, reading, releasing, signalling, trusting

FILED = Simulation(FILES)
SPURIOUS = Simulation(faults=Faults(spurious_every=2))
WRONG = [
    pytest.param(counting(False), Simulation(), "exception", id="lost update"),
    pytest.param(dining(False), Simulation(), "deadlock", id="locks in two orders"),
    pytest.param(signalling(False), Simulation(), "lost-wake-up", id="flag seen without the lock"),
    pytest.param(releasing(False), Simulation(), "lost-wake-up", id="notify for notify_all"),
    pytest.param(trusting(False), Simulation(), "exception", id="stolen wake-up"),
    pytest.param(trusting(False), SPURIOUS, "exception", id="wake-up without cause"),
    pytest.param(reading(False), FILED, "exception", id="bytes seen before they came"),
]
RIGHT = [
    pytest.param(counting(True), Simulation(), id="update under a lock"),
    pytest.param(dining(True), Simulation(), id="locks in one order"),
    pytest.param(signalling(True), Simulation(), id="flag seen under the lock"),
    pytest.param(releasing(True), Simulation(), id="notify_all"),
    pytest.param(trusting(True), SPURIOUS, id="wake-up looked into"),
    pytest.param(reading(True), FILED, id="bytes seen when they came"),
]


@pytest.mark.parametrize(("program", "simulation", "kind"), WRONG)
def test_a_planted_mistake_is_found_and_its_schedule_shows_it_again_call_by_call(
    program: Callable[[Any], Any], simulation: Simulation, kind: str
) -> None:
    found = explore(program, simulation, schedules=300)
    assert found.failure is not None
    assert found.failure.kind == kind
    again = replay(program, found.failure.schedule, simulation)
    assert again.story() == found.failure.story()
    assert again.finding == found.failure.finding
    assert again.schedule == found.failure.schedule
    with pytest.raises(RunFailed, match=f"{kind}: .*Cure: replay '{again.schedule}'"):
        found.check()


@pytest.mark.parametrize(("program", "simulation", "kind"), WRONG)
def test_a_planted_mistake_is_found_with_two_preemptions_and_shown_with_no_more(
    program: Callable[[Any], Any], simulation: Simulation, kind: str
) -> None:
    found = exhaust(program, simulation, preemptions=2)
    assert found.failure is not None
    assert found.failure.kind == kind
    assert len(choices_of(found.failure.schedule)) <= found.failure.decisions
    assert len(found.failure.schedule.split()) <= 4


@pytest.mark.parametrize(("program", "simulation"), RIGHT)
def test_nothing_is_found_in_a_right_program_by_chance(program: Callable[[Any], Any], simulation: Simulation) -> None:
    found = explore(program, simulation, schedules=300)
    assert (found.schedules, found.failure) == (300, None)


@pytest.mark.parametrize(("program", "simulation"), RIGHT)
def test_nothing_is_found_in_a_right_program_with_two_preemptions_anywhere(
    program: Callable[[Any], Any], simulation: Simulation
) -> None:
    found = exhaust(program, simulation, preemptions=2)
    assert found.complete
    assert found.failure is None
    assert found.schedules > 1


# ---------------------------------------------------------------------------------------------- all of them


def orders(*counts: int) -> int:
    """In how many orders so many steps of each can be done: the multinomial coefficient."""
    return math.factorial(sum(counts)) // math.prod(map(math.factorial, counts))


@pytest.mark.parametrize("calls", range(5))
def test_two_threads_are_seen_in_each_of_their_orders_once(calls: int) -> None:
    def program(machine: SimulatedMachine) -> None:
        def work() -> None:
            for _ in range(calls):
                machine.now()

        thread = machine.spawn("other", work)
        work()
        thread.join()

    # Each thread is cut into its calls and what is before or after them; the last piece of main only joins.
    found = exhaust(program)
    assert found.complete
    assert found.schedules == orders(calls + 1, calls + 1)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_sleepers_that_wake_at_one_time_are_seen_in_each_order_once(threads: int) -> None:
    seen = set()

    def program(machine: SimulatedMachine) -> None:
        order: list[int] = []

        def work(number: int) -> None:
            machine.spend(10)
            order.append(number)

        threads_ = [machine.spawn(str(n), lambda n=n: work(n)) for n in range(threads)]  # type: ignore[misc]
        joined(threads_)
        seen.add(tuple(order))

    assert exhaust(program).complete
    assert len(seen) == math.factorial(threads)


def test_no_schedule_is_seen_twice_and_none_is_left_out() -> None:
    seen: list[tuple[int, ...]] = []

    def program(machine: SimulatedMachine) -> None:
        order: list[int] = []

        def work(number: int) -> None:
            for _ in range(3):
                order.append(number)
                machine.now()

        joined([machine.spawn(str(n), lambda n=n: work(n)) for n in range(2)])  # type: ignore[misc]
        seen.append(tuple(order))

    found = exhaust(program)
    assert found.complete
    assert len(seen) == found.schedules
    assert len(set(seen)) == orders(3, 3)


def test_a_bound_on_preemptions_sees_fewer_and_all_of_them_with_enough() -> None:
    sizes = [exhaust(counting(True), preemptions=bound).schedules for bound in (0, 1, 2, 3, 40)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[1] < sizes[2] < sizes[3] < sizes[4]
    assert sizes[4] == exhaust(counting(True)).schedules


def test_without_preemptions_the_choices_where_nobody_runs_are_all_seen() -> None:
    seen = set()

    def program(machine: SimulatedMachine) -> None:
        order: list[int] = []

        def work(number: int) -> None:
            order.append(number)
            machine.spend(0)

        joined([machine.spawn(str(n), lambda n=n: work(n)) for n in range(3)])  # type: ignore[misc]
        seen.add(tuple(order))

    assert exhaust(program, preemptions=0).complete
    assert len(seen) == math.factorial(3)


def test_who_was_woken_by_all_is_not_woken_again_by_one() -> None:
    def program(machine: SimulatedMachine) -> None:
        lock, calls, woken = machine.lock(), [0], list[int]()
        condition = machine.condition(lock)

        def wait(number: int) -> None:
            with lock:
                calls[0] += 1
                condition.wait()
                woken.append(number)

        first = machine.spawn("first", lambda: wait(1))
        machine.spend(1)
        with lock:
            condition.notify_all()
        first.join()
        second = machine.spawn("second", lambda: wait(2))
        machine.spend(1)
        with lock:
            condition.notify()
        second.join()
        assert (calls, woken) == ([2], [1, 2])

    found = exhaust(program)
    assert (found.complete, found.failure) == (True, None)


def test_a_walk_that_is_cut_off_does_not_call_itself_complete() -> None:
    told: list[tuple[int, int | None]] = []
    found = exhaust(counting(True), limit=5, progress=lambda done, of: told.append((done, of)))
    assert (found.schedules, found.complete) == (5, False)
    assert told == [(each, None) for each in range(1, 6)]


@pytest.mark.parametrize(("first", "second"), [(2, 1), (1, 2)])
def test_a_program_that_differs_from_run_to_run_is_not_called_seen_whole(first: int, second: int) -> None:
    runs: list[int] = []

    def program(machine: SimulatedMachine) -> None:
        runs.append(1)
        joined(
            [machine.spawn(str(n), lambda: [machine.now(), None][1]) for n in range(first if len(runs) % 2 else second)]
        )

    found = exhaust(program)
    assert not found.complete
    assert found.failure is not None
    assert found.failure.kind == "schedule"
    assert "after the same" in str(found.failure.finding)


# ---------------------------------------------------------------------------------------------- schedules as text


def test_a_schedule_is_text_and_back() -> None:
    for choices in ([], [0, 0, 0], [1], [0, 2, 0, 0, 1], [3] * 5):
        text = text_of(choices)
        kept = choices_of(text)
        assert kept == choices[: len(kept)]
        assert not any(choices[len(kept) :])
    assert text_of([0, 0]) == STRAIGHT
    assert text_of([0, 2, 0, 0, 1]) == "1:2 4:1"


@pytest.mark.parametrize("text", ["1", "1:", ":1", "a:b", "2:1 1:1", "1:1 1:2", "-1:1", "1:0", "99999999999:1"])
def test_a_schedule_that_nobody_printed_is_refused(text: str) -> None:
    with pytest.raises(WrongSchedule, match="copy the whole line"):
        choices_of(text)


@pytest.mark.parametrize("schedule", ["0:9", "900:1"])
def test_a_schedule_of_another_program_is_refused(schedule: str) -> None:
    with pytest.raises(WrongSchedule, match="the program has changed"):
        replay(counting(True), schedule)


def test_one_seed_is_one_schedule_and_seeds_differ() -> None:
    def outcomes(seed: int) -> list[str]:
        strategies = [Chance(seed), Preempting(seed, 2, 60)]
        return [run(pool, strategy, FILED).story() for strategy in strategies]

    assert outcomes(1) == outcomes(1)
    assert outcomes(1) != outcomes(2)
    assert run(pool, Chance(3), FILED).value == 8


def test_a_strategy_preempts_no_more_than_it_says() -> None:
    class Watched(Preempting):
        preempted = 0

        def choose(self, options: int, forced: bool) -> int:
            choice = super().choose(options, forced)
            self.preempted += bool(choice and not forced)
            return choice

    taken = []
    for seed in range(50):
        strategy = Watched(seed, 3, 80)
        assert run(pool, strategy, FILED).finding is None
        taken.append(strategy.preempted)
    assert max(taken) == 3


def test_progress_is_told_of_each_schedule() -> None:
    told: list[tuple[int, int | None]] = []
    explore(counting(True), schedules=7, progress=lambda done, of: told.append((done, of)))
    assert told == [(each, 7) for each in range(1, 8)]


@pytest.mark.nightly
def test_nothing_is_found_in_a_pool_by_twenty_thousand_schedules() -> None:
    found = explore(pool, FILED, schedules=20_000, seed=1)
    assert (found.schedules, found.failure) == (20_000, None)
