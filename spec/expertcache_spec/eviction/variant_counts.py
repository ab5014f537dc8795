"""The rules of variants of the policies of counts and of chance, each with one thing changed."""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b
from typing import Any

import attrs

from expertcache_spec.eviction.base import Declarative, Past
from expertcache_spec.eviction.counting.heat_lru import HeatLruRule
from expertcache_spec.eviction.counting.lfru import LfruRule
from expertcache_spec.eviction.counting.lfu_aged import LfuAgedRule
from expertcache_spec.eviction.counting.random import RandomRule
from expertcache_spec.eviction.counting.window import WindowRule
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


@attrs.define(slots=False, kw_only=True)
class OnlyResidentsAge(LfuAgedRule):
    """Counts of absent keys are not halved."""

    def begin(self, event: Event) -> None:
        """Undo the halving of what is absent."""
        absent = {key: count for key, count in self.counts.items() if key not in self.present}
        super().begin(event)
        one = 1 << self.places
        self.counts.update({key: count + one * (key in event.keys) for key, count in absent.items()})


@attrs.define(slots=False, kw_only=True)
class AgesAfterCounting(LfuAgedRule):
    """The event that completes a period is counted, then halved."""

    def begin(self, event: Event) -> None:
        """Count, then halve."""
        Declarative.begin(self, event)
        before = self.clock.total
        self.clock.begin(event)
        for key in event.keys:
            self.counts[key] = self.counts.get(key, 0) + (1 << self.places)
        times = self.clock.total // self.every - before // self.every if self.every else 0
        self.counts = {key: count >> times for key, count in self.counts.items()}


@attrs.define(slots=False, kw_only=True)
class WholeQuotients(LfruRule):
    """Quotients are rounded down to whole numbers."""

    def place(self, past: Past, key: Key) -> tuple[Any, ...]:
        """The whole quotient."""
        return (past.requests.get(key, 0) // (self.clock.now - self.asked.get(key, 0) + 1), past.touched[key])


@attrs.define(slots=False, kw_only=True)
class QuotientsOfResidents(LfruRule):
    """The number of requests begins again with each insert."""

    def place(self, past: Past, key: Key) -> tuple[Any, ...]:
        """Uses since the insert, for the age."""
        return (past.uses[key] * 2**64 // (self.clock.now - self.asked.get(key, 0) + 1), past.touched[key])


@attrs.define(slots=False, kw_only=True)
class HeatIsKept(HeatLruRule):
    """An insert keeps the hits of the stay before."""

    def insert(self, key: Key, now: int) -> None:
        """As many hits as when it left."""
        known = self.earned.get(key, 0)
        super().insert(key, now)
        self.earned[key] = known


@attrs.define(slots=False, kw_only=True)
class WindowEndsEarly(WindowRule):
    """The window ends before the present token."""

    def place(self, past: Past, key: Key) -> tuple[Any, ...]:
        """Off by one at both ends."""
        end = self.clock.total - 1
        found = sum(end - self.window <= token < end for token in self.by.get(key, ()))
        return (found if self.inside == "uses" else found > 0, past.touched[key])


@attrs.define(slots=False, kw_only=True)
class EvictionEndsUses(WindowRule):
    """An eviction takes the uses along."""

    def evict(self, key: Key) -> None:
        """Forget them."""
        super().evict(key)
        self.by.pop(key, None)


@attrs.define(slots=False, kw_only=True)
class NoSeed(RandomRule):
    """The draw does not depend on the seed."""

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The hash of everything else."""
        keys = sorted((key for key in self.present if key not in held), key=lambda key: self.past.inserted[key])
        text = b"%d %d %d" % (self.events, len(keys), keys[0].layer if keys else 0)
        return keys[int.from_bytes(blake2b(text, digest_size=8).digest(), "big") % len(keys)] if keys else None
