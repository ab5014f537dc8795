"""CLOCK-LRU-K: least recent among keys used at most k times; what use is worth fades, and k adapts to what it earns.

What it is: colibri's frequency-protected recency for tight caches. No hand: the name is the engine's.
State: for each resident a frequency from 1 to `ceiling` and its recency; ghosts with the frequency that they left with,
at most `ghosts` times the capacity; the bar k, from `bar` on; the counters of `Bar`; for each key the number of its
latest request.
Order: the least recent of the residents whose frequency is at most k; where none is, the least recent of all. Held keys
are passed over.
Transitions: every hit and every load is a probe. A hit adds one to the frequency, up to `ceiling`; a key that was at k
while the cache is full graduates. A miss starts at 1, a ghost at one more than it left with, up to `ceiling`, and is a
ghost until it is inserted; a seed or a prefetch starts at 1 and is no ghost from then on. A victim becomes a ghost;
where the ghosts are full the one least recently asked for is forgotten first. Every `decay_every` victims each
frequency above 1 falls, by one or to its half; ghosts' do not. Every `adapt_every` victims k may move (`Bar`). Reset of
history puts every resident at 1 and forgets ghosts, k and counters.
Laws: with `adapt` off it is LRU when `bar` is `ceiling` or more, and LRU again when `bar` is 0: who protects all
protects none. It differs only between. Ghosts stay within their size, frequencies between 1 and `ceiling`. No stack
policy.
Engines that differ: colibri's tier.h is the default, victim for victim and k for k on single keys; the branch of its
pull request 223 decays to the half every 16 victims. Both have one cache a layer and admit the misses of a batch last
first. Slipstream's cache of the same name is `clock` with a higher `ceiling`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar

import attrs

from expertcache_spec.eviction.base import Policy
from expertcache_spec.eviction.cards import Card, Parameter, above
from expertcache_spec.eviction.classical.bar import Bar
from expertcache_spec.eviction.index import Heap
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


@attrs.define(slots=False)
class _Tuned(Policy):
    """The parameters, and what both forms count alike."""

    bar: int
    adapt: bool
    ceiling: int
    ghosts: float
    decay: str
    decay_every: int
    adapt_every: int
    window: int
    low: int
    high: int
    step: int
    capacity: int = attrs.field(default=0, init=False)
    k: Bar = attrs.field(init=False)
    asked: dict[Key, int] = attrs.field(factory=dict, init=False)
    """Key to the number of its latest request."""
    requests: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.k = self._fresh_bar()

    def _fresh_bar(self) -> Bar:
        return Bar(self.bar, self.adapt, self.ceiling, self.adapt_every, self.window, self.low, self.high, self.step)

    def begin(self, event: Event) -> None:
        """Number the requests."""
        for key in event.keys:
            self.requests += 1
            self.asked[key] = self.requests

    def misses(self, keys: Sequence[Key]) -> None:
        """Each load is a probe that missed."""
        self.k.probed(0, len(keys))

    def fallen(self, frequency: int) -> int:
        """A frequency after a decay."""
        return max(1, frequency // 2 if self.decay == "halve" else frequency - 1)

    @property
    def ghost_size(self) -> int:
        """How many ghosts there may be."""
        return int(self.capacity * self.ghosts)


@attrs.define(slots=False)
class ClockLruKRule(_Tuned):
    """The rule (XC-EVICT-100)."""

    recency: list[Key] = attrs.field(factory=list, init=False)
    """Residents, the least recent first."""
    frequency: dict[Key, int] = attrs.field(factory=dict, init=False)
    left_with: dict[Key, int] = attrs.field(factory=dict, init=False)
    """Ghosts."""
    victims: int = attrs.field(default=0, init=False)

    @property
    def present(self) -> list[Key]:
        """Every key that holds a slot."""
        return self.recency

    def set_capacity(self, records: int) -> None:
        """Forget the ghosts beyond the new size."""
        self.capacity = records
        while len(self.left_with) > self.ghost_size:
            self._forget_one()

    def _forget_one(self) -> None:
        del self.left_with[min(self.left_with, key=lambda key: (self.asked.get(key, 0), key))]

    def hit(self, key: Key, now: int) -> None:
        """Probe, graduate, count."""
        self.k.probed(1, 1)
        if self.frequency[key] < self.ceiling:
            if self.frequency[key] == self.k.value and len(self.recency) >= self.capacity:
                self.k.graduated += 1
            self.frequency[key] += 1

    def insert(self, key: Key, now: int) -> None:
        """A seed or a prefetch: forget its ghost, start at 1."""
        self.left_with.pop(key, None)
        self.inserts((key,), {})

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """What is asked for starts at 1, or goes on from its ghost."""
        for key in keys:
            self.recency.append(key)
            self.frequency[key] = min(self.left_with.pop(key, 0) + 1, self.ceiling)

    def settle(self, keys: Sequence[Key]) -> None:
        """Recency is touch order."""
        for key in keys:
            self.recency.remove(key)
            self.recency.append(key)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least recent under the bar, else of all; then count it."""
        free = [key for key in self.recency if key not in held]
        under = [key for key in free if self.frequency[key] <= self.k.value]
        if not free:
            return None
        key = (under or free)[0]
        self._count(key)
        return key

    def _count(self, key: Key) -> None:
        frequency = self.frequency[key]
        self.evict(key)
        if self.ghost_size:
            if len(self.left_with) >= self.ghost_size:
                self._forget_one()
            self.left_with[key] = frequency
        self.victims += 1
        if self.victims % self.decay_every == 0:
            self.frequency = {other: self.fallen(value) for other, value in self.frequency.items()}
        self.k.evicted(frequency)

    def evict(self, key: Key) -> None:
        """Remove; no ghost."""
        if key in self.frequency:
            self.recency.remove(key)
            del self.frequency[key]

    def forget(self) -> None:
        """Frequencies 1; no ghosts; a fresh bar."""
        self.frequency = dict.fromkeys(self.frequency, 1)
        self.left_with.clear()
        self.victims = 0
        self.k = self._fresh_bar()


