"""The plan of a scenario: every task with what it must wait for. The constructive side; `legal` states it again.

What the data impose: experts are known when the event's route has ended; a stage waits for the bytes that it reads,
whoever reads them; a read into the room of a victim waits until every event that leases the victim has executed. What
a stream imposes: an event follows the combine of the event before it. What the replay imposes: events are selected in
its order. The discipline adds its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from expertcache_spec.model import Key
from expertcache_spec.schedule.costs import Costs, InvalidSchedule, Record, Request, Storage
from expertcache_spec.schedule.disciplines import Batch, Discipline
from expertcache_spec.schedule.tasks import Plan, Task, TaskId
from expertcache_spec.schedule.work import Load, adoptions


@attrs.frozen(slots=False)
class Scenario:
    """All that a schedule depends on.

    loads: the events, in the order of the replay. records: the requests that read a record, by layer; one entry
    stands for all layers. costs: of the compute queue. storage: of the reads. discipline: what is added.
    """

    loads: tuple[Load, ...]
    records: tuple[Record, ...]
    costs: Costs = attrs.field(factory=Costs)
    storage: Storage = attrs.field(factory=Storage)
    discipline: Discipline = attrs.field(factory=Discipline)

    def __attrs_post_init__(self) -> None:
        last = max((key.layer for load in self.loads for key in (*load.keys, *load.prefetches)), default=0)
        if not self.loads or not (len(self.records) == 1 or len(self.records) > last):
            raise InvalidSchedule(
                f"{len(self.loads)} events, {len(self.records)} records",
                where="scenario",
                cure="give at least one event, and one record for all layers or one for each",
            )

    def record(self, key: Key) -> Record:
        """The requests that read that record."""
        return self.records[key.layer if len(self.records) > 1 else 0]

    def requests(self, event: int, slot: int) -> list[tuple[TaskId, Request]]:
        """The event's own reads of a missing slot."""
        record = self.record(self.loads[event].keys[slot])
        return [(TaskId(event, "read", slot, number), request) for number, request in enumerate(record)]


@attrs.define
class _History:
    """Who brought a record last, by demand or on speculation, and which events have leased it since."""

    brought: dict[Key, list[TaskId]] = attrs.field(factory=dict)
    guessed: dict[Key, list[TaskId]] = attrs.field(factory=dict)
    """The reads of the latest guess that no event adopts: no other read of its record begins beside them."""
    leased: dict[Key, list[int]] = attrs.field(factory=dict)
    latest: dict[int, int] = attrs.field(factory=dict)

    def room(self, load: Load) -> set[TaskId]:
        """What must have ended before the victims' room may be written to (XC-SCHED-006)."""
        found: set[TaskId] = set()
        for key in load.victims:
            found.update(TaskId(event, "combine") for event in self.leased.pop(key, ()))
            found.update(self.brought.pop(key, ()))
        return found

    def guess(self, key: Key, reads: list[TaskId], adopted: bool) -> None:
        """Book a speculative read."""
        self.brought[key], self.leased[key] = reads, []
        if not adopted:
            self.guessed[key] = reads

    def lease(self, scenario: Scenario, event: int) -> None:
        """Book the event's reads and leases."""
        load = scenario.loads[event]
        for slot, key in enumerate(load.keys):
            if key in load.missing:
                self.brought[key] = [task for task, _ in scenario.requests(event, slot)]
                self.leased[key] = []
            self.leased.setdefault(key, []).append(event)
        self.latest[load.stream] = event


def make_plan(scenario: Scenario) -> Plan:
    """Every task of the scenario, in queue order: event by event, what is needed first before what comes after."""
    history, issued = _History(), adoptions(scenario.loads)
    early = {(event, key) for (by, place), event in issued.items() if event is not None
             for key in (scenario.loads[by].prefetches[place],)}  # fmt: skip
    tasks: list[Task] = []
    for event, load in enumerate(scenario.loads):
        slots = [slot for slot in load.absent if (event, load.keys[slot]) not in early]
        room = history.room(load).union(*(history.guessed.get(load.keys[slot], ()) for slot in slots))
        tasks.append(_route(scenario, event, history))
        tasks += _reads(scenario, event, room, slots)
        tasks += _speculation(scenario, event, issued, history)
        history.lease(scenario, event)
        tasks += _compute(scenario, event, history)
    return Plan(tuple(tasks), tuple(tuple(range(len(load.keys))) for load in scenario.loads))


