"""LFRU: evict what was asked for least often for its age.

What it is: frequency over age in one score, as arXiv 2608.07911 defines it. Its namesake `lfru-heat` is another
policy.
State: for every key the number of requests, never decayed, and the time of the latest one; a clock.
Order: requests / (now - time of the latest request + 1), rising. Ties go to the least recent, or under `ties=key` to
the lowest (layer, expert): all keys of an event share its time, so among those asked for equally often ties are
common.
Transitions: every request adds one and sets the time, hit, miss, bypass or refusal alike. A key that only a seed or a
prefetch brought scores zero and goes first. The scores are taken when a victim is chosen: keys overtake each other
while nobody touches them. A reset of history zeroes the counts; the clock runs on.
Laws: among keys asked for equally often it is LRU, among keys last asked for by one event it is LFU. Scores are exact:
no two different ones tie. A key asked for once goes before one asked for n times and less than n times as old.
Engines that differ: the paper counts time in events or in single accesses (`clock=lookups`), and settles ties by block
id or by a seeded priority; llama.cpp #21609, vLLM #37190 and apus use the name for their own mixtures.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import Any, ClassVar

import attrs
from sortedcontainers import SortedDict

from expertcache_spec.eviction.base import Past, Policy
from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.eviction.counting.clock import Clock, clock_parameter
from expertcache_spec.eviction.counting.stating import Stated
from expertcache_spec.eviction.index import Heap
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


def score(requests: int, age: int) -> int:
    """`requests / age` in units of 2**-64: different quotients stay apart, and in order, up to an age of 2**32."""
    return (requests << 64) // age


@attrs.define(slots=False, kw_only=True)
class LfruRule(Stated):
    """The rule (XC-EVICT-065)."""

    clock: Clock = attrs.field(converter=Clock)
    ties: str
    asked: dict[Key, int] = attrs.field(factory=dict)
    """The time of the latest request."""

    def begin(self, event: Event) -> None:
        """Count the requests and note the time."""
        super().begin(event)
        self.clock.begin(event)
        self.asked.update(dict.fromkeys(event.keys, self.clock.now))

    def place(self, past: Past, key: Key) -> tuple[Any, ...]:
        """Requests for their age, at this moment; then least recent."""
        worth = score(past.requests.get(key, 0), self.clock.now - self.asked.get(key, 0) + 1)
        return (worth, past.touched[key] if self.ties == "recency" else 0)


@attrs.define(slots=False)
class Lfru(Policy):
    """The indexed form: for each count a heap by time; its head alone can be the victim of that count.

    A victim looks at the heads from the least count upwards, and stops where even the greatest age of all could not
    make up for the count: after a few of them, unless counts and ages lie close together.
    """

    name: ClassVar[str] = "lfru"
    clock: Clock = attrs.field(converter=Clock)
    ties: str
    requests: dict[Key, int] = attrs.field(factory=dict)
    asked: dict[Key, int] = attrs.field(factory=dict)
    counts: SortedDict = attrs.field(factory=SortedDict)
    """Count to the heap of the residents with that count, the latest request of each first asked first."""
    ages: Heap = attrs.field(factory=Heap)
    """All residents by the time of their latest request."""
    filed: dict[Key, int] = attrs.field(factory=dict)
    """Resident to the count it is filed under."""

    def begin(self, event: Event) -> None:
        """Count every key asked for; `hit` files those among them that are resident."""
        self.clock.begin(event)
        for key in event.keys:
            self.requests[key] = self.requests.get(key, 0) + 1
            self.asked[key] = self.clock.now

    def hit(self, key: Key, now: int) -> None:
        """File under the new count, time and stamp."""
        self._take(key)
        self.insert(key, now)

    def insert(self, key: Key, now: int) -> None:
        """File under what is known of it."""
        count = self.filed[key] = self.requests.get(key, 0)
        since = self.asked[key] if count else 0
        heap = self.counts.get(count)
        if heap is None:
            heap = self.counts[count] = Heap()
        heap.file(key, (since, now if self.ties == "recency" else 0))
        self.ages.file(key, since)

    def _take(self, key: Key) -> None:
        count = self.filed.pop(key)
        self.counts[count].remove(key)
        if not self.counts[count].filed:
            del self.counts[count]
        self.ages.remove(key)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least score, the lowest key of equals."""
        return next(self._from_least(held), None)

    def leave(self, held: Collection[Key], incoming: Sequence[Key]) -> list[Key]:
        """The least scores, the heads of the counts looked at once."""
        gone = list(islice(self._from_least(held), len(incoming)))
        for key in gone:
            self._take(key)
        return gone

    def _from_least(self, held: Collection[Key]) -> Iterator[Key]:
        """The residents that nothing holds, the least score first, while nothing is filed or taken."""
        oldest, now = self.ages.first(()), self.clock.now + 1
        reach = now - (self.ages.filed[oldest] if oldest is not None else 0)
        heads: list[tuple[int, int, Key, int]] = []
        passed, further = held, iter(self.counts)
        count = next(further, None)
        while heads or count is not None:
            if count is not None and not (heads and score(count, reach) > heads[0][0]):
                looked, count = count, next(further, None)
            else:
                _, _, key, looked = heappop(heads)
                yield key
                passed = {*passed, key}
            if (key := self.counts[looked].first(passed)) is not None:
                since, stamp = self.counts[looked].filed[key]
                heappush(heads, (score(looked, now - since), stamp, key, looked))

    def evict(self, key: Key) -> None:
        """Remove from the index; count and time stay."""
        self._take(key)

    def forget(self) -> None:
        """Zero the counts."""
        self.requests.clear()
        for key, count in list(self.filed.items()):
            _, stamp = self.counts[count].filed[key]
            self.hit(key, stamp)


CARD = Card(
    "lfru",
    "XC-EVICT-065",
    LfruRule,
    Lfru,
    "fewest requests for the age of the latest one",
    "arXiv 2608.07911",
    "O(log resident); a victim looks at the counts that can still win",
    (
        clock_parameter("events"),
        Parameter(
            "ties",
            "recency",
            "which of equal scores goes first: the least recent, or the lowest key",
            ("recency", "key"),
        ),
    ),
)
