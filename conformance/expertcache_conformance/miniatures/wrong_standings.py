"""Wrong ones of the policies that sort keys into standings: a right cache of `standings` with one thing broken."""

from __future__ import annotations

from expertcache_conformance.adapters.protocol import Config
from expertcache_conformance.miniatures.standings import Barred, Classed, Fixed, Heated, Reuses, Runs
from expertcache_conformance.miniatures.wrong import miniature
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


@miniature("colibri's packed score, unpacked", "XC-EVICT-069", policies=["lfru-heat:every=0:oldest=20:clock=events"])
class NewestOfEqualHeat(Heated):
    """Of equal heat the one used last leaves, because the age was subtracted once too often."""

    def order(self, key: Key) -> tuple[int, ...]:
        """The other way."""
        return (self.asked[key], self.age(key), self.inserted[key])


@miniature("llama.cpp#31233, in whole numbers", "XC-EVICT-076", policies=["class-lru:half_life=64:clock=events"])
class AgeOverTheClass(Classed):
    """The age is divided by the class and not by two to its power, so that much used records leave too soon."""

    def order(self, key: Key) -> tuple[int, ...]:
        """By age / (class + 1), in parts of 1 / 840."""
        number, then = self.touched[key]
        return (-(self.events - then) * 840 // (number + 1), number, self.stamp[key])


@miniature("colibri#223", "XC-EVICT-100",
           policies=["clock-lru-k:adapt=false:bar=2:ghosts=0.0:decay_every=4"])  # fmt: skip
class LeastUsedUnderTheBar(Barred):
    """Of those under the bar the least used leaves, where the least recent is claimed to."""

    def order(self, key: Key) -> tuple[int, ...]:
        """By uses up to the bar."""
        above, stamp = super().order(key)
        return (above, 0 if above else self.used[key], stamp)


@miniature("a profile of expert numbers; bam#39", "XC-EVICT-083", policies=["static:keys=0.0-1"])
class FrozenInEveryLayer(Fixed):
    """The frozen set is kept by the experts' numbers, and protects their namesakes in every layer."""

    def is_member(self, key: Key) -> bool:
        """Whatever the layer."""
        return key.expert < 2


@miniature("simulators survey, mutants", "XC-EVICT-295", policies=["streak"])
class BrokenRunsGoOn(Runs):
    """Whether a run goes on is not looked at, only how long the latest one was."""

    def is_broken(self, key: Key) -> bool:
        """Never."""
        return False


@miniature("GLM's dense layers; ages in events", "XC-EVICT-310", policies=["semi-markov"])
class IntervalsInEvents(Reuses):
    """Intervals are counted in events of all layers, and ages in visits of the key's own."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.asked_at: dict[Key, int] = {}

    def remember(self, event: Event) -> None:
        """Note the event, too."""
        super().remember(event)
        self.asked_at.update(dict.fromkeys(event.keys, self.events))

    def since(self, key: Key) -> int:
        """In events."""
        return self.events - self.asked_at[key] if key in self.asked_at else 0
