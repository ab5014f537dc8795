"""Least-Stale beside its rivals, as the survey of policies tabulates it (4.4): with prefetch and without.

Recorded decode of Qwen3-30B-A3B and Gemma-4-26B-A4B, slots of 1, 5 and 25 % of layers x 128, whole events. The survey's
third trace, gpt-oss-120b, is not part of this project. Its prefetch is synthetic: it predicts 80 % of what the next
layer will ask for, filled up with random experts to 1.5 x top-k, and evicts like a miss. Its random draws are its own,
so its numbers can be met and not repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

import attrs
import pytest

from expertcache_spec.eviction import Policy, Value, make
from expertcache_spec.eviction.engines.readings import READINGS
from expertcache_spec.model import Budget, Key
from expertcache_spec.replay import replay
from expertcache_spec.residency import Settings
from expertcache_spec.trace import Event, Trace

from . import recordings

SLOTS = {"qwen": (61, 307, 1536), "gemma": (38, 192, 960)}
Named = tuple[str, Mapping[str, Value]]
LRU: Named = ("least-stale", {"generations": False, "requeue": True})
UNSTAMPED: Named = ("least-stale", {**LRU[1], "prefetch_stamps": False})
RING: Named = ("least-stale", {"order": "ring"})
AHEAD: Named = ("farthest-layer", {"distance": "ahead"})

# Hits in percent of decode lookups, and collisions, at the three sizes.
WITHOUT: dict[tuple[str, str], tuple[Named, str]] = {
    ("qwen", "LRU"): (("lru", {}), "0.0/7.0 37.7/0.8 82.7/0.8"),
    ("qwen", "LS-fifo"): (("least-stale", {}), "0.0/7.0 37.7/0.8 82.7/0.8"),
    ("qwen", "LFU"): (("lfu", {}), "12.1/1.2 36.2/1.3 82.3/0.7"),
    ("qwen", "LS-(layer,expert)"): (("least-stale", {"order": "layer"}), "0.0/7.0 38.3/0.1 62.6/0.0"),
    ("qwen", "LS-ring"): (RING, "6.1/0.4 38.1/0.2 71.6/0.0"),
    ("qwen", "LS-rnb"): (("least-stale", READINGS["rnb"].parameters), "0.0/7.0 38.3/0.4 63.0/0.3"),
    ("qwen", "FLD"): (AHEAD, "6.0/0.3 23.3/0.2 65.3/0.0"),
    ("gemma", "LRU"): (("lru", {}), "0.0/6.6 35.4/0.7 79.2/0.7"),
    ("gemma", "LS-fifo"): (("least-stale", {}), "0.0/6.6 35.4/0.7 79.2/0.7"),
    ("gemma", "LFU"): (("lfu", {}), "11.2/1.8 38.2/1.4 80.7/0.4"),
    ("gemma", "LS-(layer,expert)"): (("least-stale", {"order": "layer"}), "0.0/6.9 35.8/0.1 59.2/0.1"),
    ("gemma", "LS-ring"): (RING, "5.0/0.9 36.0/0.5 72.4/0.0"),
    ("gemma", "LS-rnb"): (("least-stale", READINGS["rnb"].parameters), "0.0/6.6 35.2/0.9 59.2/0.9"),
    ("gemma", "FLD"): (AHEAD, "5.1/0.8 25.3/0.4 69.9/0.0"),
}
WITH: dict[tuple[str, str], tuple[Named, str]] = {
    ("qwen", "LRU, insert stamps"): (LRU, "78.2/0.8 78.2/5.2 91.8/0.4"),
    ("qwen", "LS-fifo"): (("least-stale", {}), "78.2/0.8 78.2/5.2 91.8/0.4"),
    ("qwen", "LS-ring"): (RING, "78.8/0.2 83.0/0.3 91.8/0.1"),
    ("qwen", "FLD"): (AHEAD, "79.1/0.2 83.0/0.1 91.0/0.1"),
    ("qwen", "LFU"): (("lfu", {}), "16.5/64.3 42.2/43.5 86.5/9.4"),
    ("qwen", "LRU, insert unstamped"): (UNSTAMPED, "0.0/79.5 37.7/48.4 82.7/13.3"),
    ("gemma", "LRU, insert stamps"): (LRU, "77.0/0.9 77.0/5.3 91.9/0.4"),
    ("gemma", "LS-fifo"): (("least-stale", {}), "77.0/0.8 77.0/5.2 91.9/0.4"),
    ("gemma", "LS-ring"): (RING, "77.9/0.5 82.0/0.5 91.2/0.1"),
    ("gemma", "FLD"): (AHEAD, "77.6/0.4 82.1/0.3 90.8/0.1"),
    ("gemma", "LFU"): (("lfu", {}), "15.3/64.3 44.4/41.7 84.7/10.7"),
    ("gemma", "LRU, insert unstamped"): (UNSTAMPED, "0.0/78.5 35.4/49.8 79.3/16.1"),
}


def published(text: str) -> list[tuple[float, float]]:
    """Pairs of hits and collisions."""
    return [(float(hit), float(collision)) for hit, collision in (cell.split("/") for cell in text.split())]


def without_prefetch(name: str, policy: Named) -> Iterator[tuple[float, float]]:
    """Hits and collisions in percent of decode lookups, at each size."""
    for slots in SLOTS[name]:
        settings = Settings(room="trim", overflow="waves")
        result = replay(recordings.bigmoe(name), policy[0], Budget(slots=slots), settings, parameters=policy[1])
        rows = [row for phase, row in result.counters.per_phase().items() if str(phase).startswith("decode")]
        lookups = sum(row.lookups for row in rows)
        yield 100 * sum(row.hits for row in rows) / lookups, 100 * sum(row.collisions for row in rows) / lookups


@pytest.mark.nightly
@pytest.mark.rule("XC-EVICT-200", "XC-EVICT-204", "XC-EVICT-205", "XC-EVICT-210", "XC-EVICT-211", "XC-METRIC-010")
@pytest.mark.parametrize(("name", "policy"), list(WITHOUT))
def test_without_prefetch_every_cell_of_the_table_is_met_to_a_quarter_of_a_point(name: str, policy: str) -> None:
    named, cells = WITHOUT[name, policy]
    for found, expected in zip(without_prefetch(name, named), published(cells), strict=True):
        assert found == pytest.approx(expected, abs=0.25)


# ---------------------------------------------------------------------------------------------- with prefetch


@attrs.define
class Cache:
    """Equal slots, an event loaded whole and then evicted down; a prefetch evicts, which the machine's does not."""

    policy: Policy
    slots: int
    resident: dict[Key, None] = attrs.field(factory=dict)
    gone: dict[Key, int] = attrs.field(factory=dict)
    clock: int = 0

    def evict(self, held: tuple[Key, ...], number: int, room: int = 0) -> None:
        while len(self.resident) + room > self.slots:
            victim = self.policy.victim(held, None)
            if victim is None:
                return
            self.policy.evict(victim)
            del self.resident[victim]
            self.gone[victim] = number

    def ask(self, event: Event) -> tuple[int, int]:
        """Serve the event; its hits and collisions."""
        keys, number = event.keys, event.pass_index
        hits = [key for key in keys if key in self.resident]
        misses = [key for key in keys if key not in self.resident]
        stamps = {key: self.clock + place for place, key in enumerate(keys)}
        self.clock += len(keys)
        self.policy.begin(event)
        self.policy.hits(hits, stamps)
        self.policy.inserts(misses, stamps)
        self.policy.settle(keys)
        self.resident.update(dict.fromkeys(misses))
        self.evict(keys, number)
        return len(hits), sum(self.gone.get(key) == number for key in misses)

    def prefetch(self, key: Key, number: int) -> None:
        """Load the key, unless it is there."""
        if key not in self.resident:
            self.evict((), number, room=1)
            self.policy.insert(key, self.clock)
            self.clock += 1
            self.resident[key] = None


