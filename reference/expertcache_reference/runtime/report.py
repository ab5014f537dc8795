"""The report: what the runtime has done, from the machine's own counters and from the reader's."""

from __future__ import annotations

import attrs

from expertcache_reference.runtime.core import Core
from expertcache_reference.system.seam import Usage


@attrs.frozen
class Report:
    """Counts since the start, or the last reset of counters where they are the machine's; times in nanoseconds.

    hits to evictions: see `expertcache_spec.metrics.Row`, summed over phases and layers. seeds, prefetched: records
    brought in by no demand. failed: reads, of records that are kept or not. application_bytes: what the reader was
    given by the system, each byte once, whether the page cache or a device had it. device_bytes: what the device was
    asked for meanwhile, by all of the process; None where the system does not say. exposed: callers slept for bytes.
    read_busy: workers were in service, all together. read_wall: at least one was. hidden: at least one was, and nobody
    slept for bytes. waits: events that stood in line for room. peak_slots: memory of slots at its highest, in bytes.
    peak_scratch: that of records which were read and not kept.
    """

    hits: int
    misses: int
    bypassed: int
    refused: int
    evictions: int
    seeds: int
    prefetched: int
    failed: int
    application_bytes: int
    requests: int
    device_bytes: int | None
    exposed: int
    read_busy: int
    read_wall: int
    hidden: int
    waits: int
    peak_slots: int
    peak_scratch: int

    @property
    def hit_rate(self) -> float | None:
        """Hits by lookups; None before the first."""
        lookups = self.hits + self.misses + self.bypassed
        return self.hits / lookups if lookups else None

    @property
    def overlap(self) -> float | None:
        """The share of the reading time in which nobody slept for bytes; None before the first read."""
        return self.hidden / self.read_wall if self.read_wall else None


def report_of(core: Core, since: Usage) -> Report:
    """The report; call it under the lock. `since` is the usage at the start."""
    counters, read, now = core.residency.counters, core.reader.counts, core.machine.usage().device_bytes
    total = counters.total()
    device = None if now is None or since.device_bytes is None else now - since.device_bytes
    return Report(
        total.hits, total.misses, total.bypassed, total.refused, total.evictions, counters.seeds, counters.prefetched,
        counters.failed + core.failed_alone, read.bytes, read.requests, device, core.exposed, read.busy, read.wall,
        read.hidden, sum(line.waits for line in core.lines.values()), core.arena.peak, core.scratch.peak,
    )  # fmt: skip
