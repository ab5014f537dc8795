"""Schedules: when reads and compute happen once the residency machine has decided what happens.

Read `costs`, `work`, `tasks`, `disciplines`, then the two sides: `plan`, `sharing`, `evaluate` construct a schedule,
`look`, `legal`, `legal_reads`, `eager` say what one is; last `measures` and `crossover`.
"""

from expertcache_spec.schedule.costs import Costs, InvalidSchedule, Record, Request, Storage, divided
from expertcache_spec.schedule.crossover import best_threshold, pays, read_wall, split_gain
from expertcache_spec.schedule.disciplines import Discipline, ds4_split, parse_discipline
from expertcache_spec.schedule.evaluate import evaluate, schedule
from expertcache_spec.schedule.legal import Violation, violations
from expertcache_spec.schedule.measures import Bounds, Breakdown, bounds, breakdown
from expertcache_spec.schedule.plan import Scenario, make_plan
from expertcache_spec.schedule.tasks import COMPUTE, Plan, Schedule, Span, Task, TaskId
from expertcache_spec.schedule.work import Load, load_of, loads

__all__ = [
    "COMPUTE", "Bounds", "Breakdown", "Costs", "Discipline", "InvalidSchedule", "Load", "Plan", "Record", "Request",
    "Scenario", "Schedule", "Span", "Storage", "Task", "TaskId", "Violation", "best_threshold", "bounds", "breakdown",
    "divided", "ds4_split", "evaluate", "load_of", "loads", "make_plan", "parse_discipline", "pays", "read_wall",
    "schedule", "split_gain", "violations",
]  # fmt: skip
