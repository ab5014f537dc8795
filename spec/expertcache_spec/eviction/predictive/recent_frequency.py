"""Recent frequency: evict what the latest visits of its layer asked for least.

What it is: popularity over a sliding window, which follows a drift that a count of everything does not.
State: the keys of the latest `window` visits of each layer; for each key ever asked for the number of its latest
request, and in the index its count.
Order: how many of the latest `window` visits of its layer asked for the key, then number of its latest request, both
rising.
Transitions: a visit counts for each of its keys until `window` further visits of the layer have begun; visits of other
layers move nothing. Hits, inserts, seeds, prefetches and pass boundaries change nothing.
Laws: with window 1 it keeps the last visit of each layer and is LRU among the rest. A stack policy.
Engines that differ: LLM in a Flash keeps exactly what the window used; q36 and llama.cpp decay counts instead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import ClassVar

import attrs

from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.eviction.index import Heap
from expertcache_spec.eviction.predictive.base import CONTROL, Causal, Scanned
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


@attrs.define(slots=False)
class Window(Causal):
    """What both forms remember."""

    window: int = 32
    latest: dict[int, deque[Sequence[Key]]] = attrs.field(factory=dict, init=False)
    """Layer to what its latest visits asked for."""

    def begin(self, event: Event) -> None:
        """The window moves by one visit of the layer."""
        super().begin(event)
        if event.layer not in self.latest:
            self.latest[event.layer] = deque(maxlen=self.window)
        self.latest[event.layer].append(event.keys)

    def forget(self) -> None:
        """The windows too."""
        self.latest.clear()


@attrs.define(slots=False)
class DeclaredRecentFrequency(Window, Scanned):
    """The declarative form."""

    def order(self, key: Key) -> tuple[int, ...]:
        """The rule (XC-EVICT-300)."""
        return sum(key in keys for keys in self.latest.get(key.layer, ())), self.number(key)


@attrs.define(slots=False)
class RecentFrequency(Window):
    """The indexed form: a heap of (count, number); a visit files again its own keys and what leaves."""

    name: ClassVar[str] = "recent-frequency"
    stamped: ClassVar[bool] = False
    counts: dict[Key, int] = attrs.field(factory=dict, init=False)
    heap: Heap = attrs.field(factory=Heap, init=False)

    def begin(self, event: Event) -> None:
        """Count what enters the window, and what leaves it."""
        latest, counts = self.latest.get(event.layer), self.counts
        gone: Sequence[Key] = latest[0] if latest is not None and len(latest) == self.window else ()
        super().begin(event)
        for key in event.keys:
            counts[key] = counts.get(key, 0) + 1
        for key in gone:
            counts[key] -= 1
        filed = self.heap.filed
        for key in dict.fromkeys((*event.keys, *gone)):
            seat = self.judge(key)
            if seat in filed:
                self._file(seat, key)

    def _file(self, seat: Key, judge: Key) -> None:
        self.heap.file(seat, (self.counts.get(judge, 0), self.number(judge)))

    def insert(self, key: Key, now: int) -> None:
        """File under the count as it stands."""
        self._file(key, self.judge(key))

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least recent of the least count."""
        return self.heap.first(held)

    def evict(self, key: Key) -> None:
        """Only residency ends."""
        self.heap.remove(key)

    def forget(self) -> None:
        """All counts are 0."""
        super().forget()
        self.counts.clear()
        for seat in [*self.heap.filed]:
            self._file(seat, self.judge(seat))


CARD = Card(
    "recent-frequency",
    "XC-EVICT-300",
    DeclaredRecentFrequency,
    RecentFrequency,
    "least often asked for at the latest visits of its layer",
    "causal estimators of the field report on V4.1 Flash",
    "O(log resident)",
    (Parameter("window", 32, "visits of its layer over which a key is counted", least=1, most=65_536), *CONTROL),
)
