"""Questions about schedules: the rules leave when free, and judge what came; the evaluator's own is compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, get_args

import attrs

from expertcache_conformance.answers import Malformed
from expertcache_conformance.bounded import brief
from expertcache_conformance.program import count
from expertcache_conformance.questions.base import Question, Wrong, call, listed, rows, whole
from expertcache_conformance.questions.shrinking import smaller_scenarios, weight
from expertcache_spec.schedule import COMPUTE, Scenario, Schedule, Span, TaskId, make_plan, schedule, violations
from expertcache_spec.schedule.tasks import Kind

KINDS = get_args(Kind)
GUARDED = {"split": "XC-SCHED-011", "staged": "XC-SCHED-012", "pipelined": "XC-SCHED-013"}
"""Discipline that is taken on a threshold and guards, to the rule that says when."""


@attrs.frozen
class Planned:
    """An answer: when the tasks run, or in which order; the sums, None where they are not told."""

    tasks: tuple[tuple[TaskId, Span | None], ...]
    sums: tuple[tuple[int, ...], ...] | None

    @property
    def timed(self) -> bool:
        """Whether it says when; an order alone does not say what waits beside what runs."""
        return all(span is not None for _, span in self.tasks)


@attrs.frozen
class ScheduleQuestion(Question):
    """When all that a scenario calls for runs; `exact` where the evaluator's schedule is claimed."""

    kind: ClassVar[str] = "schedule"
    scenario: Scenario
    exact: bool = False

    @property
    def size(self) -> tuple[int, ...]:
        """Events, keys, and everything else that is not nothing."""
        return weight(self.scenario)

    def ask(self, target: Any) -> Planned:
        """The tasks and sums of the answer."""
        raw = call(target, "plan_schedule", self.scenario)
        tasks, order, sums = (
            raw.get(name) if isinstance(raw, Mapping) else getattr(raw, name, None)
            for name in ("tasks", "order", "sums")
        )
        if (tasks is None) == (order is None) or (tasks is None and self.exact):
            raise Malformed("plan_schedule answers tasks" + (", with their times" if self.exact else " or their order"))
        found: list[tuple[TaskId, Span | None]] = [
            (_task(row), Span(*row[4:]) if tasks is not None else None)
            for row in rows("plan_schedule", order if tasks is None else tasks, "nsnn" if tasks is None else "nsnnnnn")
        ]
        return Planned(tuple(found), None if sums is None else self._sums(sums))

    def _sums(self, raw: Any) -> tuple[tuple[int, ...], ...]:
        events = listed("sums", raw)
        if len(events) != len(self.scenario.loads):
            raise Malformed(f"sums names {len(events)} events, not {len(self.scenario.loads)}")
        return tuple(tuple(whole("sums", slot) for slot in listed("sums", event)) for event in events)

    def judge(self, answer: Planned) -> Wrong | None:
        """Legality first; then, where it is claimed, equality with the evaluator."""
        expected, names = schedule(self.scenario), [task for task, _ in answer.tasks]
        twice = next((task for task, times in Counter(names).items() if times > 1), None)
        got = self._schedule(answer)
        if twice is not None:
            return Wrong("XC-SCHED-001", shown(expected), shown(got), f"{twice} runs twice")
        broken = [each for each in violations(self.scenario, got) if answer.timed or each.rule != "XC-SCHED-014"]
        if broken:
            other = self._under_other_guards(got) if broken[0].rule == "XC-SCHED-001" else None
            rule = broken[0].rule if other is None else GUARDED[self.scenario.discipline.name]
            if rule == "XC-SCHED-001" and self._reads_again(expected, got):
                rule = "XC-SCHED-015"
            note = "; ".join(each.what for each in broken[:3]) + (f": it is a schedule of {other}" if other else "")
            return Wrong(rule, shown(expected), shown(got), note)
        late = [(span.start, task) for task, span in expected.spans.items() if got.spans[task][:2] != span[:2]]
        if self.exact and late:
            return Wrong("XC-SCHED-007", shown(expected), shown(got), f"{min(late)[1]} runs at another time")
        return None

    def left_open(self, answer: Planned) -> Mapping[str, str]:
        """Sums that are not told, and what an order does not say."""
        untold = {"XC-SCHED-009": "no answer tells its sums"} if answer.sums is None else {}
        return (
            untold if answer.timed else untold | {"XC-SCHED-014": "no answer tells times, and an order has no waiting"}
        )

    def _schedule(self, answer: Planned) -> Schedule:
        """What was told as a schedule; an order is one task after the other."""
        spans: dict[TaskId, Span] = {}
        now, storage = 0, self.scenario.storage
        sizes = {task.id: task for task in make_plan(self.scenario).tasks}
        for task, span in answer.tasks:
            known = sizes.get(task)
            took = 0 if known is None else known.duration + known.transfer * storage.divisor(1)
            alone = Span(now, now + took, 0 if task.kind == "read" else COMPUTE)
            spans[task] = alone if span is None else span
            now += took
        slots = tuple(tuple(range(len(load.keys))) for load in self.scenario.loads)
        return Schedule(spans, slots if answer.sums is None else answer.sums)

    def _reads_again(self, expected: Schedule, got: Schedule) -> bool:
        """Whether every task runs, and what runs beside them is reads of guesses that are on their way already."""
        guesses = {
            (event, "read", len(load.keys) + place)
            for event, load in enumerate(self.scenario.loads)
            for place in range(len(load.prefetches))
        }
        more = got.spans.keys() - expected.spans.keys()
        lacking = expected.spans.keys() - got.spans.keys()
        guesses -= {task[:3] for task in expected.spans}  # those are read, for the first time
        return bool(more) and not lacking and {task[:3] for task in more} <= guesses

    def _under_other_guards(self, got: Schedule) -> str | None:
        """Under which other threshold or guards the schedule is legal; None if under none."""
        discipline = self.scenario.discipline
        if discipline.name not in GUARDED:
            return None
        for name in ("threshold", "tokens", "entries"):
            for step in (-1, 1):
                value = getattr(discipline, name) + step
                if value >= (name == "threshold"):
                    other = attrs.evolve(discipline, **{name: value})
                    if not violations(attrs.evolve(self.scenario, discipline=other), got):
                        return f"{discipline.name} with {name} {value}, not {value - step}"
        return None

    def smaller(self) -> Iterator[ScheduleQuestion]:
        """The same of smaller scenarios."""
        return (attrs.evolve(self, scenario=less) for less in smaller_scenarios(self.scenario))

    def encode(self) -> dict[str, Any]:
        """The scenario, field by field."""
        return {
            "exact": self.exact,
            "loads": [
                attrs.asdict(load, recurse=False) | {"missing": sorted(load.missing)} for load in self.scenario.loads
            ],
            "records": [[list(request) for request in record] for record in self.scenario.records],
            **{name: attrs.asdict(getattr(self.scenario, name)) for name in ("costs", "storage", "discipline")},
        }

    def __str__(self) -> str:
        case = self.scenario
        guards = "".join(f", {name} {n}" for name in ("tokens", "entries") if (n := getattr(case.discipline, name)))
        under = f"{case.discipline}{guards}, requests by {case.discipline.reads}"
        head = f"plan_schedule: {count(len(case.loads), 'event')} under {under}"
        told = [f"{name}: {_numbers(getattr(case, name))}" for name in ("costs", "storage")]
        told += [f"records: {'; '.join(', '.join(f'{stage} {size}' for stage, size in each) for each in case.records)}"]
        for event, load in enumerate(case.loads):
            parts = (("reads", sorted(load.missing)), ("victims", load.victims), ("prefetches", load.prefetches))
            keys = "".join(f"; {name} {_keys(keys)}" for name, keys in parts if keys)
            facts = "".join(f", {name} {n}" for name in ("stream", "tokens", "entries") if (n := getattr(load, name)))
            told.append(f"event {event}: slots {_keys(load.keys)}{keys}{facts}")
        return "\n  ".join([head, *told])


def _task(row: tuple[Any, ...]) -> TaskId:
    if row[1] not in KINDS:
        raise Malformed(f"plan_schedule holds a task of kind {brief(row[1])}, none of {', '.join(KINDS)}")
    return TaskId(*row[:4])


def shown(found: Schedule) -> list[str]:
    """The schedule in lines, in the order in which things happen."""
    ordered = sorted(found.spans.items(), key=lambda pair: (pair[1][:2], pair[0].event, KINDS.index(pair[0].kind)))
    lines = [
        f"{span.start}-{span.end} {'queue' if span.lane == COMPUTE else f'worker {span.lane}'}: "
        f"event {task.event} {task.kind} {task.place}" + (f".{task.part}" if task.kind == "read" else "")
        for task, span in ordered
    ]
    return [*lines, *(f"event {event} adds {list(slots)}" for event, slots in enumerate(found.sums))]


def _numbers(record: Any) -> str:
    told = [f"{name} {value}" for name, value in attrs.asdict(record).items() if value]
    return ", ".join(told) or "nothing"


def _keys(keys: Any) -> str:
    return " ".join(f"({layer},{expert})" for layer, expert in keys)
