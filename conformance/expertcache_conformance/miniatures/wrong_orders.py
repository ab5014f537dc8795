"""Wrong orders: what recency, counts and repeats do to who goes first."""

from __future__ import annotations

from collections.abc import Iterable

from expertcache_conformance.miniatures.plain import PlainCache
from expertcache_conformance.miniatures.wrong import miniature
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


@miniature("fak#13294", "XC-EVICT-021")
class FifoSoldAsLru(PlainCache):
    """A hit does not refresh recency."""

    def order(self, key: Key) -> tuple[int, ...]:
        """By age of insertion."""
        return (self.inserted[key],)


@miniature("simulators survey, mutants", "XC-EVICT-021")
class TouchLostNowAndThen(PlainCache):
    """Every thousandth touch is lost, which changes no total."""

    touches = 0

    def touch(self, key: Key) -> None:
        """Lose one in a thousand."""
        self.touches += 1
        if self.touches % 1000 or key not in self.stamp:
            super().touch(key)


@miniature("colibri#1571", "XC-EVICT-022")
class InsertsAtTheColdEnd(PlainCache):
    """A new record is filed as the least recent, because it is re-filed before it is stamped."""

    def touch_order(self, event: Event, hits: list[Key]) -> Iterable[Key]:
        """Touch the hits only; file each new record before everything that is resident."""
        order = list(super().touch_order(event, hits))
        for key in order:
            if key not in hits:
                self.stamp[key] = min(self.stamp.values()) - 1
        return [key for key in order if key in hits]


@miniature("libCacheSim; MoE-Infinity sold as LFU", "XC-EVICT-031", policies=["lfu"])
class CountsLost(PlainCache):
    """An evicted key's count starts again."""

    def order(self, key: Key) -> tuple[int, ...]:
        """By uses since the insert."""
        return (self.uses[key], self.stamp[key])


@miniature("LFU of BigMoeOnEdge sold as LFU-reset", "XC-EVICT-041", policies=["lfu-reset"])
class CountsKept(PlainCache):
    """An evicted key comes back with its old count."""

    def order(self, key: Key) -> tuple[int, ...]:
        """By requests ever."""
        return (self.asked[key], self.stamp[key])


@miniature("simulators survey, mutants", "XC-EVICT-032", policies=["lfu"])
class LfuTieByInsertion(PlainCache):
    """Of equal counts the earliest inserted goes."""

    def order(self, key: Key) -> tuple[int, ...]:
        """Ties by insertion."""
        return (self.asked[key], self.inserted[key])


@miniature("cacheus", "XC-EVICT-042", policies=["lfu-reset"])
class LfuTieByMostRecent(PlainCache):
    """Of equal counts the most recent goes."""

    def order(self, key: Key) -> tuple[int, ...]:
        """Ties to the most recent."""
        return (self.uses[key], -self.stamp[key])


@miniature("CLOCK-LRU-K's cap of 15", "XC-EVICT-033", policies=["lfu"])
class CountCeiling(PlainCache):
    """Counts stop at 15."""

    def order(self, key: Key) -> tuple[int, ...]:
        """By the capped count."""
        return (min(self.asked[key], 15), self.stamp[key])


@miniature("8-bit counters", "XC-EVICT-033", policies=["lfu"])
class CountsInOneByte(PlainCache):
    """Counts stop at 255."""

    def order(self, key: Key) -> tuple[int, ...]:
        """By the capped count."""
        return (min(self.asked[key], 255), self.stamp[key])


@miniature("a request and a miss that each count", "XC-EVICT-033", policies=["lru", "lfu"], capabilities=["leases"])
class JoinsCountTwice(PlainCache):
    """A request that joins a read in flight is counted as a request and again as a miss."""

    weight = 1

    def count(self, event: Event) -> None:
        """Count what joins by another weight."""
        super().count(event)
        for key in self.reading.intersection(event.keys):
            self.asked[key] += self.weight


@miniature("a join that is neither a hit nor a read", "XC-EVICT-033", policies=["lru", "lfu"], capabilities=["leases"])
class JoinsGoUncounted(JoinsCountTwice):
    """A request is counted where a read starts or a record is found, and a join is neither."""

    weight = -1


@miniature("a cache that cannot say what it evicts", "XC-EVICT-021", victims=False)
class FifoThatReportsHitsAlone(FifoSoldAsLru):
    """A hit does not refresh recency, and only hits tell."""


@miniature(
    "a setting that is read and dropped",
    "XC-RES-007",
    policies=["fifo", "lru"],
    settings={"repeats": ["promote", "ignore"]},
)
class RepeatsAlwaysPromote(PlainCache):
    """Repeats `ignore` is claimed, accepted, and not done."""


@miniature("ds4 touches hits first; lattice#903", "XC-RES-006")
class HitsFirstSoldAsRouter(PlainCache):
    """All hits of an event are touched before its misses."""

    def touch_order(self, event: Event, hits: list[Key]) -> Iterable[Key]:
        """Hits, then misses."""
        return sorted(super().touch_order(event, hits), key=lambda key: key not in hits)


@miniature("BigMoeOnEdge#126", "XC-RES-007")
class RepeatsDoNotPromote(PlainCache):
    """A later row asking for the same expert leaves its recency alone."""

    def touch_order(self, event: Event, hits: list[Key]) -> Iterable[Key]:
        """First appearances."""
        return event.keys
