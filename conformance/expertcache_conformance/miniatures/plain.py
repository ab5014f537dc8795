"""A plain right cache, written without the specification's machine: what the miniatures get wrong, one thing each.

Recency is a stamp in a dict, a victim is found by scanning, room is counted again whenever it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from expertcache_conformance.adapters.protocol import Config
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


class Refused(Exception):
    """A declared refusal."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class PlainCache:
    """LRU, FIFO, LFU and LFU-reset by scanning; rooms reserve; every capability.

    Each method that a miniature overrides does one thing.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.slots, self.bytes = config.slots, config.bytes
        self.fingerprint = config.fingerprint
        self.stamp: dict[Key, int] = {}
        """Resident and in-flight keys, with their latest touch."""
        self.inserted: dict[Key, int] = {}
        self.uses: dict[Key, int] = {}
        self.asked: dict[Key, int] = {}
        self.reading: set[Key] = set()
        self.pins: set[Key] = set()
        self.leases: dict[int, list[Key]] = {}
        self.clock = self.tickets = 0

    # ---- order

    def order(self, key: Key) -> tuple[int, ...]:
        """The victim is the key with the least order."""
        policies: dict[str, Callable[[Key], tuple[int, ...]]] = {
            "lru": lambda k: (self.stamp[k],),
            "fifo": lambda k: (self.inserted[k],),
            "lfu": lambda k: (self.asked.get(k, 0), self.stamp[k]),
            "lfu-reset": lambda k: (self.uses[k], self.stamp[k]),
        }
        return policies[self.config.policy](key)

    def touch(self, key: Key) -> None:
        """The key is the most recent."""
        self.clock += 1
        self.stamp[key] = self.clock

    def touch_order(self, event: Event, hits: list[Key]) -> Iterable[Key]:
        """The event's keys, the one to be the most recent last."""
        keys = list(dict.fromkeys(reversed(event.selections())))[::-1]
        return keys if self.config.settings.touch == "router" else sorted(keys, key=lambda key: key not in hits)

    def count(self, event: Event) -> None:
        """Count the request."""
        for key in event.keys:
            self.asked[key] = self.asked.get(key, 0) + 1

    def insert(self, key: Key) -> None:
        """The key takes a slot."""
        self.touch(key)
        self.inserted[key], self.uses[key] = self.clock, 1

    # ---- room

    def size(self, key: Key) -> int:
        """Bytes of the record."""
        return self.config.geometry.size(key.layer)

    def group(self, layer: int) -> list[Key]:
        """The keys that share a quota with the layer."""
        return [key for key in self.stamp if self.config.settings.scope == "global" or key.layer == layer]

    def quota(self, total: int | None, layer: int) -> int | None:
        """The layer's part of a budget."""
        if total is None or self.config.settings.scope == "global":
            return total
        layers = self.config.geometry.layers
        return total // layers + (layer < total % layers)

    def fits(self, layer: int, more: Iterable[Key] = ()) -> bool:
        """Whether the layer's group and some more keys fit its quota."""
        return self.within(
            layer, [*(self.stamp if self.config.settings.scope == "global" else self.group(layer)), *more]
        )

    def within(self, layer: int, keys: list[Key]) -> bool:
        """Whether these keys alone fit the layer's quota."""
        slots, size = self.quota(self.slots, layer), self.quota(self.bytes, layer)
        return (slots is None or len(keys) <= slots) and (size is None or sum(map(self.size, keys)) <= size)

    def held(self) -> set[Key]:
        """Keys that may not be evicted."""
        return {key for keys in self.leases.values() for key in keys} | self.reading | self.pins

    def victim(self, layer: int, held: set[Key]) -> Key:
        """The least evictable key; raises where there is none."""
        free = [key for key in self.group(layer) if key not in held]
        if not free:
            raise Refused("must-wait")
        return min(free, key=self.order)

    def evict(self, key: Key) -> None:
        """The key leaves."""
        del self.stamp[key]

    def make_room(self, key: Key, held: set[Key]) -> list[Key]:
        """Evict until the key fits."""
        victims = []
        while not self.fits(key.layer, [key]):
            victims.append(self.victim(key.layer, held))
            self.evict(victims[-1])
        return victims

    def check(self, event: Event, held: set[Key]) -> None:
        """Refuse, before anything changes, what cannot be served."""
        own = list(event.keys)
        for stay, code in ((self.pins, "event-too-large"), (held, "must-wait")):
            others = [key for key in self.group(event.layer) if key in stay and key not in own] if stay else []
            if not self.within(event.layer, own + others):
                raise Refused(code)

    # ---- what the suite calls

    def step(self, event: Event) -> dict[str, Any]:
        """Select, read, release."""
        answer = self.select(event)
        for key in answer["reads"]:
            self.complete(key)
        self.release(answer["ticket"])
        return answer

    def select(self, event: Event) -> dict[str, Any]:
        """Judge, lease, make room."""
        keys = event.keys
        hits = [key for key in keys if key in self.stamp and key not in self.reading]
        misses = [key for key in keys if key not in hits]
        joined = [key for key in misses if key in self.reading]
        if self.slots == 0 or self.bytes == 0:
            self.tickets += 1
            self.leases[self.tickets] = []
            return {"ticket": self.tickets, "hits": [], "misses": [], "bypassed": keys, "reads": [], "victims": []}
        if len(joined) < len(misses):
            self.check(event, self.held())
        self.tickets += 1
        self.leases[self.tickets] = list(keys)
        self.count(event)
        for key in hits + joined:
            self.uses[key] += 1
        reads = [key for key in misses if key not in joined]
        victims = self.load(reads, self.held())
        for key in self.touch_order(event, hits):
            self.touch(key)
        return {
            "ticket": self.tickets,
            "hits": hits,
            "misses": misses,
            "victims": victims,
            "reads": reads,
            "joined": joined,
        }

    def load(self, reads: list[Key], held: set[Key]) -> list[Key]:
        """Make room for the event's reads and reserve it; return the victims."""
        victims = []
        for key in reads:
            victims += self.make_room(key, held)
            self.insert(key)
            self.reading.add(key)
        return victims

    def complete(self, key: Key) -> Any:
        """Publish."""
        if key not in self.reading:
            raise Refused("wrong-state")
        self.reading.discard(key)

    def fail(self, key: Key) -> None:
        """Give the room back."""
        self.complete(key)
        self.evict(key)
        for keys in self.leases.values():
            keys[:] = [other for other in keys if other != key]

    def release(self, ticket: int) -> Any:
        """End the lease."""
        if ticket not in self.leases or self.reading & set(self.leases[ticket]):
            raise Refused("wrong-state")
        del self.leases[ticket]

    def pin(self, key: Key) -> None:
        """Pin."""
        if key not in self.stamp or key in self.reading:
            raise Refused("wrong-state")
        self.pins.add(key)

    def unpin(self, key: Key) -> None:
        """Unpin."""
        self.pins.discard(key)

    def resize(self, slots: int | None, bytes: int | None) -> dict[str, Any]:  # noqa: A002
        """Shrink at once."""
        self.slots, self.bytes = slots, bytes
        victims = []
        for layer in self.config.geometry.routed:
            while not self.fits(layer):
                victims.append(self.victim(layer, self.held()))
                self.evict(victims[-1])
        return {"victims": victims}

    def reset(self, scope: str) -> None:
        """Forget counts, or everything."""
        self.asked.clear()
        self.uses = dict.fromkeys(self.uses, 0)
        if scope == "contents":
            self.stamp.clear()

    def rebind(self, fingerprint: str) -> None:
        """Drop everything of another model."""
        if fingerprint != self.fingerprint:
            self.reset("contents")
            self.fingerprint = fingerprint

    def seed(self, keys: list[Key]) -> dict[str, Any]:
        """Fill free room."""
        model, installed = self.config.geometry, []
        counts = {"present": 0, "ignored": 0, "refused": 0}
        for key in keys:
            if key.layer not in model.routed or key.expert >= model.experts:
                counts["ignored"] += 1
            elif key in self.stamp:
                counts["present"] += 1
            elif self.fits(key.layer, [key]):
                self.insert(key)
                installed.append(key)
            else:
                counts["refused"] += 1
        return {"installed": installed, **counts}

    def prefetch(self, key: Key) -> dict[str, str]:
        """Take free room, or leave it."""
        if key in self.stamp:
            return {"outcome": "in-flight" if key in self.reading else "resident"}
        if not self.fits(key.layer, [key]):
            return {"outcome": "refused"}
        self.insert(key)
        self.reading.add(key)
        return {"outcome": "started"}
