"""Plain right caches for the predictive policies: what `wrong_estimates` gets wrong.

As in `counts`, each is an order over facts that are written down as events come.
"""

from __future__ import annotations

from collections import Counter

from expertcache_conformance.adapters.protocol import Config
from expertcache_conformance.miniatures.counts import Noting
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


class Asked(Noting):
    """What the predictive policies have in common: when each key was last asked for, counted over all requests."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.number: dict[Key, int] = {}
        self.total = 0

    def note(self, event: Event, began: bool) -> None:
        """The first key of an event has the highest number."""
        self.total += len(event.keys)
        self.number.update({key: self.total - place for place, key in enumerate(event.keys)})

    def order(self, key: Key) -> tuple[int, ...]:
        """The least expected, then what was asked for longest ago."""
        return (self.expected(key), self.number[key])

    def expected(self, key: Key) -> int:
        """How likely the key is asked for."""
        raise NotImplementedError


class Classes(Asked):
    """Hazard: of each class of ages, how many chances a key of its layer's visits were, and how many were taken."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.chances: Counter[int] = Counter()
        self.taken: Counter[int] = Counter()
        self.visits: Counter[int] = Counter()
        self.visited: dict[Key, int] = {}

    def class_of(self, key: Key) -> int:
        """Ages 0, 1, 2-3, 4-7, and so on."""
        return min((self.visits[key.layer] - self.visited[key]).bit_length(), self.parameter("ages") - 1)

    def known(self) -> list[Key]:
        """The keys that are learned from."""
        return list(self.visited)

    def note(self, event: Event, began: bool) -> None:
        """A chance for every known key of the layer, then the visit."""
        for key in self.known():
            if key.layer == event.layer:
                self.chances[self.class_of(key)] += 1
                self.taken[self.class_of(key)] += key in event.keys
        super().note(event, began)
        self.visits[event.layer] += 1
        self.remember(event)

    def remember(self, event: Event) -> None:
        """When each was asked for."""
        self.visited.update(dict.fromkeys(event.keys, self.visits[event.layer]))

    def expected(self, key: Key) -> int:
        """The likelihood of its class."""
        its = self.class_of(key)
        return ((self.taken[its] + 1) << 32) // (self.chances[its] + 2)


class Ranked(Classes):
    """Last-rank: the classes are places in the row that ranks the key best."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.rank: dict[Key, int] = {}

    def class_of(self, key: Key) -> int:
        """Its latest rank."""
        return min(self.rank[key], self.parameter("ranks") - 1)

    def remember(self, event: Event) -> None:
        """The best place of the event."""
        super().remember(event)
        for key in event.keys:
            self.rank[key] = self.place(key, event)

    def place(self, key: Key, event: Event) -> int:
        """In the row that ranks it best."""
        return min(row.index(key.expert) for row in event.rows if key.expert in row)


class Shares(Asked):
    """Popularity: the share of its layer's rows that asked for the key."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.asked_rows: Counter[Key] = Counter()
        self.rows: Counter[int] = Counter()

    def note(self, event: Event, began: bool) -> None:
        """Count every row."""
        super().note(event, began)
        self.rows[event.layer] += len(event.rows)
        self.asked_rows.update(event.selections())

    def expected(self, key: Key) -> int:
        """In units of 2**-32."""
        return (self.asked_rows[key] << 32) // self.rows[key.layer]


class Recent(Asked):
    """Recent-frequency: how many of the latest visits of its layer asked for the key."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.seen: list[Event] = []

    def note(self, event: Event, began: bool) -> None:
        """Keep the event."""
        super().note(event, began)
        self.seen.append(event)

    def expected(self, key: Key) -> int:
        """Inside the window."""
        return sum(key in event.keys for event in self.window(key.layer)[-self.parameter("window") :])

    def window(self, layer: int) -> list[Event]:
        """The visits that count."""
        return [event for event in self.seen if event.layer == layer]


class Intervals(Asked):
    """EWMA-interval: how far from now a key is expected, from the moving mean of its intervals in events / 256."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.latest: dict[Key, int] = {}
        self.mean: dict[Key, int] = {}

    def note(self, event: Event, began: bool) -> None:
        """One interval more for those that were asked for before."""
        super().note(event, began)
        for key in event.keys:
            if key in self.latest:
                interval = 256 * (self.events - self.latest[key])
                self.mean[key] = self.blend(self.mean.get(key, interval), interval)
            self.latest[key] = self.events

    def blend(self, mean: int, interval: int) -> int:
        """The new mean."""
        return mean + (interval - mean) // self.parameter("weight")

    def expected(self, key: Key) -> int:
        """Unknown first, then the farthest."""
        if key not in self.mean:
            return -(1 << 60)
        return -abs(256 * self.latest[key] + self.mean[key] - 256 * self.events)
