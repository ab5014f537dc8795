"""The hunt: run programs until something differs, then shorten it.

Volume comes from seeded loops, where a program costs a fraction of a millisecond; hypothesis looks where the seeds
did not. Whatever is found is shortened by leaving things out as long as the same rule breaks.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator

import attrs
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from expertcache_conformance.adapters import Config, Implementation
from expertcache_conformance.judge import IllFormed, Violation, judge
from expertcache_conformance.program import Operation, Program
from expertcache_conformance.scenarios import Scenario
from expertcache_spec.trace import Event

VOLUME = 200
"""Seeded programs for each scenario and configuration."""
EXAMPLES = 40
"""Hypothesis examples after a volume that found nothing."""
AFTER_FIRST = 60
"""Further programs after the first difference, to see whether other rules break too."""
EFFORT = 60_000
"""Operations that shortening one witness may run."""


def seeded(scenario: Scenario, config: Config, count: int) -> Iterator[Program]:
    """`count` programs of a scenario; the n-th is the same everywhere."""
    for number in range(count):
        rng = random.Random(f"{scenario.__name__} {number}")
        yield scenario(config, rng.randrange)


def survey(programs: Iterable[Program], implementation: Implementation) -> tuple[int, dict[str, Violation]]:
    """How many programs ran, and the shortest violation of each rule that broke."""
    found: dict[str, Violation] = {}
    ran, left = 0, AFTER_FIRST
    for program in programs:
        ran += 1
        violation = judge(program, implementation)
        if violation is not None and (violation.rule not in found or violation.size < found[violation.rule].size):
            found[violation.rule] = violation
        if found:
            left -= 1
            if not left:
                break
    return ran, found


def search(scenario: Scenario, config: Config, implementation: Implementation) -> tuple[int, dict[str, Violation]]:
    """As `survey`, with programs that hypothesis draws; stops at the first rule that breaks."""
    ran = 0
    found: dict[str, Violation] = {}

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )
    @given(st.data())
    def examine(data: st.DataObject) -> None:
        nonlocal ran
        program = scenario(config, lambda n: data.draw(st.integers(0, n - 1)))
        ran += 1
        violation = None if found else judge(program, implementation)
        if violation is not None:
            found[violation.rule] = violation

    examine()
    return ran, found


def shorten(violation: Violation, implementation: Implementation) -> Violation:
    """The same rule broken by less: without operations, rows and experts that it does not need, on a smaller budget."""
    effort = EFFORT

    def attempt(program: Program) -> Violation | None:
        nonlocal effort
        effort -= len(program.operations)
        try:
            again = judge(program, implementation)
        except IllFormed:
            return None
        return again if again is not None and again.rule == violation.rule else None

    best, before = violation, None
    while before != best.size and effort > 0:
        before = best.size
        for candidates in (_fewer_operations, _smaller_events, _smaller_budgets):
            best = _first_that_breaks(best, candidates, attempt, lambda: effort > 0)
    return best


def _first_that_breaks(
    best: Violation,
    candidates: Callable[[Program], Iterator[Program]],
    attempt: Callable[[Program], Violation | None],
    may_go_on: Callable[[], bool],
) -> Violation:
    """Walk the candidates; begin again from each that still breaks the rule."""
    again = True
    while again and may_go_on():
        again = False
        for program in candidates(best.program):
            if not may_go_on():
                break
            if (shorter := attempt(program)) is not None:
                best, again = shorter, True
                break
    return best


def _with(program: Program, operations: tuple[Operation, ...]) -> Program:
    config = program.config
    if config.future is not None:
        config = attrs.evolve(config, future=tuple(o.event for o in operations if o.event is not None))
    return attrs.evolve(program, config=config, operations=operations)


def _fewer_operations(program: Program) -> Iterator[Program]:
    """Without a run of operations: halves first, single ones last, the newest first."""
    operations, width = program.operations, len(program.operations) // 2
    while width:
        for start in range(len(operations) - width, -1, -width):
            yield _with(program, operations[:start] + operations[start + width :])
        width //= 2


def _smaller_events(program: Program) -> Iterator[Program]:
    """With one event a row or an expert smaller."""
    for index, operation in enumerate(program.operations):
        for event in _smaller(operation.event) if operation.event is not None else ():
            smaller = attrs.evolve(operation, event=event)
            yield _with(program, (*program.operations[:index], smaller, *program.operations[index + 1 :]))


def _smaller(event: Event) -> Iterator[Event]:
    plain = Event(event.layer, event.rows, event.stream, event.pass_index, event.phase)
    if event != plain:
        yield plain
    for place in range(len(event.rows)):
        if len(event.rows) > 1:
            yield attrs.evolve(plain, rows=event.rows[:place] + event.rows[place + 1 :])
        row = event.rows[place]
        for expert in row if len(row) > 1 else ():
            kept = tuple(other for other in row if other != expert)
            yield attrs.evolve(plain, rows=(*event.rows[:place], kept, *event.rows[place + 1 :]))


def _smaller_budgets(program: Program) -> Iterator[Program]:
    budget = program.config.budget
    for name in ("slots", "bytes"):
        value = getattr(budget, name)
        for smaller in (value // 2, value - 1) if value else ():
            if 0 < smaller < value:
                yield attrs.evolve(
                    program, config=attrs.evolve(program.config, budget=attrs.evolve(budget, **{name: smaller}))
                )
