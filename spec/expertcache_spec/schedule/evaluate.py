"""Evaluate: the one schedule of a plan, deterministic and in exact integers. The constructive side of the chapter.

One compute queue; as many I/O workers as the storage says. Whatever can start, starts: the first task in queue order
on the compute queue; on the workers, once all that ends at the instant has ended, the first demand read, and a
speculative one only where no demand read waits. What has started is not interrupted, so that speculation delays demand
by no more than the requests in service.
"""

from __future__ import annotations

from heapq import heappop, heappush

import attrs

from expertcache_spec.schedule.costs import InvalidSchedule, Storage
from expertcache_spec.schedule.plan import Scenario, make_plan
from expertcache_spec.schedule.sharing import Sharing
from expertcache_spec.schedule.tasks import COMPUTE, Plan, Schedule, Span, Task, TaskId


def schedule(scenario: Scenario) -> Schedule:
    """The scenario's plan, evaluated."""
    return evaluate(make_plan(scenario), scenario.storage)


def evaluate(plan: Plan, storage: Storage) -> Schedule:
    """Start and end of every task of the plan (XC-SCHED-007).

    Raises `InvalidSchedule` where tasks wait for each other in a circle, or for one that is not there.
    """
    run = _Run(plan, storage)
    running = True
    while running:
        run.start_all()
        running = run.go_on()
    if len(run.spans) < len(plan.tasks):
        stuck = next(task.id for task in plan.tasks if task.id not in run.spans)
        raise InvalidSchedule(f"{stuck} waits for ever", where="plan", cure="let no task wait for itself")
    return Schedule(run.spans, plan.sums)


@attrs.define
class _Run:
    """One evaluation. Queues hold ranks; `timed` holds (when, rank) of compute ends and of ends of latency."""

    plan: Plan
    storage: Storage
    sharing: Sharing = attrs.field(init=False)
    now: int = 0
    compute: list[int] = attrs.field(factory=list)
    demand: list[int] = attrs.field(factory=list)
    speculation: list[int] = attrs.field(factory=list)
    queue_is_idle: bool = True
    idle_workers: list[int] = attrs.field(init=False)
    timed: list[tuple[int, int]] = attrs.field(factory=list)
    started: dict[TaskId, tuple[int, int]] = attrs.field(factory=dict)
    spans: dict[TaskId, Span] = attrs.field(factory=dict)
    lacking: dict[TaskId, int] = attrs.field(init=False)
    followers: dict[TaskId, list[Task]] = attrs.field(factory=dict)
    promotes: dict[TaskId, list[Task]] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.sharing, self.idle_workers = Sharing(self.storage), list(range(self.storage.workers))
        self.lacking = {task.id: len(task.after) for task in self.plan.tasks}
        for task in self.plan.tasks:
            for before in task.after:
                self.followers.setdefault(before, []).append(task)
            if task.wanted is not None:
                self.promotes.setdefault(task.wanted, []).append(task)
            if not task.after:
                self._offer(task)

    def _offer(self, task: Task) -> None:
        """Queue a task whose dependencies have ended."""
        wanted = not task.speculative or task.wanted in self.spans
        queue = self.compute if not task.is_read else self.demand if wanted else self.speculation
        heappush(queue, self.plan.rank[task.id])

    def start_all(self) -> None:
        """Start everything that can start now."""
        while self.queue_is_idle and self.compute:
            self.queue_is_idle = False
            self._start(self.plan.tasks[heappop(self.compute)], COMPUTE)
        for queue in (self.demand, self.speculation):
            while self.idle_workers and queue:
                if self.timed and self.timed[0][0] == self.now:
                    return  # what takes no time may still bring a request that goes first (XC-SCHED-007)
                task = self.plan.tasks[heappop(queue)]
                if task.id not in self.started:  # a promoted read stands in both queues
                    self._start(task, heappop(self.idle_workers))

    def _start(self, task: Task, lane: int) -> None:
        self.started[task.id] = (self.now, lane)
        heappush(self.timed, (self.now + task.duration, self.plan.rank[task.id]))

    def go_on(self) -> bool:
        """Let time pass to the next instant at which something ends; False where nothing runs."""
        instants = [self.timed[0][0] - self.now] if self.timed else []
        if self.sharing.left:
            instants.append(self.sharing.ends_in())
        if not instants:
            return False
        elapsed = min(instants)
        self.now += elapsed
        for done in self.sharing.advance(elapsed):
            self._end(self.plan.tasks[self.plan.rank[done]])
        while self.timed and self.timed[0][0] == self.now:
            task = self.plan.tasks[heappop(self.timed)[1]]
            if task.transfer:
                self.sharing.begin(task.id, task.transfer)
            else:
                self._end(task)
        return True

    def _end(self, task: Task) -> None:
        start, lane = self.started[task.id]
        self.spans[task.id] = Span(start, self.now, lane)
        if lane == COMPUTE:
            self.queue_is_idle = True
        else:
            heappush(self.idle_workers, lane)
        for read in self.promotes.get(task.id, ()):
            if not self.lacking[read.id]:
                heappush(self.demand, self.plan.rank[read.id])  # XC-SCHED-014
        for follower in self.followers.get(task.id, ()):
            self.lacking[follower.id] -= 1
            if not self.lacking[follower.id]:
                self._offer(follower)
