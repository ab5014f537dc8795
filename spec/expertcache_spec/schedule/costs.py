"""Costs: what a schedule's tasks take, in whole nanoseconds. All of them are parameters; none is measured here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

import attrs

from expertcache_spec.errors import ExpertCacheError

Stage = Literal["gate_up", "down"]
STAGES: tuple[Stage, ...] = ("gate_up", "down")

SECOND = 10**9
"""Nanoseconds of a second."""
MOST_WORKERS = 64


class InvalidSchedule(ExpertCacheError):
    """Costs, events or disciplines that make no schedule."""

    code: ClassVar[str] = "invalid-schedule"


def check_counts(owner: object, least: int, *names: str) -> None:
    """Raise `InvalidSchedule` unless the named fields are whole numbers from `least`."""
    for name in names:
        value = getattr(owner, name)
        if type(value) is not int or value < least:
            raise InvalidSchedule(
                f"{name} is {value!r}", where=type(owner).__name__.lower(), cure=f"give a whole number from {least}"
            )


class Request(NamedTuple):
    """One read request: the stage that needs its bytes, and how many they are."""

    stage: Stage
    bytes: int


Record = tuple[Request, ...]
"""The requests that read one record, in order; together they cover it (chapter `fanout` says how it is divided)."""


def divided(gate_up: Sequence[int], down: Sequence[int]) -> Record:
    """The record whose requests have those bytes; raises `InvalidSchedule` where a stage has none.

    >>> from expertcache_spec.schedule.costs import divided
    >>> [request.bytes for request in divided([3, 3], [4])]
    [3, 3, 4]
    """
    record = tuple(Request(stage, size) for stage, sizes in zip(STAGES, (gate_up, down), strict=True) for size in sizes)
    for request in record:
        check_counts(request, 0, "bytes")
    if not gate_up or not down:
        raise InvalidSchedule("a stage without bytes", where="record", cure="give each stage at least one request")
    return record


@attrs.frozen(slots=False)
class Costs:
    """What the compute queue spends, in nanoseconds.

    route: an event's work until its experts are known, with all that is not routed experts. gate_up: one expert's
    first stage, activation included. down: its second. combine: the weighted sum over the event's slots.
    dispatch: launching one batch of work. handoff: what every batch of an event after its first costs more (the wait
    for the batch before, masked kernels).
    """

    route: int = 0
    gate_up: int = 0
    down: int = 0
    combine: int = 0
    dispatch: int = 0
    handoff: int = 0

    def __attrs_post_init__(self) -> None:
        check_counts(self, 0, *(field.name for field in attrs.fields(Costs)))


@attrs.frozen(slots=False)
class Storage:
    """How records are read (XC-SCHED-003).

    workers: how many requests are in service at once. lanes: how many readers it takes to fill the bandwidth; one
    reader alone gets a lane's share of it. bandwidth: bytes a second, of all readers together. latency: nanoseconds
    of one request before its first byte, in which it uses no bandwidth. warm_percent: the share of bytes and requests
    that the page cache answers. warm_bandwidth, warm_latency: bandwidth and latency of that share; required with it.
    """

    workers: int = 1
    lanes: int = 1
    bandwidth: int = SECOND
    latency: int = 0
    warm_percent: int = 0
    warm_bandwidth: int | None = None
    warm_latency: int | None = None

    def __attrs_post_init__(self) -> None:
        check_counts(self, 1, "workers", "lanes", "bandwidth")
        check_counts(self, 0, "latency", "warm_percent")
        if max(self.workers, self.lanes) > MOST_WORKERS or self.warm_percent > 100:
            raise InvalidSchedule(
                f"{self.workers} workers, {self.lanes} lanes, {self.warm_percent} % warm",
                where="storage",
                cure=f"at most {MOST_WORKERS} workers and lanes, and 100 percent",
            )
        for name, least in (("warm_bandwidth", 1), ("warm_latency", 0)):
            if self.warm_percent or getattr(self, name) is not None:
                check_counts(self, least, name)

    @property
    def warmth(self) -> tuple[int, int, int, int]:
        """Percent cold and warm, warm bandwidth and warm latency, the last two harmless where nothing is warm."""
        return 100 - self.warm_percent, self.warm_percent, self.warm_bandwidth or 1, self.warm_latency or 0

    @property
    def wait(self) -> int:
        """Nanoseconds of a request before its first byte: the mean over cold and warm, rounded up."""
        cold, warm, _, warm_latency = self.warmth
        return -(-(cold * self.latency + warm * warm_latency) // 100)

    def transfer(self, size: int) -> int:
        """Nanoseconds that `size` bytes take at the whole bandwidth: the mean over cold and warm, rounded up."""
        cold, warm, warm_bandwidth, _ = self.warmth
        share = cold * warm_bandwidth + warm * self.bandwidth
        return -(-size * SECOND * share // (100 * self.bandwidth * warm_bandwidth))

    def divisor(self, readers: int) -> int:
        """With that many readers transferring, each gets one part in this many of the bandwidth (XC-SCHED-003)."""
        return max(readers, self.lanes)

    @property
    def grain(self) -> int:
        """Parts into which a nanosecond of bandwidth divides evenly among any number of readers."""
        return math.lcm(*range(self.lanes, max(self.lanes, self.workers) + 1))