@attrs.define(slots=False, eq=False)
class Level:
    """The residents of one frequency, in a heap by recency. A decay moves the level, not its keys."""

    frequency: int
    index: Heap = attrs.field(factory=Heap)


@attrs.define(slots=False)
class ClockLruK(_Tuned):
    """The indexed form: a level for each frequency; a victim looks at the first key of each level under the bar."""

    name: ClassVar[str] = "clock-lru-k"
    stamped: ClassVar[bool] = False
    levels: dict[int, Level] = attrs.field(factory=dict, init=False)
    place: dict[Key, Level] = attrs.field(factory=dict, init=False)
    left_with: dict[Key, int] = attrs.field(factory=dict, init=False)
    forgetting: Heap = attrs.field(factory=Heap, init=False)
    """The ghosts by latest request."""
    touches: int = attrs.field(default=0, init=False)
    since_decay: int = attrs.field(default=0, init=False)

    def set_capacity(self, records: int) -> None:
        """Forget the ghosts beyond the new size."""
        self.capacity = records
        self._forget_down_to(self.ghost_size)

    def _forget_down_to(self, size: int) -> None:
        while len(self.left_with) > size:
            key = self.forgetting.first(())
            assert key is not None
            self._remember_no_more(key)

    def _remember_no_more(self, key: Key) -> int:
        """The frequency that the ghost left with; it is one no more."""
        if key not in self.left_with:
            return 0
        self.forgetting.remove(key)
        return self.left_with.pop(key)

    def begin(self, event: Event) -> None:
        """Number the requests, of ghosts too."""
        super().begin(event)
        for key in event.keys:
            if key in self.left_with:
                self.forgetting.file(key, self.asked[key])

    def _place(self, key: Key, frequency: int, touch: int) -> None:
        """Put the key into a level, where `settle` will file it; until then it is held, and need not be found."""
        level = self.levels.get(frequency)
        if level is None:
            level = self.levels[frequency] = Level(frequency)
        self.place[key] = level
        level.index.filed[key] = touch

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Probe, graduate, count."""
        self.k.probed(len(keys), len(keys))
        full, place = len(self.place) >= self.capacity, self.place
        for key in keys:
            level = place[key]
            frequency = level.frequency
            if frequency < self.ceiling:
                self.k.graduated += full and frequency == self.k.value
                self._place(key, frequency + 1, level.index.filed.pop(key))

    def insert(self, key: Key, now: int) -> None:
        """A seed or a prefetch: forget its ghost, file it under 1."""
        self._remember_no_more(key)
        self._place(key, 1, 0)
        self.settle((key,))

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Under 1, or under what the ghost had and one more."""
        for key in keys:
            self._place(key, min(self._remember_no_more(key) + 1, self.ceiling), 0)

    def settle(self, keys: Sequence[Key]) -> None:
        """File each as the most recent of its level."""
        for key in keys:
            self.touches += 1
            self.place[key].index.file(key, self.touches)

    def _least_recent(self, held: Collection[Key], most: int) -> Key | None:
        """The least recent free key of all levels up to frequency `most`."""
        found = [
            (level.index.filed[key], key)
            for frequency, level in self.levels.items()
            if frequency <= most and (key := level.index.first(held)) is not None
        ]
        return min(found)[1] if found else None

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """Under the bar, else of all; then count it."""
        key = self._least_recent(held, self.k.value)
        if key is None:
            key = self._least_recent(held, self.ceiling)
        if key is not None:
            self._count(key)
        return key

    def _count(self, key: Key) -> None:
        frequency = self.place[key].frequency
        self.evict(key)
        if self.ghost_size:
            self._forget_down_to(self.ghost_size - 1)
            self.left_with[key] = frequency
            self.forgetting.file(key, self.asked.get(key, 0))
        self.since_decay += 1
        if self.since_decay == self.decay_every:
            self.since_decay = 0
            self._regroup(self.fallen)
        self.k.evicted(frequency)

    def _regroup(self, fallen: Callable[[int], int]) -> None:
        """Give every level its new frequency, pouring the smaller of two that meet into the larger."""
        old, self.levels = self.levels, {}
        for frequency in sorted(old):
            level, lower = old[frequency], self.levels.get(fallen(frequency))
            if lower is not None and len(lower.index.filed) < len(level.index.filed):
                level, lower = lower, level
            if lower is not None:
                for key, touch in level.index.filed.items():
                    lower.index.file(key, touch)
                    self.place[key] = lower
                level = lower
            level.frequency = fallen(frequency)
            self.levels[level.frequency] = level

    def evict(self, key: Key) -> None:
        """Remove; no ghost."""
        level = self.place.pop(key, None)
        if level is not None:
            level.index.remove(key)

    def forget(self) -> None:
        """Frequencies 1; no ghosts; a fresh bar."""
        self._regroup(lambda frequency: 1)
        self._forget_down_to(0)
        self.since_decay = 0
        self.k = self._fresh_bar()


