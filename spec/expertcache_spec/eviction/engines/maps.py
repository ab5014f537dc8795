"""Maps: what a layer is likely to be asked for, from its latest event or from the earlier pass that is most alike."""

from __future__ import annotations

from collections import deque

import attrs

from expertcache_spec.eviction.engines.gate import gate
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

Map = dict[Key, int]
"""What the gate gave each key in one pass, in units of 2^-30, averaged over the rows of each event."""


def given(event: Event) -> Map:
    """The event's part of a map; a negative weight counts as none."""
    return {key: max(0, units // len(event.rows)) for key, units in gate(event).items()}


@attrs.define(slots=False)
class Latest:
    """The latest event of every layer (XC-EVICT-232)."""

    layers: dict[int, Map] = attrs.field(factory=dict)

    def note(self, event: Event) -> None:
        """That event is the latest of its layer."""
        self.layers[event.layer] = given(event)

    def of(self, key: Key) -> int:
        """The probability of the key, in units."""
        return self.layers.get(key.layer, {}).get(key, 0)

    def forget(self) -> None:
        """Nothing was asked for yet."""
        self.layers.clear()


@attrs.define(slots=False)
class Matched:
    """The stored pass that is most like the present one so far (XC-EVICT-232).

    Alike is the sum, over what the present pass has asked for, of the products of both weights; of equals the latest
    pass. An event of another pass stores the present one; beyond `maps` the oldest is dropped.
    """

    maps: int
    stored: deque[tuple[int, Map]] = attrs.field(factory=deque)
    present: Map = attrs.field(factory=dict)
    walked: tuple[int, int] | None = None
    number: int = 0
    alike: dict[int, int] = attrs.field(factory=dict)
    users: dict[Key, dict[int, int]] = attrs.field(factory=dict)
    """For each key, the stored passes that asked for it with the weight."""
    best: Map = attrs.field(factory=dict)

    def note(self, event: Event) -> None:
        """The present pass goes on, or another begins."""
        where = (event.stream, event.pass_index)
        if where != self.walked:
            self._store()
            self.walked = where
        for key, units in given(event).items():
            self.present[key] = self.present.get(key, 0) + units
            for number, other in self.users.get(key, {}).items():
                self.alike[number] = self.alike.get(number, 0) + units * other
        if self.alike:
            best = max(self.alike, key=lambda number: (self.alike[number], number))
            self.best = self.stored[best - self.stored[0][0]][1]

    def _store(self) -> None:
        if self.present:
            self.stored.append((self.number, self.present))
            for key, units in self.present.items():
                self.users.setdefault(key, {})[self.number] = units
            self.number += 1
        if len(self.stored) > self.maps:
            number, oldest = self.stored.popleft()
            for key in oldest:
                del self.users[key][number]
                if not self.users[key]:
                    del self.users[key]
        self.present, self.alike, self.best = {}, {}, {}

    def of(self, key: Key) -> int:
        """The probability of the key, in units; 0 while nothing is alike."""
        return self.best.get(key, 0)

    def forget(self) -> None:
        """No pass is stored or under way."""
        self.stored.clear()
        self.users.clear()
        self.present, self.alike, self.best, self.walked = {}, {}, {}, None
