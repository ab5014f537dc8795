"""Plain right caches for the policies of counts and clocks: what `wrong_policies` gets wrong.

Each is an order over facts that are written down as events come; nothing is indexed. They do slots under one global
budget and nothing else.
"""

from __future__ import annotations

from fractions import Fraction

from expertcache_conformance.adapters.protocol import Config
from expertcache_conformance.miniatures.plain import PlainCache
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


class Noting(PlainCache):
    """Notes events before their victims are chosen; passes and tokens are counted over all streams."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.facts = dict(config.parameters)
        self.events = self.passes = self.tokens = 0
        self.walked: dict[int, int] = {}

    def parameter(self, name: str) -> int:
        """A claimed number."""
        return int(self.facts[name])

    def count(self, event: Event) -> None:
        """One event more, and perhaps one pass."""
        super().count(event)
        began = self.walked.get(event.stream) != event.pass_index
        self.walked[event.stream] = event.pass_index
        self.passes += began
        self.tokens += len(event.rows) * began
        self.events += 1
        self.note(event, began)

    def note(self, event: Event, began: bool) -> None:
        """What the policy learns from the event, which may begin a pass."""


class Aging(Noting):
    """LFU-aged: every so many passes all counts are halved, then the requests are counted."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.counts: dict[Key, int] = {}

    def order(self, key: Key) -> tuple[int, ...]:
        """The least count, then the least recent."""
        return (self.counts[key], self.stamp[key])

    def note(self, event: Event, began: bool) -> None:
        """Halve, then count."""
        self.age(began)
        self.add(event)

    def age(self, began: bool) -> None:
        """At each multiple of the period."""
        if began and self.passes % self.parameter("every") == 0:
            self.halve()

    def halve(self) -> None:
        """All of them."""
        self.counts = {key: count // 2 for key, count in self.counts.items()}

    def add(self, event: Event) -> None:
        """One each."""
        for key in event.keys:
            self.counts[key] = self.counts.get(key, 0) + 1


class LazyAging(Aging):
    """LFU-aged with 64 places, in fractions that grow instead of counts that halve: exact, and oddly written."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.worth: dict[Key, Fraction] = {}
        self.one = Fraction(1)

    def halve(self) -> None:
        """A request is worth twice as much from now on."""
        self.one *= 2

    def add(self, event: Event) -> None:
        """What a request is worth now."""
        for key in event.keys:
            self.worth[key] = self.worth.get(key, Fraction(0)) + self.one

    def order(self, key: Key) -> tuple[int, ...]:
        """The present count, in units of 2**-64."""
        return (int(self.worth[key] / self.one * 2**64), self.stamp[key])


class Quotients(Noting):
    """LFRU: requests over the age of the latest one, in events, as exact fractions."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.requests: dict[Key, int] = {}
        self.latest: dict[Key, int] = {}

    def note(self, event: Event, began: bool) -> None:
        """One request more, at this event."""
        for key in event.keys:
            self.requests[key] = self.requests.get(key, 0) + 1
            self.latest[key] = self.events

    def quotient(self, key: Key) -> Fraction:
        """At this moment."""
        return Fraction(self.requests[key], self.events - self.latest[key] + 1)

    def order(self, key: Key) -> tuple[Fraction | int, ...]:  # type: ignore[override]
        """The least quotient, then the least recent."""
        return (self.quotient(key), self.stamp[key])


class Protected(PlainCache):
    """Heat-protected LRU: what had more hits than `hot` since its insert stays while something cold is there."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.hot = int(config.parameters["hot"])
        self.hits: dict[Key, int] = {}

    def count(self, event: Event) -> None:
        """One hit more for what is resident."""
        for key in event.keys:
            if key in self.stamp:
                self.hits[key] += 1

    def insert(self, key: Key) -> None:
        """No hit yet."""
        super().insert(key)
        self.hits[key] = 0

    def order(self, key: Key) -> tuple[int, ...]:
        """Cold first, then least recent."""
        return (self.hits[key] > self.hot, self.stamp[key])


class Windowed(Noting):
    """Window: what the latest tokens asked for least, then least recent; a row is a token, with a number for each."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.began: dict[int, int] = {}
        self.used: dict[Key, list[int]] = {}

    def note(self, event: Event, began: bool) -> None:
        """Note the token of each use."""
        if began:
            self.began[event.stream] = self.tokens - len(event.rows)
        for token, row in enumerate(event.rows, self.began[event.stream]):
            for expert in row:
                self.used.setdefault(Key(event.layer, expert), []).append(token)

    def inside(self, key: Key) -> int:
        """How many uses the window holds; the present token is in it."""
        edge = self.tokens - self.parameter("window")
        return sum(edge <= token for token in self.used.get(key, ()))

    def order(self, key: Key) -> tuple[int, ...]:
        """Fewest uses, then least recent."""
        return (self.inside(key), self.stamp[key])