CARD = Card(
    "clock-lru-k",
    "XC-EVICT-100",
    ClockLruKRule,
    ClockLruK,
    "least recent among those used at most k times since they last fell",
    "colibri (pull request 223 and tier.h)",
    "O(log resident + ceiling)",
    parameters=(
        Parameter("bar", 2, "k at first: the highest frequency that is not protected", (), 0, 255),
        Parameter("adapt", True, "whether k moves"),
        Parameter("ceiling", 15, "the most that a frequency holds", (), 1, 255),
        Parameter("ghosts", 1.0, "how many ghosts are kept, for each record of the capacity", (), 0, 16),
        Parameter("decay", "minus-one", "how a frequency above 1 falls", ("minus-one", "halve")),
        Parameter("decay_every", 8, "victims between two falls", (), 1, 1 << 20),
        Parameter("adapt_every", 16, "victims between two looks at k", (), 1, 1 << 20),
        Parameter("window", 32, "probes that a look at k needs", (), 1, 1 << 20),
        Parameter("low", 2500, "graduates for each 10,000 victims below which k falls, at first", (), 0, 10_000),
        Parameter("high", 5000, "graduates for each 10,000 victims above which k rises, at first", (), 0, 10_000),
        Parameter("step", 1000, "how far the hit rate moves those two", (), 0, 10_000),
    ),
    objections=lambda values, model: (*above("bar", "ceiling")(values, model), *above("low", "high")(values, model)),
)
