"""EWMA interval: evict what is predicted farthest from now.

What it is: a key is expected one mean interval after its latest request; the mean is exponentially weighted. Time is
events of the partition, so that under scope global a layer's place in the pass counts.
State: for each key ever asked for the number and time of its latest request and its mean; one clock.
Order: keys without an interval first; then by the prediction as `overdue` says; then number of the latest request.
Transitions: the second request makes the interval the mean, a further one adds (interval - mean) / `weight`, rounded
down, in 1/256 event. Hits, inserts, seeds, prefetches and pass boundaries change nothing.
Laws: what to think of a key whose time has passed decides the result. Under `soon` it is due any moment, so that a
dead key with a short mean never leaves; under `gone` the longest overdue leaves first, however late the others are due;
under `mirror` it is as far off as it is late. A stack policy.
Engines that differ: JOIN-3 is `soon` with weight 4 and takes the most recent of equals first; hipfire is `gone` with
weight 2, layer by layer. Both call it Least-Stale.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

import attrs

from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.eviction.index import Heap
from expertcache_spec.eviction.predictive.base import CONTROL, Causal, Scanned
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

TICK = 256
"""Units of time in one event."""

NUMBER = 64
"""Bits of a request number beside an expected time: one whole number is compared faster than a pair."""


@attrs.define(slots=False)
class Intervals(Causal):
    """What both forms estimate."""

    overdue: str = "mirror"
    weight: int = 4
    first: int = 0
    now: int = attrs.field(default=0, init=False)
    latest: dict[Key, int] = attrs.field(factory=dict, init=False)
    """When the key was last asked for."""
    means: dict[Key, int] = attrs.field(factory=dict, init=False)
    """Of its intervals, from the second request on."""

    def begin(self, event: Event) -> None:
        """One event of the partition has passed; its keys have one more interval (XC-EVICT-306)."""
        super().begin(event)
        self.now = now = self.now + TICK
        latest, means = self.latest, self.means
        for key in event.keys:
            if key in latest:
                interval, mean = now - latest[key], means.get(key)
                means[key] = interval if mean is None else mean + (interval - mean) // self.weight
            latest[key] = now

    def due(self, key: Key) -> int | None:
        """When the key is expected; None when nothing is known."""
        mean = self.means.get(key)
        if mean is None:
            if not self.first or key not in self.latest:
                return None
            mean = self.first * TICK
        return self.latest[key] + mean

    def forget(self) -> None:
        """The means too."""
        self.means.clear()


@attrs.define(slots=False)
class DeclaredEwmaInterval(Intervals, Scanned):
    """The declarative form."""

    def order(self, key: Key) -> tuple[int, ...]:
        """The rule (XC-EVICT-305)."""
        due, number = self.due(key), self.number(key)
        if due is None:
            return 0, 0, number
        return 1, {"soon": -due, "gone": due, "mirror": -abs(due - self.now)}[self.overdue], number


@attrs.define(slots=False)
class EwmaInterval(Intervals):
    """The indexed form: the victim is one of the two ends of the order of expected times."""

    name: ClassVar[str] = "ewma-interval"
    stamped: ClassVar[bool] = False
    unknown: Heap = attrs.field(factory=Heap, init=False)
    """Residents of which nothing is expected, by number."""
    early: Heap = attrs.field(factory=Heap, init=False)
    """Those of which something is, the first due first; not filled under `soon`."""
    late: Heap = attrs.field(factory=Heap, init=False)
    """The same, the last due first; not filled under `gone`."""

    def begin(self, event: Event) -> None:
        """File again whom the event's keys judge."""
        super().begin(event)
        known = self.early.filed if self.overdue == "gone" else self.late.filed
        unknown = self.unknown.filed
        for key in event.keys:
            seat = self.judge(key)
            if seat in known or seat in unknown:
                self._file(seat, key)

    def _file(self, seat: Key, judge: Key) -> None:
        due, number = self.due(judge), self.number(judge)
        if due is None:
            self.evict(seat)
            self.unknown.file(seat, number)
            return
        if seat in self.unknown.filed:
            self.unknown.remove(seat)
        if self.overdue != "soon":
            self.early.file(seat, (due << NUMBER) + number)
        if self.overdue != "gone":
            self.late.file(seat, (-due << NUMBER) + number)

    def insert(self, key: Key, now: int) -> None:
        """File under the expected time as it stands."""
        self._file(key, self.judge(key))

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """Of nothing expected, else the end of the order that is farther from now."""
        key = self.unknown.first(held) if self.unknown.filed else None
        if key is not None:
            return key
        early, late = self.early.first(held), self.late.first(held)
        if early is None or late is None:
            return early or late
        mask = (1 << NUMBER) - 1
        first, last = self.early.filed[early], self.late.filed[late]
        behind, ahead = -abs((first >> NUMBER) - self.now), -abs(-(last >> NUMBER) - self.now)
        return min((behind, first & mask, early), (ahead, last & mask, late))[2]

    def evict(self, key: Key) -> None:
        """Only residency ends."""
        for heap in (self.unknown, self.early, self.late):
            if key in heap.filed:
                heap.remove(key)

    def forget(self) -> None:
        """Nothing is known but when each was asked for."""
        super().forget()
        for seat in [*self.unknown.filed, *(self.early if self.overdue == "gone" else self.late).filed]:
            self._file(seat, self.judge(seat))


CARD = Card(
    "ewma-interval",
    "XC-EVICT-305",
    DeclaredEwmaInterval,
    EwmaInterval,
    "predicted farthest from now",
    "causal estimators of the field report on V4.1 Flash; JOIN-3, hipfire",
    "O(log resident)",
    (
        Parameter(
            "overdue",
            "mirror",
            "a key whose time has passed is as far off as it is late (mirror), due any moment (soon), or the sooner to "
            "go the later it is (gone)",
            choices=("mirror", "soon", "gone"),
        ),
        Parameter("weight", 4, "the newest interval counts one part in that many", least=1, most=256),
        Parameter("first", 0, "events that a key asked for once is expected after; 0: never", least=0),
        *CONTROL,
    ),
)
