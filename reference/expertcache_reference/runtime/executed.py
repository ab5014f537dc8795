"""The executed schedule: what the runtime does with a scenario, and when, on a simulated machine in virtual time.

The reads are the reader's, the leases and the waiting the runtime's, the batches those that it hands out. Only what a
caller does is done here: to route, to compute what has been handed out on the one compute queue, to combine, and to
ask for records on speculation. Read `scripted` and `timed` first.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from expertcache_reference.runtime.batches import Batch, discipline_of
from expertcache_reference.runtime.patterns import PatternStore
from expertcache_reference.runtime.records import DOWN
from expertcache_reference.runtime.timed import ExecutedRuntime
from expertcache_reference.runtime.work import Work
from expertcache_reference.system.simulated import Device, SimulatedMachine, Simulation, simulated
from expertcache_spec.content import pattern
from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.layout.kinds import packed_layers
from expertcache_spec.layout.placing import Shape, written
from expertcache_spec.model import Geometry, Key
from expertcache_spec.schedule import COMPUTE, Scenario, Span, TaskId
from expertcache_spec.trace import Event

MODEL = "executed"


class Execution:
    """One run of a scenario: a thread for each stream, one compute queue."""

    def __init__(self, scenario: Scenario, store: PatternStore, machine: SimulatedMachine) -> None:
        self.scenario, self.machine = scenario, machine
        self.sums: dict[int, tuple[int, ...]] = {}
        self._queue = machine.lock()
        self._turn = 0
        self._runtime = ExecutedRuntime(store, scenario, machine, self._hear)
        self.spans = self._runtime.core.spans

    def _hear(self, line: dict[str, Any]) -> None:
        """The journal says in which order the results of an event were added."""
        if line.get("op") == "combine":
            number = self._runtime.core.residency.numbers[line["ticket"]]
            keys = self.scenario.loads[number].keys
            self.sums[number] = tuple(keys.index(Key(*key)) for key in line["keys"])

    def run(self) -> None:
        """From the first route to the last combine, and to the end of all reads."""
        runtime, core = self._runtime, self._runtime.core
        try:
            runtime.seed(core.script.initial())
            runtime.settle()
            begin = self.machine.now()
            streams: dict[int, list[Event]] = {}
            for event in core.script.events():
                streams.setdefault(event.stream, []).append(event)
            threads = [self.machine.spawn(f"stream-{stream}", self._of(each)) for stream, each in streams.items()]
            for thread in threads:
                thread.join()
            with core.lock:
                while core.reader.flights:
                    core.idle.wait()
        finally:
            runtime.close()
        for task, span in self.spans.items():
            self.spans[task] = Span(span.start - begin, span.end - begin, span.lane)

    def _compute(self, task: TaskId, cost: int) -> None:
        """Run the task on the compute queue, as soon as it is free."""
        with self._queue:
            start = self.machine.now()
            self.machine.spend(cost)
            self.spans[task] = Span(start, self.machine.now(), COMPUTE)

    def _of(self, events: list[Event]) -> Callable[[], None]:
        """The events of a stream, one after the other."""

        def serve_all() -> None:
            for event in events:
                self._serve(event)

        return serve_all

    def _serve(self, event: Event) -> None:
        number, core, costs = event.pass_index, self._runtime.core, self.scenario.costs
        with core.lock:
            while self._turn != number or not core.residency.ready(number):
                core.idle.wait()
        self._compute(TaskId(number, "route"), costs.route)
        work = self._runtime.serve_next(event)
        self._runtime.guess(number)
        with core.lock:
            self._turn += 1
            core.idle.notify_all()
        with work:
            for batch in work.batches():
                self._launch(number, batch, work)
            self._compute(TaskId(number, "combine"), costs.combine)

    def _launch(self, number: int, batch: Batch, work: Work) -> None:
        """One batch: its dispatch, then its work, slot by slot."""
        load, costs = self.scenario.loads[number], self.scenario.costs
        planned = [(each.gate_up, each.down) for each in self.scenario.discipline.batches(load)]
        firsts, seconds = (tuple(load.keys.index(key) for key in keys) for keys in (batch.gate_up, batch.down))
        place = planned.index((firsts, seconds)) if (firsts, seconds) in planned else len(planned)
        self._compute(TaskId(number, "dispatch", place), costs.dispatch + (costs.handoff if place else 0))
        for slot in firsts:
            work.part(load.keys[slot], "gate_up")
            self._compute(TaskId(number, "gate_up", slot), costs.gate_up)
        for slot in seconds:
            work.part(load.keys[slot], DOWN)
            self._compute(TaskId(number, "down", slot), costs.down)


def store_of(scenario: Scenario) -> tuple[PatternStore, Simulation]:
    """The model of a scenario, and a machine that has its files and its storage."""
    keys = [key for load in scenario.loads for key in (*load.keys, *load.victims, *load.prefetches)]
    layers, experts = (1 + max(key[at] for key in keys) for at in (0, 1))
    parts = {}
    for layer in range(layers):
        record = scenario.record(Key(layer if len(scenario.records) > layer else 0, 0))
        sizes = [sum(size for stage, size in record if (stage == DOWN) is second) for second in (False, True)]
        parts[layer] = {"gate_up": sizes[0], DOWN: sizes[1]}
    layout = packed_layers(Shape(experts, parts))
    model = Geometry(layers, experts, experts, tuple(sum(each.values()) for each in parts.values()))
    store = PatternStore(layout, model, MODEL, Path("/model"))
    data = written(layout, lambda key: pattern(MODEL, key, layout.shape.record_bytes(key.layer)))
    files = {str(store.folder / name): bytes(each) for name, each in data.items()}
    return store, Simulation(files, page=64, device=Device(shared=scenario.storage))


def plan_schedule(request: Scenario) -> dict[str, Any]:
    """When the runtime does what the scenario calls for.

    Raises `UnknownName` for the discipline `free`, and `RuntimeError` for a run that comes to no end: an error of this
    runtime is no refusal.
    """
    discipline_of(request.discipline)
    store, simulation = store_of(request)
    try:
        with simulated(simulation) as machine:
            execution = Execution(request, store, machine)
            execution.run()
    except ExpertCacheError as error:
        raise RuntimeError(str(error)) from error
    return {
        "tasks": [(*task, *span) for task, span in sorted(execution.spans.items())],
        "sums": [execution.sums[number] for number in range(len(request.loads))],
    }
