"""The planners of schedules. Each changes what the specification's plan makes a task wait for, or the order of tasks.

The evaluator runs the rest, so that nothing is wrong but what the sentence says.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np

from expertcache_conformance.adapters.planning import DISCIPLINES
from expertcache_conformance.miniatures.planner import planner
from expertcache_conformance.questions.schedules import KINDS
from expertcache_spec.schedule import Plan, Scenario, Task, TaskId, evaluate, make_plan
from expertcache_spec.schedule.work import adoptions


def changed(request: Scenario, change: Callable[[Task], Task], sums: Any = None) -> dict[str, Any]:
    """The evaluator's answer to the plan with every task changed."""
    plan = make_plan(request)
    return told(request, Plan(tuple(map(change, plan.tasks)), plan.sums), sums)


def told(request: Scenario, plan: Plan, sums: Any = None) -> dict[str, Any]:
    """The answer that an evaluated plan makes."""
    found = evaluate(plan, request.storage)
    return {"tasks": [(*task, *span) for task, span in found.spans.items()], "sums": sums or found.sums}


EVERY = list(DISCIPLINES)


OF_DISCIPLINES = ("XC-SCHED-010", "XC-SCHED-011", "XC-SCHED-012", "XC-SCHED-013")


@planner("bvi#3; ds4 section 4.3", "XC-SCHED-005", *OF_DISCIPLINES, disciplines=EVERY)
def read_after_compute(request: Scenario) -> dict[str, Any]:
    """No work waits for the bytes that it reads."""

    def change(task: Task) -> Task:
        waits = task.after if task.is_read else {each for each in task.after if each.kind != "read"}
        return attrs.evolve(task, after=frozenset(waits))

    return changed(request, change)


@planner("llama.cpp#23170", "XC-SCHED-005", disciplines=EVERY)
def hit_on_a_record_in_flight(request: Scenario) -> dict[str, Any]:
    """Work on a record that an earlier event is still reading does not wait for it."""

    def change(task: Task) -> Task:
        waits = {each for each in task.after if task.is_read or each.kind != "read" or each.event == task.id.event}
        return attrs.evolve(task, after=frozenset(waits))

    return changed(request, change)


@planner("ds4#1082", "XC-SCHED-009", disciplines=EVERY)
def combine_by_arrival(request: Scenario) -> dict[str, Any]:
    """The results are added in the order in which they were computed, what was missing last."""
    arrived = [[*load.present, *load.absent] for load in request.loads]
    return changed(request, lambda task: task, arrived)


@planner("field report, threshold 3 to 1", "XC-SCHED-011", disciplines=["split"])
def threshold_off_by_one(request: Scenario) -> dict[str, Any]:
    """Split is taken from one missing record more than the threshold on."""
    late = attrs.evolve(request.discipline, threshold=request.discipline.threshold + 1)
    return told(request, make_plan(attrs.evolve(request, discipline=late)))


@planner("slotstream; ProMoE", "XC-SCHED-014", disciplines=EVERY)
def speculation_before_demand(request: Scenario) -> dict[str, Any]:
    """One queue for all reads, the speculative ones of an event at its head."""
    plan = make_plan(request)
    tasks = [attrs.evolve(task, speculative=False, wanted=None) for task in plan.tasks]
    guesses = {task.id for task in plan.tasks if task.speculative}
    return told(request, Plan(tuple(sorted(tasks, key=lambda task: task.id not in guesses)), plan.sums))


@planner("k3-out-of-core#32; slotstream", "XC-SCHED-015", disciplines=EVERY)
def reads_what_is_on_its_way(request: Scenario) -> dict[str, Any]:
    """Two queues that do not know of each other: a guess is read, and read again by the event that misses it."""
    plan, again = make_plan(request), []
    for (event, place), adopter in adoptions(request.loads).items():
        load = request.loads[event]
        for part, each in enumerate(request.record(load.prefetches[place]) if adopter is not None else ()):
            task = TaskId(event, "read", len(load.keys) + place, part)
            wait, transfer = request.storage.wait, request.storage.transfer(each.bytes)
            again.append(Task(task, wait, frozenset({TaskId(event, "route")}), transfer, speculative=True))
    return told(request, Plan((*plan.tasks, *again), plan.sums))