def predicted(event: Event, experts: int, random: Random) -> list[Key]:
    """Four fifths of what the event will ask for, and others up to one and a half times as many keys."""
    found = [key for key in event.keys if random.random() < 0.8]
    others = [Key(event.layer, expert) for expert in range(experts) if Key(event.layer, expert) not in event.keys]
    return found + random.sample(others, round(1.5 * len(event.keys)) - len(found))


def with_prefetch(trace: Trace, policy: Named, slots: int) -> tuple[float, float]:
    """As `without_prefetch`, for one size."""
    cache, random = Cache(make(policy[0], parameters=policy[1])(), slots), Random(7)
    lookups = hits = collisions = 0
    for event, following in zip(trace.events, (*trace.events[1:], None), strict=True):
        hit, collided = cache.ask(event)
        if event.phase == "decode":
            lookups, hits, collisions = lookups + len(event.keys), hits + hit, collisions + collided
            if following is not None and following.layer > event.layer:  # the next layer, never the next pass
                for key in predicted(following, trace.geometry.experts, random):
                    cache.prefetch(key, event.pass_index)
    return 100 * hits / lookups, 100 * collisions / lookups


def cells(*, lfu: bool) -> list[object]:
    """Every cell with prefetch, of LFU at the two smaller sizes or of all else; two of them are for every day."""
    chosen = [(name, policy, size) for name, policy in WITH for size in range(3)]
    daily = [("gemma", policy, 1) for _, policy in WITH if "LRU" in policy]
    return [
        pytest.param(*cell, marks=() if cell in daily else pytest.mark.nightly)
        for cell in chosen
        if (cell[1] == "LFU" and cell[2] < 2) is lfu
    ]


@pytest.mark.rule("XC-EVICT-202")
@pytest.mark.parametrize(("name", "policy", "size"), cells(lfu=False))
def test_with_prefetch_the_cells_of_the_table_are_met_to_a_point_and_a_half(name: str, policy: str, size: int) -> None:
    named, row = WITH[name, policy]
    found = with_prefetch(recordings.bigmoe(name), named, SLOTS[name][size])
    assert found == pytest.approx(published(row)[size], abs=1.5)


@pytest.mark.rule("XC-EVICT-202")
@pytest.mark.parametrize(("name", "policy", "size"), cells(lfu=True))
def test_of_lfu_with_prefetch_at_the_smaller_sizes_only_the_direction_is_met(name: str, policy: str, size: int) -> None:
    # Here a prefetched key has the count of its requests and is the most recent of that count. What the survey's LFU
    # does is not said; its hits are 10 to 23 points lower. Evicting fresh prefetches is what both do.
    named, row = WITH[name, policy]
    hits, collisions = with_prefetch(recordings.bigmoe(name), named, SLOTS[name][size])
    lru = published(WITH[name, "LRU, insert stamps"][1])[size][0]
    assert published(row)[size][0] < hits < lru - 15
    assert collisions > 25


@pytest.mark.rule("XC-EVICT-202")
def test_whether_a_prefetch_stamps_moves_more_than_the_choice_between_lru_and_least_stale() -> None:
    trace, slots = recordings.beginning(recordings.bigmoe("gemma"), 60), 192
    lru, unstamped, stale = (with_prefetch(trace, named, slots)[0] for named in (LRU, UNSTAMPED, ("least-stale", {})))
    assert lru - unstamped > 25
    assert abs(lru - stale) < 1
