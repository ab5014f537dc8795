"""Plain right caches for policies that sort keys into standings: what `wrong_standings` gets wrong.

As in `counts`, each is an order over facts that are written down as events come.
"""

from __future__ import annotations

from expertcache_conformance.adapters.protocol import Config
from expertcache_conformance.miniatures.counts import Noting
from expertcache_conformance.miniatures.plain import PlainCache
from expertcache_conformance.miniatures.predictions import Classes
from expertcache_spec.eviction.counting.decay import BITS, ONE, Decay
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


class Heated(Noting):
    """LFRU-heat without halving, in events: least heat, then greatest age up to a limit, then earliest insert."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.used: dict[Key, int] = {}

    def touch(self, key: Key) -> None:
        """New at this event."""
        super().touch(key)
        self.used[key] = self.events

    def age(self, key: Key) -> int:
        """Up to the limit."""
        return min(self.events - self.used[key], self.parameter("oldest"))

    def order(self, key: Key) -> tuple[int, ...]:
        """Heat is the number of requests."""
        return (self.asked[key], -self.age(key), self.inserted[key])


class Classed(Noting):
    """Class LRU in events: the greatest age for its class, a class being the logarithm of a decayed count."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.decay = Decay(self.parameter("half_life"))
        self.counts: dict[Key, tuple[int, int]] = {}
        self.touched: dict[Key, tuple[int, int]] = {}

    def note(self, event: Event, began: bool) -> None:
        """Decay to the present, and add one."""
        for key in event.keys:
            count, then = self.counts.get(key, (0, 0))
            self.counts[key] = (self.decay.after(count, self.events - then) + ONE, self.events)

    def touch(self, key: Key) -> None:
        """The class is as of now."""
        super().touch(key)
        whole = (self.counts[key][0] >> BITS).bit_length() - 1
        self.touched[key] = (min(max(whole, 0), self.parameter("classes") - 1), self.events)

    def worth(self, key: Key) -> int:
        """Its age, in parts of two to the class."""
        number, then = self.touched[key]
        return (self.events - then) << (self.parameter("classes") - number)

    def order(self, key: Key) -> tuple[int, ...]:
        """The oldest for its class, then the lower class, then the least recent."""
        return (-self.worth(key), self.touched[key][0], self.stamp[key])


class Barred(PlainCache):
    """CLOCK-LRU-K with a fixed k and no ghosts: least recent among those used at most k times, if there is one."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.facts = dict(config.parameters)
        self.used: dict[Key, int] = {}
        self.victims = 0

    def count(self, event: Event) -> None:
        """One use more for what is resident."""
        for key in event.keys:
            if key in self.stamp:
                self.used[key] = min(self.used[key] + 1, int(self.facts["ceiling"]))

    def insert(self, key: Key) -> None:
        """The load is the first."""
        super().insert(key)
        self.used[key] = 1

    def order(self, key: Key) -> tuple[int, ...]:
        """Those under the bar first."""
        return (self.used[key] > int(self.facts["bar"]), self.stamp[key])

    def evict(self, key: Key) -> None:
        """Every so many victims all uses above one fall."""
        super().evict(key)
        del self.used[key]
        self.victims += 1
        if self.victims % int(self.facts["decay_every"]) == 0:
            self.used = {other: max(1, uses - 1) for other, uses in self.used.items()}


class Fixed(PlainCache):
    """Static with experts 0 and 1 of layer 0: they stay while anything else could go."""

    def is_member(self, key: Key) -> bool:
        """Whether the set names it."""
        return key.layer == 0 and key.expert < 2

    def order(self, key: Key) -> tuple[int, ...]:
        """Strangers first, then least recent."""
        return (self.is_member(key), self.stamp[key])


class Runs(Classes):
    """Streak: the classes are lengths of the latest run of visits, each twice: going on, and broken."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.run: dict[Key, int] = {}

    def class_of(self, key: Key) -> int:
        """Even while the run goes on."""
        return 2 * min(self.run[key], self.parameter("longest")) + self.is_broken(key)

    def is_broken(self, key: Key) -> bool:
        """Whether the latest visit of its layer left it out."""
        return self.visits[key.layer] > self.visited[key]

    def remember(self, event: Event) -> None:
        """One longer, or a new run."""
        last = self.visits[event.layer] - 1
        for key in event.keys:
            self.run[key] = self.run[key] + 1 if self.visited.get(key) == last else 1
        super().remember(event)


class Reuses(Classes):
    """Semi-Markov: the classes are pairs of the last interval and the age, both in visits of the layer, doubling."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.interval: dict[Key, int] = {}

    def class_of(self, key: Key) -> int:
        """A number for each pair."""
        age = self.visits[key.layer] - self.visited[key]
        pair = (
            (self.interval[key].bit_length(), self.parameter("intervals")),
            (age.bit_length(), self.parameter("ages")),
        )
        first, second = (min(number, most - 1) for number, most in pair)
        return first * self.parameter("ages") + second

    def remember(self, event: Event) -> None:
        """The interval that has just ended."""
        for key in event.keys:
            self.interval[key] = self.since(key)
        super().remember(event)

    def since(self, key: Key) -> int:
        """How long ago it was asked for before; 0 where it never was."""
        return self.visits[key.layer] - self.visited[key] if key in self.visited else 0