def _route(scenario: Scenario, event: int, history: _History) -> Task:
    before = history.latest.get(scenario.loads[event].stream)
    after = {TaskId(event - 1, "route")} if event else set()
    if before is not None:
        after.add(TaskId(before, "combine"))
    return Task(TaskId(event, "route"), scenario.costs.route, frozenset(after))


def _read(
    scenario: Scenario, task: TaskId, request: Request, after: Iterable[TaskId], **how: TaskId | bool | None
) -> Task:
    storage = scenario.storage
    return Task(task, storage.wait, frozenset(after), storage.transfer(request.bytes), **how)  # type: ignore[arg-type]


def _reads(scenario: Scenario, event: int, room: set[TaskId], slots: list[int]) -> Iterator[Task]:
    """The event's demand reads, record by record or stage by stage."""
    after = {TaskId(event, "route"), *room}
    pairs = [pair for slot in slots for pair in scenario.requests(event, slot)]
    if scenario.discipline.reads == "stage":
        pairs.sort(key=lambda pair: pair[1].stage == "down")
    return (_read(scenario, task, request, after) for task, request in pairs)


def _speculation(
    scenario: Scenario, event: int, issued: dict[tuple[int, int], int | None], history: _History
) -> Iterator[Task]:
    """The speculative reads that the event issues; an adopted one bears the name of the read that it becomes."""
    load = scenario.loads[event]
    for place, key in enumerate(load.prefetches):
        if (event, place) not in issued:
            continue
        target = issued[event, place]
        if target is None:
            wanted, name = None, TaskId(event, "read", len(load.keys) + place)
        else:
            wanted = TaskId(target, "route")
            name = TaskId(target, "read", scenario.loads[target].keys.index(key))
        reads = [name._replace(part=number) for number in range(len(scenario.record(key)))]
        after = [TaskId(event, "route"), *history.guessed.get(key, ())]
        for task, request in zip(reads, scenario.record(key), strict=True):
            yield _read(scenario, task, request, after, speculative=True, wanted=wanted)
        history.guess(key, reads, target is not None)


def _compute(scenario: Scenario, event: int, history: _History) -> Iterator[Task]:
    """The event's batches and its combine."""
    load, costs = scenario.loads[event], scenario.costs
    every, ordered = range(len(load.keys)), scenario.discipline.in_sequence(load)
    before: set[TaskId] = set()
    for number, batch in enumerate(scenario.discipline.batches(load)):
        launch = TaskId(event, "dispatch", number)
        after = {TaskId(event, "route"), *before, *_needs(scenario, event, batch)}
        yield Task(launch, costs.dispatch + (costs.handoff if number else 0), frozenset(after))
        before = {launch} if ordered else set()
        for slot in batch.gate_up:
            own = _bytes(scenario, event, slot, "gate_up", history)
            yield Task(TaskId(event, "gate_up", slot), costs.gate_up, frozenset({launch, *own}))
        for slot in batch.down:
            own = _bytes(scenario, event, slot, "down", history)
            firsts = {TaskId(event, "gate_up", each) for each in (every if ordered else (slot,))}
            yield Task(TaskId(event, "down", slot), costs.down, frozenset({launch, *own, *firsts}))
        if ordered:
            before |= {TaskId(event, "gate_up", slot) for slot in batch.gate_up}
            before |= {TaskId(event, "down", slot) for slot in batch.down}
    yield Task(TaskId(event, "combine"), costs.combine, frozenset(TaskId(event, "down", slot) for slot in every))


def _needs(scenario: Scenario, event: int, batch: Batch) -> set[TaskId]:
    """The reads that the discipline wants ended before the batch is launched."""
    slots = {*batch.gate_up, *batch.down} if batch.needs == "own" else set(scenario.loads[event].absent)
    if batch.needs == "nothing":
        return set()
    return {
        task
        for slot in slots
        for task, request in scenario.requests(event, slot)
        if batch.needs != "gate_up" or request.stage == "gate_up"
    }


def _bytes(scenario: Scenario, event: int, slot: int, stage: str, history: _History) -> list[TaskId]:
    """The reads that bring the stage's bytes: of its own record by stage, of somebody else's the whole record."""
    load = scenario.loads[event]
    if load.keys[slot] not in load.missing:
        return history.brought.get(load.keys[slot], [])
    return [task for task, request in scenario.requests(event, slot) if request.stage == stage]
