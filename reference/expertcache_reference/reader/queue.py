"""What waits to be read, in two classes, and the counts of what was."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import attrs

from expertcache_reference.reader.flights import Job


class Queue:
    """Chunks that no worker has: those that somebody waits for go before all others, each class in order of arrival."""

    def __init__(self) -> None:
        self.demand: deque[Job] = deque()
        self.speculation: deque[Job] = deque()

    def add(self, jobs: Iterable[Job], *, demand: bool) -> None:
        """Queue the chunks behind those of their class; one that is in both is served once."""
        (self.demand if demand else self.speculation).extend(jobs)

    def next(self) -> Job | None:
        """The chunk to read now, taken out; chunks of flights that are over are dropped on the way."""
        for queue in (self.demand, self.speculation):
            while queue:
                job = queue.popleft()
                if not (job.taken or job.flight.over):
                    job.taken = True
                    return job
        return None

    def clear(self) -> None:
        """Drop all."""
        self.demand.clear()
        self.speculation.clear()


@attrs.define
class Counts:
    """Since the start. requests, bytes: what the system was asked and has delivered, each byte once, those of failed
    reads too. records, failed, cancelled: flights by outcome. busy: nanoseconds in service, of all workers together.
    wall: nanoseconds in which at least one was. hidden: those of them in which nobody slept for bytes.
    """  # noqa: D205

    requests: int = 0
    bytes: int = 0
    records: int = 0
    failed: int = 0
    cancelled: int = 0
    busy: int = 0
    wall: int = 0
    hidden: int = 0

    def add(self, came: Sequence[int], busy: int) -> None:
        """One chunk has ended: what its requests delivered, and how long it took."""
        self.requests += len(came)
        self.bytes += sum(came)
        self.busy += busy
