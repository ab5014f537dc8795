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
from expertcache_conformance.answers import Answer, Crashed
from expertcache_conformance.judge import IllFormed, Violation, judge
from expertcache_conformance.program import Operation, Program
from expertcache_conformance.scenarios import Scenario
from expertcache_spec.model import Budget
from expertcache_spec.trace import Event

VOLUME = 120
"""Seeded programs for each scenario and configuration."""
EXAMPLES = 20
"""Hypothesis examples after a volume that found nothing."""
AFTER_FIRST = 100
"""Further programs after the first difference, to see whether other rules break too."""
EFFORT = 5_000
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
    """The same rule broken in the same way by less: without what it does not need, on a smaller budget.

    In the same way: the answers first differ in the same field, of which a refusal is one.
    """
    best, effort, kind = violation, EFFORT, _kind(violation)

    def breaks(program: Program) -> bool:
        nonlocal best, effort
        if effort <= 0:
            return False
        effort -= len(program.operations) + 1
        try:
            again = judge(program, implementation)
        except (IllFormed, Crashed):  # of a caller who does what no caller may, nothing is to be learned
            return False
        if again is None or again.rule != violation.rule or _kind(again) != kind:
            return False
        best = again
        return True

    before = None
    while before != best.size and effort > 0:
        before = best.size
        _shrink_budget(lambda: best.program, breaks)
        _drop_operations(lambda: best.program, breaks)
        _shrink_events(lambda: best.program, breaks)
    return best


def _kind(violation: Violation) -> str:
    """The field in which the answers differ first; a refusal counts for all of them."""
    one, two = violation.expected, violation.got
    if one.error or two.error:
        return "error"
    names = [field.name for field in attrs.fields(Answer)]
    return next((name for name in names if getattr(one, name) != getattr(two, name)), "")


def _shrink_budget(current: Callable[[], Program], breaks: Callable[[Program], bool]) -> None:
    """Halve the budget while the rule still breaks, then take off one at a time."""
    for name in ("slots", "bytes"):
        for halve in (True, False):
            while value := getattr(current().config.budget, name):
                smaller = attrs.evolve(current().config.budget, **{name: value // 2 if halve else value - 1})
                if smaller.is_zero or not breaks(_with_budget(current(), smaller)):
                    break


def _with_budget(program: Program, budget: Budget) -> Program:
    return attrs.evolve(program, config=attrs.evolve(program.config, budget=budget))


def _drop_operations(current: Callable[[], Program], breaks: Callable[[Program], bool]) -> None:
    """Leave out runs of operations, wide ones first, from the end to the front."""
    width = len(current().operations) // 2
    while width:
        end = len(current().operations) - 1  # the last one is where the rule breaks
        while end > 0:
            operations = current().operations
            start = max(0, end - width)
            breaks(_with(current(), operations[:start] + operations[end:]))
            end = start
        width //= 2


def _shrink_events(current: Callable[[], Program], breaks: Callable[[Program], bool]) -> None:
    """Leave out rows and experts, event by event."""
    for index in range(len(current().operations) - 1, -1, -1):
        again = True
        while again:
            operations = current().operations
            again = index < len(operations) and any(
                breaks(_with(current(), (*operations[:index], smaller, *operations[index + 1 :])))
                for smaller in _smaller_operations(operations[index])
            )


def _with(program: Program, operations: tuple[Operation, ...]) -> Program:
    config = program.config
    if config.future is not None:
        config = attrs.evolve(config, future=tuple(o.event for o in operations if o.event is not None))
    return attrs.evolve(program, config=config, operations=operations)


def _smaller_operations(operation: Operation) -> Iterator[Operation]:
    for event in _smaller(operation.event) if operation.event is not None else ():
        yield attrs.evolve(operation, event=event)


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
