"""Clocks: what time is to a policy that ages, forgets or looks back."""

from __future__ import annotations

import attrs

from expertcache_spec.eviction.cards import Parameter
from expertcache_spec.trace import Event

UNITS = ("passes", "tokens", "events", "lookups")


@attrs.define(slots=False)
class Clock:
    """Counts what has begun in one partition, over all streams (XC-EVICT-064).

    unit: `passes` counts passes, `tokens` their token rows, `events` events, `lookups` the distinct keys of events.
    now: what had been counted when the latest event, or its pass, began. total: what has been counted by now.
    begun: stream to its latest pass and the time at which that began.
    """

    unit: str
    now: int = 0
    total: int = 0
    begun: dict[int, tuple[int, int]] = attrs.field(factory=dict)

    def begin(self, event: Event) -> int:
        """Count the event; the time at which it began, or under `passes` and `tokens` its pass."""
        if self.unit in ("passes", "tokens"):
            known, since = self.begun.get(event.stream, (-1, 0))
            if known == event.pass_index:
                return since
            self.begun[event.stream] = (event.pass_index, self.total)
        self.now = self.total
        self.total += self._worth(event)
        return self.now

    def _worth(self, event: Event) -> int:
        if self.unit == "tokens":
            return len(event.rows)
        return len(event.keys) if self.unit == "lookups" else 1


def clock_parameter(default: str) -> Parameter:
    """The parameter that names a policy's clock."""
    return Parameter("clock", default, "what time is counted in, by the events of the policy's own partition", UNITS)
