"""Many runs of one program, each by another schedule, until one fails or all have been seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from expertcache_reference.system.simulated.machine import Simulation
from expertcache_reference.system.simulated.running import Outcome, Program, run
from expertcache_reference.system.simulated.schedules import (
    Chance,
    Preempting,
    Replay,
    Strategy,
    Systematic,
    choices_of,
    text_of,
)
from expertcache_reference.system.simulated.tasks import Finding

Progress = Callable[[int, int | None], object]
"""Called with how many schedules have run, and of how many (None: nobody knows)."""


@attrs.frozen
class Exploration:
    """What was seen in so many runs.

    complete: whether they are all that there are. failure: the first run that broke something, by the shortest
    schedule found that breaks it in the same way.
    """

    schedules: int
    complete: bool
    failure: Outcome | None

    def check(self) -> None:
        """Raises `RunFailed` if something is wrong."""
        if self.failure is not None:
            self.failure.check()


def explore(
    program: Program,
    simulation: Simulation | None = None,
    *,
    schedules: int = 10_000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Exploration:
    """Run by so many schedules, half by chance and half with one to four preemptions; stops at the first failure."""
    decisions = 1
    for number in range(schedules):
        drawn = f"{seed}/{number}"
        strategy: Strategy = Chance(drawn) if number % 2 else Preempting(drawn, 1 + number // 2 % 4, decisions)
        outcome = run(program, strategy, simulation)
        decisions = max(decisions, outcome.decisions)
        if progress is not None:
            progress(number + 1, schedules)
        if outcome.finding is not None:
            return Exploration(number + 1, False, shortened(program, outcome, simulation))
    return Exploration(schedules, False, None)


def exhaust(
    program: Program,
    simulation: Simulation | None = None,
    *,
    preemptions: int | None = None,
    limit: int = 1_000_000,
    progress: Progress | None = None,
) -> Exploration:
    """Run by every schedule there is, depth first (with at most so many preemptions, if given), or the first `limit`.

    Each run takes other choices than all before: the walk increments the last decision that has an option left, as
    an odometer does, and is complete when none has. A program that decides otherwise from run to run is a finding.
    """
    prefix: list[tuple[int, int]] = []
    for number in range(1, limit + 1):
        strategy = Systematic(prefix, preemptions)
        outcome = run(program, strategy, simulation)
        if outcome.finding is None and (why := strategy.strayed()):
            outcome = attrs.evolve(outcome, finding=Finding("schedule", why))
        if progress is not None:
            progress(number, None)
        if outcome.finding is not None:
            return Exploration(number, False, shortened(program, outcome, simulation))
        following = strategy.following()
        if following is None:
            return Exploration(number, True, None)
        prefix = following
    return Exploration(limit, False, None)


def shorter(choices: list[int]) -> Iterator[list[int]]:
    """Schedules with fewer choices other than 0: cut off in the middle, then with one less."""
    taken = [at for at, choice in enumerate(choices) if choice]
    cut = len(taken) // 2
    while 0 < cut < len(taken):
        yield choices[: taken[cut]]
        cut += (len(taken) - cut + 1) // 2 if cut + 1 < len(taken) else 1
    for at in reversed(taken):
        yield [*choices[:at], 0, *choices[at + 1 :]]


def shortened(program: Program, outcome: Outcome, simulation: Simulation | None, most_runs: int = 200) -> Outcome:
    """A run that breaks something of the same kind by the fewest choices, as far as `most_runs` tries find it."""
    runs, better = 0, outcome.kind != "schedule"
    while better:
        better = False
        for choices in shorter(choices_of(outcome.schedule)):
            runs += 1
            if runs > most_runs:
                return outcome
            again = run(program, Replay(choices, lenient=True), simulation)
            fewer = len(again.schedule.split()) < len(outcome.schedule.split()) or again.schedule == text_of(())
            if fewer and again.kind == outcome.kind:
                outcome, better = again, outcome.schedule != again.schedule
                break
    return outcome
