"""One run: the file brought into a condition, every event served, and what the machine says of it."""

from __future__ import annotations

import time
from typing import Any

import attrs
from tests.benchmarks.filesystem.cases import Case, Load

from expertcache_reference.disk.evidence import Condition, Evidence, PastCache, opened
from expertcache_reference.runtime import Ahead, Report, Runtime
from expertcache_reference.system.seam import Machine
from expertcache_spec.eviction.spelling import parse
from expertcache_spec.model import Budget
from expertcache_spec.prefetch import PrefetchCounts
from expertcache_spec.replay import replay


@attrs.frozen
class Setting:
    """How events are run.

    workers, chunks: of the reader. discipline: of the runtime. dense, expert: microseconds that pass, without using a
    core, before an event and for each of its experts, as they do where a device computes.
    """

    workers: int = 4
    chunks: int = 2
    discipline: str = "split:1"
    dense: int = 400
    expert: int = 100


@attrs.frozen
class Run:
    """What came of one case. elapsed: nanoseconds. resident: bytes of the file in memory before it began, or None."""

    case: str
    condition: Condition
    elapsed: int
    report: Report
    resident: int | None
    whole: int
    counts: PrefetchCounts | None

    @property
    def state(self) -> str:
        """Whether its reads were cold, by XC-PAGE-003 and what was in memory before it began."""
        return Evidence(self.report.application_bytes, self.report.device_bytes, self.resident, None).state


def prepare(machine: Machine, found: Load, condition: Condition) -> int | None:
    """Bring the file into the condition; the bytes of it that are in memory then, None where nobody says."""
    extents = [extent for extents in found.layout.extents.values() for extent in extents]
    with opened(machine, found.file) as target:
        target.prepare(extents, condition)
        return target.resident(extents)


def run(machine: Machine, found: Load, case: Case, condition: Condition, setting: Setting) -> Run:
    """Serve all events of the load."""
    resident = prepare(machine, found, condition)
    system: Any = PastCache(machine) if condition == "past" else machine
    with Runtime(
        found, Budget(slots=found.slots), case.policy, discipline=setting.discipline, workers=setting.workers,
        chunks=setting.chunks, machine=system,
    ) as runtime:  # fmt: skip
        events = found.trace.events
        ahead = None if case.prefetch is None else Ahead(runtime, case.prefetch, events)
        serve = runtime.serve if ahead is None else ahead.serve
        since = machine.now()
        for event in events:
            time.sleep(setting.dense / 1e6)
            with serve(event) as work:
                for batch in work.batches():
                    time.sleep(len(batch.keys) * setting.expert / 1e6)
        elapsed = machine.now() - since
        runtime.settle()
        counts, report = None if ahead is None else ahead.counts, runtime.report()
    return Run(case.name, condition, elapsed, report, resident, found.layout.files[found.file.name], counts)


def replayed(found: Load, case: Case) -> dict[str, int]:
    """The misses that the specification's replay says: by the events that a read ahead takes, 0 and 2.

    Of an event that takes as long as a read of its misses, some lanes are idle and some are not: no width says that, so
    none limits it here.
    """
    policy, lanes = parse(case.policy), len(found.layout.extents)
    given: Any = policy.parameters
    misses = {}
    for latency in (0, 2) if case.prefetch else (0,):
        asked = case.prefetch and attrs.evolve(case.prefetch, width=lanes, latency=latency)
        run = replay(found.trace, policy.card, Budget(slots=found.slots), parameters=given, prefetch=asked)
        misses[f"latency {latency}"] = run.total.misses
    return misses
