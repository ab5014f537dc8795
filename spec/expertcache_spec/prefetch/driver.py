"""The driver: prediction and service around the events of a replay.

For each event: it is served; tickets that it meets end; so do those whose last target it was; the predictor learns it
and predicts; then a tick passes, in which reads begin and end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from expertcache_spec.errors import NoVictim
from expertcache_spec.model import Key
from expertcache_spec.prefetch.homes import Slots, Staging
from expertcache_spec.prefetch.predictors import Predictor, Target, ahead, target_of
from expertcache_spec.prefetch.registry import build
from expertcache_spec.prefetch.settings import Prefetch
from expertcache_spec.prefetch.tickets import PrefetchCounts, Tickets
from expertcache_spec.residency import Residency, Step
from expertcache_spec.trace import Event


@attrs.define(slots=False)
class Driver:
    """One prefetch at work on one machine; `serve` serves an event, by `way`, and all that follows from it."""

    machine: Residency
    prefetch: Prefetch
    events: Sequence[Event]
    way: Callable[[Residency, Event], Step]
    tickets: Tickets = attrs.field(init=False)
    home: Staging | Slots = attrs.field(init=False)
    predictor: Predictor = attrs.field(init=False)
    expected: dict[Target, set[Key]] = attrs.field(factory=dict, init=False)
    """Target to the keys predicted for it; an event takes its own out."""

    def __attrs_post_init__(self) -> None:
        asked, machine = self.prefetch, self.machine
        self.tickets = Tickets(asked.latency, asked.width)
        if asked.cap is not None:
            self.home = Staging(machine, self.tickets, asked.cap)
        else:
            self.home = Slots(machine, self.tickets, asked)
        self.predictor = build(asked.predictor, asked.parameters, machine.geometry, self.events)
        for key in machine.seed(asked.profile).reads:
            machine.complete(key)

    @property
    def counts(self) -> PrefetchCounts:
        """What it came to so far."""
        return self.tickets.counts

    def is_ready(self, key: Key) -> bool:
        """Whether the bytes of the key wait in staging."""
        return key in self.tickets.open and self.tickets.open[key].state == "ready"

    def serve(self, event: Event) -> Step:
        """One event, its predictions and the tick that follows; victims include what prefetches displaced."""
        step = self._served(event)
        useful = self.home.demanded(event, step)
        self._judge(event, step, useful)
        self.predictor.learn(event)
        self._predict(event)
        self.tickets.tick(self._reads(event, step, useful), self.home.start, self.home.landed)
        gone, self.home.victims = self.home.victims, []
        return step._replace(victims=(*step.victims, *gone)) if gone else step

    def _served(self, event: Event) -> Step:
        self.home.before(event)
        try:
            return self.way(self.machine, event)
        except NoVictim:
            if not isinstance(self.home, Slots) or not self.home.hurry(event):
                raise
        return self.way(self.machine, event)

    def _reads(self, event: Event, step: Step, useful: set[Key]) -> int:
        """The reads that the event itself had in service, those that it joined included."""
        return sum(key not in useful for key in (*step.misses, *step.bypassed))

    def _judge(self, event: Event, step: Step, useful: set[Key]) -> None:
        """Recall, and the tickets whose last target this was (XC-PREFETCH-013)."""
        target, hits = target_of(event), set(step.hits)
        expected = self.expected.pop(target, None)
        if expected is None:
            return
        missing = [key for key in event.keys if key not in hits or key in useful]
        self.counts.recall(expected, event.keys, missing)
        for key in sorted(expected):
            ticket = self.tickets.open.get(key)
            if ticket is not None:
                ticket.targets.discard(target)
                if not ticket.targets:
                    self.home.passed(ticket)

    def _predict(self, event: Event) -> None:
        for distance in range(1, self.prefetch.lookahead + 1):
            target = ahead(self.machine.geometry, event, distance)
            if target.pass_index != event.pass_index and not self.prefetch.wrap:
                return
            experts = self.predictor.predict(event, target, distance)
            for expert in experts or ():
                self._submit(Key(target.layer, expert), target)

    def _submit(self, key: Key, target: Target) -> None:
        counts, size = self.counts, self.machine.size(key.layer)
        counts.predictions += 1
        self.expected.setdefault(target, set()).add(key)
        ticket = self.tickets.open.get(key)
        if ticket is not None or key in self.machine.part_of(key.layer).resident:
            counts.duplicate += 1
            self.home.wanted(key)
            if ticket is not None:
                ticket.targets.add(target)
        elif counts.queued >= self.prefetch.queue or not self.home.takes(size):
            counts.refused += 1
        else:
            self.tickets.submit(key, size, target)
