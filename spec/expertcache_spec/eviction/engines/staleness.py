"""Staleness: the open choices of Least-Stale as parameters, when a pass begins, and how long keys stay away."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import attrs

from expertcache_spec.eviction.base import NEVER
from expertcache_spec.eviction.cards import Parameter
from expertcache_spec.eviction.engines.layers import nearness
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

ORDERS = {"fifo": "none", "layer": "first", "ring": "ahead", "line": "linear", "overdue": "none", "next": "none"}
"""The order inside a generation, to the distance of layers that it goes by."""


@attrs.frozen(slots=False)
class Choices:
    """The parameters of Least-Stale; `PARAMETERS` says what each means."""

    order: str
    generations: bool
    requeue: bool
    first: str
    left_first: bool
    fallback: str
    boundary: str
    prefetch_marks_current: bool
    prefetch_stamps: bool
    prefetch_renews: bool
    keeps_unused: bool
    weight: float
    reading: str = ""  # the others are what it stands for

    @property
    def apart(self) -> bool:
        """Whether the order tells layers apart."""
        return self.left_first or ORDERS[self.order] != "none"

    @cached_property
    def counts_intervals(self) -> bool:
        """Whether the order goes by intervals."""
        return self.order in ("overdue", "next")

    @cached_property
    def is_plain(self) -> bool:
        """Whether the place in the queue is the whole order of a layer: generation, then place, both rising."""
        return self.order in ("fifo", "ring", "line") and self.generations and self.first == "oldest"

    def rank(self, stale: bool, layer: int, here: int, layers: int) -> tuple[int, ...]:
        """The place of a generation and layer among the others, the first to go least (XC-EVICT-200, XC-EVICT-204).

        `left_first` puts stale layers to the left of the running one first of all, and then what `fallback` says.
        """
        current, right = self.generations and not stale, self.left_first and layer >= here
        among = 2 * current + right
        if self.fallback == "current":
            among = (0, 3, 1, 2)[among]
        return (among, *nearness(ORDERS[self.order], layer, here, layers))

    def arrival(self, number: int, appended: int) -> tuple[int, int]:
        """The generation and place of a record that is prefetched in pass `number` (XC-EVICT-202).

        The front of the stale queue is before every generation, that of the current one before all that it holds.
        """
        if self.prefetch_marks_current:
            return self.renewal(number, appended)
        return (number - 1, appended) if self.prefetch_stamps else (-1, -appended)

    def renewal(self, number: int, appended: int) -> tuple[int, int]:
        """The generation and place of what a prefetch makes current in pass `number` (XC-EVICT-202)."""
        return number, appended if self.prefetch_stamps else -appended

    def place(self, generation: int, place: int) -> tuple[int, ...]:
        """The place in the queue; `layer` goes by the expert instead."""
        if self.order == "layer":
            return ()
        sign = 1 if self.first == "oldest" else -1
        return (sign * generation if self.generations else 0, sign * place)


@attrs.define
class Passes:
    """Counts passes at the declared boundary, and the layers of one (XC-EVICT-201)."""

    boundary: str
    number: int = 0
    lowest: int = NEVER
    layers: int = 1
    last: tuple[int, int] | None = None

    def begins(self, event: Event) -> bool:
        """Whether the event begins a pass. Call it once for every event."""
        self.lowest = min(self.lowest, event.layer)
        self.reach(event.layer)
        last, self.last = self.last, (event.stream, event.pass_index)
        if self.boundary == "first_layer":
            return event.layer == self.lowest
        return self.boundary == "pass" and last != self.last

    def reach(self, layer: int) -> None:
        """There is such a layer."""
        self.layers = max(self.layers, layer + 1)


@attrs.define
class Intervals:
    """The passes from one request of a key to the next, as a moving mean: resident or not (XC-EVICT-206)."""

    weight: float
    asked: dict[Key, int] = attrs.field(factory=dict)
    means: dict[Key, float] = attrs.field(factory=dict)

    def ask(self, keys: Iterable[Key], number: int) -> None:
        """An event of pass `number` asks for the keys; the first interval is the first mean."""
        for key in keys:
            if key in self.asked:
                interval = number - self.asked[key]
                old = self.means.get(key, interval)
                self.means[key] = self.weight * interval + (1 - self.weight) * old
            self.asked[key] = number

    def rank(self, order: str, key: Key, generation: int) -> tuple[float, ...]:
        """By order `overdue` what is the longest beyond its mean, by `next` what is expected last; else nothing."""
        last, mean = self.asked.get(key, generation), self.means.get(key)
        if order == "overdue":
            return (0, 0) if mean is None else (1, last + mean)
        return (-(last + max(mean or 0, 1)),) if order == "next" else ()

    def forget(self) -> None:
        """No key was ever asked for."""
        self.asked.clear()
        self.means.clear()


PARAMETERS = (
    Parameter("order", "fifo", "what goes first inside a generation", tuple(ORDERS)),
    Parameter("generations", True, "whether stale keys go before current ones at all"),
    Parameter("requeue", False, "whether the touch of a current key moves it to the end of the queue"),
    Parameter("first", "oldest", "which end of the queue goes first", ("oldest", "newest")),
    Parameter("left_first", False, "whether layers before the running one go before the others of their generation"),
    Parameter("fallback", "stale_right", "under left_first, what follows the stale left", ("stale_right", "current")),
    Parameter("boundary", "first_layer",
              "what begins a pass: an event of the lowest layer, of another pass, or a call, which no replay makes",
              ("first_layer", "pass", "explicit")),
    Parameter("prefetch_marks_current", True, "whether a prefetched record is current"),
    Parameter("prefetch_stamps", True, "whether a prefetched record takes the last place of its queue, or the first"),
    Parameter("prefetch_renews", False, "whether a prefetch of a resident stale record makes it current"),
    Parameter("keeps_unused", False, "whether a prefetched record that was not used stays current over a boundary"),
    Parameter("weight", 0.5, "orders overdue, next: the weight of the latest interval in the mean", most=1, least=0),
)  # fmt: skip
