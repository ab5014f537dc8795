"""Plain right caches for the policies of engines: what `wrong_estimates` gets wrong.

As in `counts`, each is an order over facts that are written down as events come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from expertcache_conformance.adapters.protocol import Config
from expertcache_conformance.miniatures.counts import Noting
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


class Hot(Noting):
    """Route hotness: selections, halved by decoded tokens of the lowest layer, zeroed by a new prompt."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.hot: Counter[Key] = Counter()
        self.lowest = 1 << 30
        self.decoded = self.halved = 0

    def order(self, key: Key) -> tuple[int, ...]:
        """The least hot, then the least recent."""
        return (self.hot[key], self.stamp[key])

    def note(self, event: Event, began: bool) -> None:
        """Begin anew, halve, count."""
        self.lowest = min(self.lowest, event.layer)
        if event.layer == self.lowest:
            if event.phase == "prefill" and event.pass_index == 0 and (event.positions or (0,))[0] == 0:
                self.begin_anew()
            if event.phase != "prefill":
                self.decoded += len(event.rows)
        self.age()
        self.add(event)

    def begin_anew(self) -> None:
        """A new prompt: nothing is hot."""
        self.hot.clear()
        self.halved = self.decoded

    def age(self) -> None:
        """Halve for each period since the latest halving; the first period begins with the first token."""
        if not self.halved:
            self.halved = self.decoded
        while self.decoded - self.halved >= self.parameter("halve_every"):
            self.halved += self.parameter("halve_every")
            self.hot = Counter({key: count // 2 for key, count in self.hot.items()})

    def add(self, event: Event) -> None:
        """One for each selection."""
        self.hot.update(event.selections())

    def seed(self, keys: list[Key], priorities: Sequence[int] = ()) -> dict[str, Any]:
        """Halve what is due, then warm every key of the model."""
        self.age()
        for key, priority in zip(keys, priorities or [0] * len(keys), strict=True):
            if self.is_known(key):
                self.hot[key] += self.lent(priority)
        return super().seed(keys)

    def is_known(self, key: Key) -> bool:
        """Whether the model has it."""
        return key.layer in self.config.geometry.routed and key.expert < self.config.geometry.experts

    def lent(self, priority: int) -> int:
        """One at least."""
        return max(1, priority)


class Stale(Noting):
    """Least-Stale in the order of layers: what earlier passes used before what this one used."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.generation: dict[Key, int] = {}
        self.lowest = 1 << 30
        self.number = 0

    def order(self, key: Key) -> tuple[int, ...]:
        """Stale first, then (layer, expert)."""
        return (self.generation[key] == self.number, key.layer, key.expert)

    def note(self, event: Event, began: bool) -> None:
        """A pass begins at the lowest layer; what the event asks for is of the present one."""
        self.lowest = min(self.lowest, event.layer)
        self.bound(event)
        self.generation.update(dict.fromkeys(event.keys, self.number))

    def bound(self, event: Event) -> None:
        """Perhaps the next pass."""
        self.number += event.layer == self.lowest


class Layered(Noting):
    """Farthest layer first, then least recent."""

    here = highest = 0

    def order(self, key: Key) -> tuple[int, ...]:
        """The distance falls."""
        return (-self.distance(key.layer), self.stamp[key])

    def note(self, event: Event, began: bool) -> None:
        """That layer runs."""
        self.here, self.highest = event.layer, max(self.highest, event.layer)

    def distance(self, layer: int) -> int:
        """Linear, or how long until the layer runs again."""
        if self.facts["distance"] == "linear":
            return abs(layer - self.here)
        return (layer - self.here) % (self.highest + 1)


UNIT = 1 << 30


class Scored(Noting):
    """The sum of gate weights, in whole units."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.sums: Counter[Key] = Counter()

    def order(self, key: Key) -> tuple[int, ...]:
        """The least given, then the least recent."""
        return (self.sums[key], self.stamp[key])

    def note(self, event: Event, began: bool) -> None:
        """Add what the event gives."""
        self.sums.update(self.given(event))

    def given(self, event: Event) -> Counter[Key]:
        """Of each row its weights, or equal parts of 1."""
        found: Counter[Key] = Counter()
        for number, row in enumerate(event.rows):
            for rank, expert in enumerate(row):
                weight = None if event.weights is None else event.weights[number][rank]
                found[Key(event.layer, expert)] += UNIT // len(row) if weight is None else round(weight * UNIT)
        return found


class Expected(Scored):
    """Probability x visits: what the most similar earlier pass gave each key, times its requests so far."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.earlier: list[Counter[Key]] = []
        self.present: Counter[Key] = Counter()
        self.where: tuple[int, int] | None = None
        self.likely: Counter[Key] = Counter()
        self.requests: Counter[Key] = Counter()

    def order(self, key: Key) -> tuple[int, ...]:
        """The least product, then the least recent."""
        return (self.product(key), self.stamp[key])

    def product(self, key: Key) -> int:
        """In units."""
        return self.likely[key] * self.requests[key]

    def note(self, event: Event, began: bool) -> None:
        """Another pass stores the present one; then it is matched as far as it goes."""
        if self.where != (event.stream, event.pass_index):
            self.earlier += [self.present] if self.present else []
            self.earlier = self.earlier[-self.parameter("maps") :]
            self.where, self.present, self.likely = (event.stream, event.pass_index), Counter(), Counter()
        self.present.update({key: units // len(event.rows) for key, units in self.given(event).items()})
        self.requests.update(event.keys)
        self.match(event)

    def match(self, event: Event) -> None:
        """The latest of those that are most alike, if any is."""
        alike = [sum(units * other[key] for key, units in self.present.items()) for other in self.earlier]
        if any(alike):
            self.likely = max(zip(alike, range(len(alike)), self.earlier, strict=True), key=lambda found: found[:2])[2]
