"""The rule of Least-Stale: two generations in plain facts, and a look at all of them. See `least_stale`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from expertcache_spec.eviction.engines.scan import Scan
from expertcache_spec.eviction.engines.staleness import Choices, Intervals, Passes
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


@attrs.define
class Resident:
    """One resident: the pass that used it last, its place in that pass's queue, and whether it waits to be used."""

    generation: int
    place: int
    unused: bool


class Declared(Scan):
    """The rule (XC-EVICT-200), as two generations in plain lists of facts."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__()
        self.choices = Choices(**parameters)
        self.renews = self.choices.prefetch_renews
        self.passes, self.intervals = Passes(self.choices.boundary), Intervals(self.choices.weight)
        self.residents: dict[Key, Resident] = {}
        self.here = self.appended = 0

    def rank(self, key: Key) -> tuple[Any, ...]:
        """Stale before current, then the order, then the queue."""
        resident, chosen = self.residents[key], self.choices
        stale = resident.generation < self.passes.number
        return (
            *chosen.rank(stale, key.layer, self.here, self.passes.layers),
            *self.intervals.rank(chosen.order, key, resident.generation),
            *chosen.place(resident.generation, resident.place),
        )

    def begin_pass(self) -> None:
        """What is current becomes stale, but for what a prefetch brought and nothing used, where that is kept."""
        self.passes.number += 1
        for resident in self.residents.values():
            if self.choices.keeps_unused and resident.unused and resident.generation == self.passes.number - 1:
                resident.generation += 1

    def begin(self, event: Event) -> None:
        """Perhaps a pass begins; the layer runs; intervals end."""
        if self.passes.begins(event):
            self.begin_pass()
        self.here = event.layer
        self.intervals.ask(event.keys, self.passes.number)

    def insert(self, key: Key, now: int) -> None:
        """A seed or a prefetch."""
        super().insert(key, now)
        self.passes.reach(key.layer)
        self.appended += 1
        self.residents[key] = Resident(*self.choices.arrival(self.passes.number, self.appended), unused=True)

    def renew(self, key: Key) -> None:
        """What is stale becomes current, and waits to be used, where that is chosen."""
        if self.renews and self.residents[key].generation < self.passes.number:
            self.appended += 1
            self.residents[key] = Resident(*self.choices.renewal(self.passes.number, self.appended), unused=True)

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Loads of an event: `settle` gives them their places."""
        for key in keys:
            self.touched[key] = stamps[key]
            self.residents[key] = Resident(-1, -1, unused=False)

    def settle(self, keys: Sequence[Key]) -> None:
        """What the event touched is current; what was not, or has no place yet, is appended in touch order."""
        for key in keys:
            resident = self.residents[key]
            resident.unused = False
            if resident.generation < self.passes.number or resident.place < 0 or self.choices.requeue:
                self.appended += 1
                resident.generation, resident.place = self.passes.number, self.appended

    def evict(self, key: Key) -> None:
        """Forget the resident."""
        super().evict(key)
        del self.residents[key]

    def forget(self) -> None:
        """Forget the intervals."""
        self.intervals.forget()
