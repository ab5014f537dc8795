"""The odd ones: unusual and legal. The suite must pass them; whoever tightens it finds out here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from expertcache_conformance.adapters.protocol import Config
from expertcache_conformance.miniatures.admitting import Hotter, Sighted
from expertcache_conformance.miniatures.counts import LazyAging
from expertcache_conformance.miniatures.ghosts import FourLists
from expertcache_conformance.miniatures.holding import CopiesWhatItHolds, Holding, ReadsAtEveryLook
from expertcache_conformance.miniatures.plain import PlainCache
from expertcache_conformance.miniatures.queues import ArrayClock, LinkedSieve
from expertcache_conformance.miniatures.speculating import Speculating
from expertcache_conformance.miniatures.subject import Miniature
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

EVERYTHING = ["leases", "faults", "pins", "resize", "reset", "rebind", "seeds", "prefetch"]


class BackwardsCache(PlainCache):
    """Picks the victims of an event as one batch, and reports in reverse order, as lists of numpy numbers."""

    def load(self, reads: list[Key], held: set[Key]) -> list[Key]:
        """One scan for all victims."""
        layer = reads[0].layer if reads else 0
        free = sorted((key for key in self.group(layer) if key not in held), key=self.order, reverse=True)
        victims = []
        while not self.fits(layer, reads):
            victims.append(free.pop())
            self.evict(victims[-1])
        for key in reads:
            self.insert(key)
            self.reading.add(key)
        return victims[::-1]

    def select(self, event: Event) -> dict[str, Any]:
        """Turn the answer round."""
        answer = super().select(event)
        return {name: value if name == "ticket" else list(value)[::-1] for name, value in answer.items()}

    def step(self, event: Event) -> Any:
        """An object instead of a mapping, with int16 pairs."""
        answer = super().step(event)
        return SimpleNamespace(**{
            name: [np.asarray(key, dtype=np.int16) for key in value]
            for name, value in answer.items() if name != "ticket"
        })  # fmt: skip


class QuietCache(PlainCache):
    """Does not say what it evicts: only its hits are judged."""

    def step(self, event: Event) -> dict[str, Any]:
        """Hits, and nothing else."""
        return {"hits": super().step(event)["hits"]}


class OneKeyCache:
    """Takes one key at a time, and is right about that."""

    def __init__(self, config: Config) -> None:
        self.slots, self.keys = config.slots or 0, dict[Key, None]()

    def access(self, key: Key) -> dict[str, Any]:
        """Textbook LRU on a dict."""
        hit = key in self.keys
        if not self.slots:
            return {"hit": False, "bypassed": True}
        self.keys.pop(key, None)
        victims: list[Key] = []
        if not hit and len(self.keys) >= self.slots:
            victims = [next(iter(self.keys))]
            del self.keys[victims[0]]
        self.keys[key] = None
        return {"hit": hit, "victims": victims}


ODDITIES = [
    Miniature("plain_cache", "The plain cache itself, with everything that it can do.", "expertcache", frozenset(),
              PlainCache, {"policies": ["lru", "fifo", "lfu", "lfu-reset"], "budgets": ["slots", "bytes"],
                           "settings": {"scope": ["global", "layer"], "touch": ["router", "hits_first"]},
                           "capabilities": EVERYTHING}),
    Miniature("backwards_cache", "Victims chosen as a batch, everything reported in reverse, as numpy numbers.",
              "ds4#1047 plans victims at once", frozenset(), BackwardsCache,
              {"policies": ["lru", "lfu"], "capabilities": ["leases", "faults"]}),
    Miniature("quiet_cache", "A cache that does not say what it evicts.", "counters-only engines", frozenset(),
              QuietCache, {"policies": ["lru"], "victims": False}),
    Miniature("one_key_cache", "A textbook LRU that takes one key at a time.", "most caches in the wild", frozenset(),
              OneKeyCache, {"policies": ["lru"], "replay": "sequential"}),
    Miniature("array_clock", "CLOCK as an array of slots with a hand that is an index.", "slotstream; most kernels",
              frozenset(), ArrayClock, {"policies": ["clock"]}),
    Miniature("linked_sieve", "SIEVE as a linked list with a hand that is a key.", "Zhang et al. 2024, algorithm 1",
              frozenset(), LinkedSieve, {"policies": ["sieve"]}),
    Miniature("lazy_aging", "Aged counts that are never halved: requests grow dearer instead, in exact fractions.",
              "exponential weights of stream algorithms", frozenset(), LazyAging,
              {"policies": ["lfu-aged:every=2:places=64"]}),
    Miniature("sighted_cache", "LRU that keeps a record at its third sighting, and counts them in a Counter.",
              "turboquant", frozenset(), Sighted,
              {"policies": ["lru"], "settings": {"admission": ["sightings:n=3", "sightings:n=2:again=3"]},
               "capabilities": ["reset"]}),
    Miniature("hotter_cache", "LRU with a margin, by requests that are counted for the policy anyhow.", "colibri",
              frozenset(), Hotter,
              {"policies": ["lru"], "settings": {"admission": ["hysteresis", "hysteresis:margin=0"]},
               "capabilities": ["reset"]}),
    Miniature("speculating_cache", "LRU that knows what became of its prefetches.", "ChampSim#154", frozenset(),
              Speculating, {"policies": ["lru"], "capabilities": [*EVERYTHING, "prefetch-counts"]}),
    Miniature("holding_cache", "LRU and LFU with slots of memory that are filled when a read ends.", "expertcache",
              frozenset(), Holding, {"policies": ["lru", "lfu"], "capabilities": [*EVERYTHING, "bytes"]}),
    Miniature("copies_what_it_holds", "Every event gets copies, as early as they can be had, as memoryviews.",
              "engines that stage for a device", frozenset(), CopiesWhatItHolds,
              {"policies": ["lru"], "capabilities": [*EVERYTHING, "bytes"]}),
    Miniature("reads_at_every_look", "No slots at all: each look reads the file twice and compares.",
              "engines on mmap", frozenset(), ReadsAtEveryLook,
              {"policies": ["lru"], "capabilities": [*EVERYTHING, "bytes"]}),
    Miniature("four_lists", "ARC with its four lists as the paper has them.", "Megiddo, Modha 2003", frozenset(),
              FourLists, {"policies": ["arc"]}),
]  # fmt: skip
"""Implementations that must pass whatever they claim."""
