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
no two different ones tie. A key asked for once goes before one asked for n times and less than n times as old. Under
touch `router` a stack policy.
Engines that differ: the paper counts time in events or in single accesses (`clock=lookups`), and settles ties by block
id or by a seeded priority; llama.cpp #21609, vLLM #37190 and apus use the name for their own mixtures.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import heappop, heappush
from typing import Any, ClassVar

import attrs

from expertcache_spec.eviction.base import Past, Policy
from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.eviction.counting.clock import Clock, clock_parameter
from expertcache_spec.eviction.counting.stating import Stated
from expertcache_spec.eviction.heaps import Entry, Heaps, Lifted
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
    index: Heaps = attrs.field(factory=Heaps)
    """Residents by count; in each by the time of the latest request and, where ties go by recency, the stamp."""
    ages: list[Entry] = attrs.field(factory=list)
    """A heap of the same entries, whatever the count."""

    def begin(self, event: Event) -> None:
        """Count every key asked for; `hit` files those among them that are resident."""
        self.clock.begin(event)
        requests, asked, now = self.requests, self.asked, self.clock.now
        for key in event.keys:
            requests[key] = requests.get(key, 0) + 1
            asked[key] = now

    def hit(self, key: Key, now: int) -> None:
        """File under the new count, time and stamp."""
        self.insert(key, now)

    def insert(self, key: Key, now: int) -> None:
        """File under what is known of it."""
        count = self.requests.get(key, 0)
        since = self.asked[key] if count else 0
        entry = self.index.file(key, count, (since, now if self.ties == "recency" else 0))
        heappush(self.ages, entry)
        if len(self.ages) > 64 + 4 * len(self.index.filed):
            self.ages = sorted(self.index.filed.values())

    def _oldest(self) -> int:
        """The earliest of the times of the residents' latest requests; now where there are none."""
        ages, filed = self.ages, self.index.filed
        while ages and filed.get(ages[0][1]) is not ages[0]:
            heappop(ages)
        return ages[0][0][0] if ages else self.clock.now

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least score, the lowest key of equals."""
        aside: Lifted = []
        found = self._lift_least(held, 1, aside)
        self.index.put_back(found + aside)
        return found[0][1][1] if found else None

    def leave(self, held: Collection[Key], incoming: Sequence[Key]) -> list[Key]:
        """The least scores, the heads of the counts looked at once."""
        aside: Lifted = []
        gone = [entry[1] for _, entry in self._lift_least(held, len(incoming), aside)]
        self.index.put_back(aside)
        for key in gone:
            self.index.remove(key)
        return gone

    def _lift_least(self, held: Collection[Key], number: int, aside: Lifted) -> Lifted:
        """Lift that many residents that nothing holds, the least score first; held ones before them go `aside`."""
        now, index = self.clock.now + 1, self.index
        reach, further = now - self._oldest(), iter(index.heaps)
        heads: list[tuple[int, int, Key, int]] = []
        found: Lifted = []
        emptied: list[int] = []
        coming = next(further, None)
        while number and (heads or coming is not None):
            if coming is not None and not (heads and score(coming, reach) > heads[0][0]):
                count, coming = coming, next(further, None)
            else:
                count = heappop(heads)[3]
                found.append((count, heappop(index.heaps[count])))
                if len(found) == number:
                    break  # nobody asks who comes next
            head = index.head(count, held, aside)
            if head is None:
                emptied.append(count)
            else:
                heappush(heads, (score(count, now - head[0][0]), head[0][1], head[1], count))
        for count in emptied:
            del index.heaps[count]
        return found

    def evict(self, key: Key) -> None:
        """Remove from the index; count and time stay."""
        self.index.remove(key)

    def forget(self) -> None:
        """Zero the counts."""
        self.requests.clear()
        for key, ((_, stamp), _) in list(self.index.filed.items()):
            self.insert(key, stamp)


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
