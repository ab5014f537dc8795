"""Wrong ones of the policies of counts and of chance: a plain right cache of `counts` with one thing broken."""

from __future__ import annotations

from fractions import Fraction
from hashlib import blake2b

from expertcache_conformance.miniatures.counts import Aging, Noting, Protected, Quotients, Windowed
from expertcache_conformance.miniatures.plain import PlainCache
from expertcache_conformance.miniatures.wrong import miniature
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


@miniature("astronomical#733", "XC-EVICT-061", policies=["lfu-aged:every=2"])
class AgedCountsNeverHalve(Aging):
    """Aging is claimed, and counts only grow."""

    def halve(self) -> None:
        """Nothing."""


@miniature("ds4 before 3d65923c", "XC-EVICT-061", policies=["lfu-aged:every=2"])
class OnlyResidentsAge(Aging):
    """Halving walks over the cache and misses the counts of what is absent."""

    def halve(self) -> None:
        """What is resident."""
        self.counts = {key: count // 2 if key in self.stamp else count for key, count in self.counts.items()}


@miniature("survey of policies, card P9", "XC-EVICT-062", policies=["lfu-aged:every=2"])
class HalvesAfterCounting(Aging):
    """The event that completes a period is counted before the halving, not after it."""

    def note(self, event: Event, began: bool) -> None:
        """Count, then halve."""
        self.add(event)
        self.age(began)


@miniature("slipstream's clock sold as q36's", "XC-EVICT-064", policies=["lfu-aged:every=2"])
class HalvesByEvents(Aging):
    """The period is counted in events where passes are claimed."""

    def age(self, began: bool) -> None:
        """Every second event."""
        if self.events % self.parameter("every") == 0:
            self.halve()


@miniature("arXiv 2608.07911, its heap", "XC-EVICT-067", policies=["lfru"])
class QuotientsOfTheLatestTouch(Quotients):
    """Scores are kept as of the latest request, when every age is one."""

    def quotient(self, key: Key) -> Fraction:
        """What it was then."""
        return Fraction(self.requests[key])


@miniature("FineMoE, truncation", "XC-EVICT-068", policies=["lfru"])
class QuotientsInWholeNumbers(Quotients):
    """Scores are rounded down to whole numbers, so that most are zero."""

    def quotient(self, key: Key) -> Fraction:
        """Rounded down."""
        return Fraction(int(super().quotient(key)))


@miniature("ds4 3d65923c, in another policy", "XC-EVICT-066", policies=["lfru"])
class QuotientsOfResidents(Quotients):
    """An eviction takes the number of requests along."""

    def evict(self, key: Key) -> None:
        """Forget."""
        super().evict(key)
        self.requests[key] = 0


@miniature("llama-cpp-turboquant#300", "XC-EVICT-073", policies=["heat-lru:hot=1"])
class HeatOutlivesTheRecord(Protected):
    """A reloaded record is as hot as it was when it left."""

    def insert(self, key: Key) -> None:
        """Keep the hits."""
        known = self.hits.get(key, 0)
        super().insert(key)
        self.hits[key] = known


@miniature("llama-cpp-turboquant#300, notes and code", "XC-EVICT-075", policies=["heat-lru:hot=1"])
class HotAtTheThreshold(Protected):
    """A record with exactly the threshold of hits is protected, where more is claimed to be needed."""

    def order(self, key: Key) -> tuple[int, ...]:
        """Off by one."""
        return (self.hits[key] >= self.hot, self.stamp[key])


@miniature("simulators survey, mutants", "XC-EVICT-081", policies=["window:window=2"])
class WindowOneTokenLate(Windowed):
    """The window ends before the present token instead of with it."""

    def inside(self, key: Key) -> int:
        """Off by one at both ends."""
        end = self.tokens - 1
        return sum(end - self.parameter("window") <= token < end for token in self.used.get(key, ()))


@miniature("arXiv 2312.11514, on residents", "XC-EVICT-082", policies=["window:window=2"])
class WindowOfResidents(Windowed):
    """An eviction ends the uses of the record inside the window."""

    def evict(self, key: Key) -> None:
        """Forget."""
        super().evict(key)
        self.used.pop(key, None)


@miniature("a simulator whose seed is read and dropped", "XC-EVICT-088", policies=["random:seed=7"])
class RandomWithoutItsSeed(Noting):
    """The draw does not depend on the seed."""

    def victim(self, layer: int, held: set[Key]) -> Key:
        """The hash of everything else."""
        free = sorted((key for key in self.stamp if key not in held), key=lambda key: self.inserted[key])
        text = b"%d %d %d" % (self.events, len(free), free[0].layer)
        return free[int.from_bytes(blake2b(text, digest_size=8).digest(), "big") % len(free)]


@miniature("simulators survey", "XC-EVICT-087", policies=["random"])
class PriorityDrawnAtTheInsert(PlainCache):
    """A random priority is drawn once, when a record is loaded, which favours what is old."""

    def order(self, key: Key) -> tuple[int, ...]:
        """The hash of the insert."""
        return (int.from_bytes(blake2b(b"%d" % self.inserted[key], digest_size=8).digest(), "big"),)
