"""What the requests of a key leave behind, as far as any class of keys depends on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import attrs

from expertcache_spec.eviction.base import NEVER
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

UNASKED = -1
"""The class of keys that no event has asked for."""

Entry: TypeAlias = list[Any]
"""The number of a request, and the resident that is filed by it: none when the entry is outdated."""


@attrs.define
class Facts:
    """What the requests of one key leave behind.

    number: of its latest request, counted over the partition; within an event the first in router order has the
    highest. visit: which event of its layer, from 1, asked for it last. interval: visits between its last two
    requests, 0 when there was one. rank: the best place that a row of its latest event gave it. run: how many visits
    on end, up to its latest request, asked for it.

    The rest is for an index: `filed`, the class of the key; `seat`, the resident that is judged by it; `place`, the
    entry by which that one is filed.
    """

    number: int
    visit: int
    interval: int = 0
    rank: int = NEVER
    run: int = 0
    filed: int = UNASKED
    seat: Key | None = None
    place: Entry | None = None

    def leave(self) -> None:
        """The entry, if there is one, is outdated."""
        if self.place is not None:
            self.place[1] = None
            self.place = None


@attrs.define(slots=False)
class Requests:
    """The facts of every key that the partition was ever asked for. A visit is one event of the key's own layer."""

    asked: dict[Key, Facts] = attrs.field(factory=dict)
    visits: dict[int, int] = attrs.field(factory=dict)
    total: int = 0

    def record(self, event: Event) -> list[Facts]:
        """One more visit of the event's layer; the facts of its keys, the last in router order first."""
        visit = self.visits[event.layer] = self.visits.get(event.layer, 0) + 1
        self.total = number = self.total + len(event.keys)
        asked, found = self.asked, []
        for key, rank in zip(event.keys, _ranks(event), strict=True):
            facts = asked.get(key)
            if facts is None:
                facts = asked[key] = Facts(number, visit, 0, rank, 1)
            else:
                facts.interval = gap = visit - facts.visit
                facts.run = facts.run + 1 if gap == 1 else 1
                facts.number, facts.visit, facts.rank = number, visit, rank
            found.append(facts)
            number -= 1
        found.reverse()
        return found

    def age(self, key: Key) -> int:
        """Visits of the key's layer since the one that asked for it last."""
        return self.visits[key.layer] - self.asked[key].visit

    def forget(self) -> None:
        """Only recency stays: when each key was last asked for."""
        for facts in self.asked.values():
            facts.interval, facts.rank, facts.run = 0, NEVER, 0


def _ranks(event: Event) -> Sequence[int]:
    """For each key of the event its place in the row that ranks it best."""
    if len(event.rows) == 1:
        return range(len(event.keys))
    best: dict[int, int] = {}
    for row in event.rows:
        for place, expert in enumerate(row):
            best[expert] = min(place, best.get(expert, place))
    return [best[key.expert] for key in event.keys]
