"""The admissions: always, refusable, sightings, hysteresis, cold-slots, free-slots, never, whole-events.

The machine asks twice. `wants`, before room is looked for: a record that is not wanted needs none. `takes`, once the
policy has named a victim: whether that one goes for this one. A record that is declined either way is read, served and
not kept; it stays a miss, counted as refused. Nothing here chooses a victim.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs

from expertcache_spec.admission.ages import Ages
from expertcache_spec.eviction.base import Policy
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


class Admission:
    """Admission `always`, and the base of the others: every miss that fits is kept (XC-RES-028)."""

    whole: ClassVar[bool] = False
    """Whether an event that does not fit alone is bypassed whole, whatever the overflow rule."""
    compares: ClassVar[bool] = False
    """Whether `takes` may decline."""
    evicts: ClassVar[bool] = True
    """Whether anything is ever evicted for a miss."""

    def wants(self, keys: Sequence[Key]) -> list[Key]:
        """Those of an event's missing keys that are worth room, if there is any; asked before the event begins."""
        return list(keys)

    def begin(self, event: Event) -> None:
        """The event begins: it is certain to be served."""

    def takes(self, policy: Policy, incoming: Key, victim: Key) -> bool:
        """Whether `incoming` is kept at the price of `victim`."""
        return True

    def left(self, key: Key) -> None:
        """A resident record has left the cache."""

    def forget(self) -> None:
        """Reset of scope `history`: what was learned starts again."""


class Refusable(Admission):
    """Admission `refusable`: the policy that names the victim compares the two."""

    compares: ClassVar[bool] = True

    def takes(self, policy: Policy, incoming: Key, victim: Key) -> bool:
        """Unless the policy would rather keep the victim (XC-EVICT-051)."""
        return not policy.refuses(incoming, victim)


@attrs.define
class Sightings(Admission):
    """Admission `sightings`: kept at the nth event that asks for it while it is absent (XC-ADMIT-004).

    A sighting is an event that asks for the key. They are counted from the start, and from anew when the record
    leaves; `again` is the number that a record which was resident before needs, 0 for the same as the first time.
    Source: turboquant (admit after 2, readmit after 8).
    """

    n: int = 2
    again: int = 0
    counts: dict[Key, int] = attrs.field(factory=dict)
    former: set[Key] = attrs.field(factory=set)

    def wants(self, keys: Sequence[Key]) -> list[Key]:
        """Those whose present sighting is the last one they needed."""
        return [key for key in keys if self.counts.get(key, 0) + 1 >= self._needed(key)]

    def _needed(self, key: Key) -> int:
        return self.again or self.n if key in self.former else self.n

    def begin(self, event: Event) -> None:
        """One more sighting of each key."""
        for key in event.keys:
            self.counts[key] = self.counts.get(key, 0) + 1

    def left(self, key: Key) -> None:
        """It must be seen again."""
        self.former.add(key)
        self.counts.pop(key, None)

    def forget(self) -> None:
        """Nothing was seen or resident before."""
        self.counts.clear()
        self.former.clear()


@attrs.define
class Hysteresis(Admission):
    """Admission `hysteresis`: kept if clearly hotter than the victim: hot > cold + cold // divisor + margin.

    The heat of a key is the number of events that have asked for it, the present one included, hit or miss; all of it
    is halved, rounding down, after every `halve` events of the machine (0: never). Whole numbers only (XC-ADMIT-005).
    Source: colibri, fak (divisor 4, margin 4).
    """

    compares: ClassVar[bool] = True
    divisor: int = 4
    margin: int = 4
    halve: int = 0
    heat: dict[Key, int] = attrs.field(factory=dict)
    events: int = 0

    def begin(self, event: Event) -> None:
        """Each key is one hotter."""
        if self.halve and self.events and self.events % self.halve == 0:
            self.heat = {key: count // 2 for key, count in self.heat.items() if count > 1}
        self.events += 1
        for key in event.keys:
            self.heat[key] = self.heat.get(key, 0) + 1

    def takes(self, policy: Policy, incoming: Key, victim: Key) -> bool:
        """Whether the incoming key is hotter by the margin."""
        hot, cold = self.heat.get(incoming, 0), self.heat.get(victim, 0)
        return hot > cold + cold // self.divisor + self.margin

    def forget(self) -> None:
        """Everything is cold."""
        self.heat.clear()
        self.events = 0


@attrs.define
class ColdSlots(Admission):
    """Admission `cold-slots`: kept in free room, or in place of a victim that is cold (XC-ADMIT-006).

    Cold is what the last `idle` events of its layer have not asked for. Source: colibri's rule for speculative records
    (#441, #497), here for demand.
    """

    compares: ClassVar[bool] = True
    idle: int = 8
    ages: Ages = attrs.field(factory=Ages)

    def begin(self, event: Event) -> None:
        """What is asked for is not cold."""
        self.ages.asked(event)

    def takes(self, policy: Policy, incoming: Key, victim: Key) -> bool:
        """Whether the victim is cold."""
        return self.ages.is_stale(victim, self.idle)

    def forget(self) -> None:
        """Everything is cold."""
        self.ages.forget()


class FreeSlots(Admission):
    """Admission `free-slots`: kept in free room only; what is resident stays (XC-ADMIT-007)."""

    evicts: ClassVar[bool] = False


class Never(Admission):
    """Admission `never`: demand keeps nothing; what seeds and prefetches bring in is all there is (XC-ADMIT-008)."""

    def wants(self, keys: Sequence[Key]) -> list[Key]:
        """None."""
        return []


class WholeEvents(Admission):
    """Admission `whole-events`: an event that does not fit alone leaves nothing behind (XC-ADMIT-009).

    Source: llama.cpp's plan cache and imp, which go round the cache for such an event.
    """

    whole: ClassVar[bool] = True
