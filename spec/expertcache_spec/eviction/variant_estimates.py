"""The rules of variants of the engines' policies and of the predictive ones, each with one thing changed."""

from __future__ import annotations

from collections import deque
from typing import Any

from expertcache_spec.eviction.engines import farthest_layer, route_hotness, score, stale_rule
from expertcache_spec.eviction.engines.gate import UNIT, gate
from expertcache_spec.eviction.predictive.hazard import DeclaredHazard
from expertcache_spec.eviction.predictive.last_rank import DeclaredLastRank
from expertcache_spec.eviction.predictive.popularity import DeclaredPopularity
from expertcache_spec.eviction.predictive.recent_frequency import DeclaredRecentFrequency
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


class CountsResidents(route_hotness.Declared):
    """Only the selections of residents are counted."""

    def begin(self, event: Event) -> None:
        """Take back what was given to the others."""
        if self.hotness.clock.begins_anew(event):
            self.hotness.start_anew()
        self.hotness.halve(self.hotness.clock.tick(event))
        for key in event.keys:
            if key in self.touched:
                self.hotness.add(key, event.multiplicity(key))


class HalvesAfterCounting(route_hotness.Declared):
    """The token that completes a period is counted, then halved."""

    def begin(self, event: Event) -> None:
        """Count, then halve."""
        if self.hotness.clock.begins_anew(event):
            self.hotness.start_anew()
        times = self.hotness.clock.tick(event)
        for key in event.keys:
            self.hotness.add(key, event.multiplicity(key))
        self.hotness.halve(times)


class BoundaryIsLate(stale_rule.Declared):
    """A pass begins with the second event that is said to be in it."""

    late = False

    def begin(self, event: Event) -> None:
        """What was due, then the event."""
        if self.late:
            self.begin_pass()
        self.late = self.passes.begins(event)
        self.here = event.layer
        self.intervals.ask(event.keys, self.passes.number)


class LooksBack(farthest_layer.Declared):
    """How long ago a layer ran is its distance."""

    def rank(self, key: Key) -> tuple[Any, ...]:
        """Round the other way."""
        return (-((self.here - key.layer) % (self.layers or self.reached)), self.touched[key])


class EveryChoiceIsOne(score.Declared):
    """A selection adds 1, whatever its weight."""

    def begin(self, event: Event) -> None:
        """One each."""
        former = {key: self.scores.sums.get(key, 0) for key in event.keys}
        super().begin(event)
        for key, sum_before in former.items():
            self.scores.sums[key] = sum_before + UNIT * event.multiplicity(key)


class LatestOnly(score.Declared):
    """The latest event's weights take the place of the sum."""

    def begin(self, event: Event) -> None:
        """Overwrite."""
        super().begin(event)
        self.scores.sums.update(gate(event))


class ResidentsTeach(DeclaredHazard):
    """Only residents have chances."""

    def begin(self, event: Event) -> None:
        """The table of those that are here."""
        known = [key for key in self.past.asked if key in self.present]
        chances = [0] * self.count
        for key in known:
            if key.layer == event.layer:
                chances[self.class_of(key)] += 1
        self.table.visit(chances, [self.class_of(key) for key in event.keys if key in known])
        self.past.record(event)


class HitsTeach(DeclaredPopularity):
    """Only the requests of residents are counted."""

    def begin(self, event: Event) -> None:
        """Take back what the others were given."""
        former = dict(self.counts)
        super().begin(event)
        for key in event.keys:
            if key not in self.present:
                self.counts[key] = former.get(key, 0)


class RanksByAppearance(DeclaredLastRank):
    """The rank is the place in the event, not in a row."""

    def begin(self, event: Event) -> None:
        """In order of first appearance."""
        super().begin(event)
        for place, key in enumerate(event.keys):
            self.past.asked[key].rank = place


class OneWindow(DeclaredRecentFrequency):
    """All layers share one window."""

    shared: deque[tuple[Key, ...]] | None = None

    def begin(self, event: Event) -> None:
        """Every event moves it."""
        super().begin(event)
        self.shared = self.shared if self.shared is not None else deque(maxlen=self.window)
        self.shared.append(event.keys)

    def order(self, key: Key) -> tuple[int, ...]:
        """Of the latest events of any layer."""
        return sum(key in keys for keys in self.shared or ()), self.number(key)
