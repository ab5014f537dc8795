"""A plain right cache that holds bytes: slots of memory, filled when a read ends, free again when a record leaves."""

from __future__ import annotations

from typing import Any

from expertcache_conformance.adapters.protocol import Config
from expertcache_conformance.miniatures.plain import PlainCache, Refused
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


class Holding(PlainCache):
    """Each resident or in-flight record has a slot; what is not kept is read when it is asked for."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.memory: list[bytes] = []
        self.place: dict[Key, int] = {}
        self.free: list[int] = []

    # ---- slots

    def take(self) -> int:
        """A slot in nobody's use."""
        if not self.free:
            self.free.append(len(self.memory))
            self.memory.append(b"")
        return self.free.pop()

    def give(self, slot: int) -> None:
        """A slot is free again."""
        self.free.append(slot)

    def insert(self, key: Key) -> None:
        """The key takes a slot."""
        super().insert(key)
        self.place[key] = self.take()

    def evict(self, key: Key) -> None:
        """The key's slot is free."""
        super().evict(key)
        self.give(self.place.pop(key))

    # ---- bytes

    def source(self, key: Key) -> bytes:
        """The record in its file."""
        return self.config.content(key, self.fingerprint)

    def fill(self, key: Key) -> None:
        """Read the record into its slot."""
        self.memory[self.place[key]] = self.source(key)

    def complete(self, key: Key) -> dict[str, Any]:
        """Fill, publish; what a shrink still owes may leave now."""
        super().complete(key)
        self.fill(key)
        return {"victims": [] if any(key in keys for keys in self.leases.values()) else self.shrink()}

    def fail(self, key: Key) -> None:
        """Give the room back, and fill nothing."""
        PlainCache.complete(self, key)
        self.evict(key)
        for keys in self.leases.values():
            keys[:] = [other for other in keys if other != key]

    def seed(self, keys: list[Key]) -> dict[str, Any]:
        """Seeds are read at once."""
        answer = super().seed(keys)
        for key in answer["installed"]:
            self.fill(key)
        return answer

    def read(self, ticket: int, key: Key) -> Any:
        """The slot's bytes; what has none was not kept."""
        return self.memory[self.place[key]] if key in self.place else self.source(key)

    # ---- what may happen while events are outstanding

    def shrink(self) -> list[Key]:
        """Evict what exceeds the budget and is not held."""
        victims = []
        for layer in self.config.geometry.routed:
            while not self.fits(layer) and set(self.group(layer)) - self.held():
                victims.append(self.victim(layer, self.held()))
                self.evict(victims[-1])
        return victims

    def resize(self, slots: int | None, bytes: int | None) -> dict[str, Any]:  # noqa: A002
        """What is held leaves later."""
        self.slots, self.bytes = slots, bytes
        return {"victims": self.shrink()}

    def release(self, ticket: int) -> dict[str, Any]:
        """End the lease, and a shrink that had to wait for it goes on."""
        super().release(ticket)
        return {"victims": self.shrink()}

    def reset(self, scope: str) -> None:
        """Contents go when nobody holds or reads anything."""
        if scope == "contents":
            if self.leases or self.reading:
                raise Refused("still-in-use")
            for key in list(self.stamp):
                self.evict(key)
        super().reset(scope)


class CopiesWhatItHolds(Holding):
    """Each event gets copies of its own, which it takes as early as it may, and answers as a memoryview."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.copies: dict[tuple[int, Key], bytes] = {}

    def select(self, event: Event) -> dict[str, Any]:
        """Copy what is there."""
        answer = super().select(event)
        for key in answer["hits"]:
            self.copies[answer["ticket"], key] = self.memory[self.place[key]]
        return answer

    def complete(self, key: Key) -> dict[str, Any]:
        """Copy what has come."""
        answer = super().complete(key)
        for ticket, keys in self.leases.items():
            if key in keys:
                self.copies[ticket, key] = self.memory[self.place[key]]
        return answer

    def read(self, ticket: int, key: Key) -> memoryview:
        """The event's copy."""
        return memoryview(self.copies.get((ticket, key), b"") or self.source(key))


class ReadsAtEveryLook(Holding):
    """Keeps no bytes at all: every look reads the file, twice, and compares."""

    def fill(self, key: Key) -> None:
        """Nothing to fill."""

    def read(self, ticket: int, key: Key) -> bytearray:
        """Both must be the same."""
        first, second = self.source(key), self.source(key)
        if first != second:
            raise Refused("wrong-file")
        return bytearray(first)