@planner("ds4#384", "XC-SCHED-006", disciplines=EVERY)
def lease_ended_at_encode(request: Scenario) -> dict[str, Any]:
    """A victim's room is written to when the work on the victim has been launched, not when it has executed."""

    def change(task: Task) -> Task:
        if not task.is_read:
            return task
        waits = {TaskId(each.event, "dispatch") if each.kind == "combine" else each for each in task.after}
        return attrs.evolve(task, after=frozenset(waits))

    return changed(request, change)


@planner("field report, threshold 3 to 1", "XC-SCHED-001", disciplines=EVERY)
def launches_for_nothing(request: Scenario) -> dict[str, Any]:
    """Launching a batch takes no time."""
    return changed(request, lambda task: attrs.evolve(task, duration=0) if task.id.kind == "dispatch" else task)


@planner("Flash-MoE cachebench", "XC-SCHED-003", disciplines=EVERY)
def bandwidth_for_every_worker(request: Scenario) -> dict[str, Any]:
    """Every worker reads at the whole bandwidth, however many there are."""

    def change(task: Task) -> Task:
        return attrs.evolve(task, duration=task.duration + task.transfer, transfer=0) if task.is_read else task

    return changed(request, change)


@planner("ds4#623", "XC-SCHED-001", "XC-SCHED-003", disciplines=EVERY)
def every_layer_is_like_the_first(request: Scenario) -> dict[str, Any]:
    """All records are read as those of the first layer are."""
    alike = attrs.evolve(request, records=request.records[:1])
    return told(request, make_plan(alike))


@planner("Crow#86", "XC-SCHED-003", disciplines=EVERY)
def warm_pages_are_read_cold(request: Scenario) -> dict[str, Any]:
    """What the page cache answers takes as long as what comes from the device."""
    cold = attrs.evolve(request, storage=attrs.evolve(request.storage, warm_percent=0))
    return told(cold, make_plan(cold))


@planner("expertcache", "XC-SCHED-007", capabilities=["schedule", "evaluator"], disciplines=EVERY)
def requests_in_an_order_of_its_own(request: Scenario) -> dict[str, Any]:
    """Requests are queued record by record whatever the scenario says: legal, and not what an evaluator answers."""
    own = attrs.evolve(request, discipline=attrs.evolve(request.discipline, reads="record"))
    return told(request, make_plan(own))


@planner("expertcache", "XC-SCHED-007", capabilities=["evaluator"], disciplines=EVERY)
def evaluator_that_waits(request: Scenario) -> dict[str, Any]:
    """Every event begins a nanosecond after it could: legal, and not what an evaluator answers."""
    route = {TaskId(event, "route") for event in range(len(request.loads))}
    answer = changed(request, lambda task: attrs.evolve(task, duration=task.duration + (task.id in route)))
    answer["tasks"] = [(*row[:4], row[4] + (row[1] == "route"), *row[5:]) for row in answer["tasks"]]
    return answer


# ------------------------------------------------------------------------------------------------ odd and legal


@planner("engines that know no clock", disciplines=EVERY)
def order_without_times(request: Scenario) -> dict[str, Any]:
    """Only the order of the tasks is told, and no sums: one task after the other."""
    spans = evaluate(make_plan(request), request.storage).spans
    begun = sorted(spans.items(), key=lambda pair: (pair[1][:2], pair[0].event, KINDS.index(pair[0].kind)))
    return {"order": [tuple(task) for task, _ in begun]}


@planner("an engine with a slow first token", disciplines=EVERY)
def waits_before_it_begins(request: Scenario) -> SimpleNamespace:
    """Everything happens a millisecond late, on numbers of numpy, in an object: legal, as nothing says how soon."""
    spans = evaluate(make_plan(request), request.storage).spans
    rows = [
        (*task, np.int64(span.start + 10**6), np.int64(span.end + 10**6), span.lane) for task, span in spans.items()
    ]
    return SimpleNamespace(tasks=iter(rows), sums=None)
