"""The wrong ones that hold bytes: every answer about hits and victims is right, and what is computed with is not."""

from __future__ import annotations

from typing import Any

from expertcache_conformance.adapters.protocol import Config
from expertcache_conformance.miniatures.holding import Holding
from expertcache_conformance.miniatures.wrong import miniature
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

CAPABILITIES = ["leases", "faults", "resize", "reset", "rebind", "seeds", "prefetch", "bytes"]


@miniature("ds4#384", "XC-BYTES-001", capabilities=CAPABILITIES)
class RefillsWhatAStepStillReads(Holding):
    """Every third read goes into the slot that was taken longest ago, whoever still computes with it."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.taken: list[int] = []

    def take(self) -> int:
        """The ring's next slot."""
        slot = super().take()
        self.taken.append(slot)
        return slot if len(self.taken) % 3 else self.taken[0]

    def give(self, slot: int) -> None:
        """A slot with two owners is given back once."""
        if slot not in self.free:
            super().give(slot)


@miniature("bvi#3, colibri#78", "XC-BYTES-002", capabilities=CAPABILITIES)
class KeepsBytesOfAFailedRead(Holding):
    """Half of a record has come when its read fails; the next read of it goes on from there, in another slot."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.half: set[Key] = set()

    def fail(self, key: Key) -> None:
        """Remember how far it came."""
        super().fail(key)
        self.half.add(key)

    def fill(self, key: Key) -> None:
        """Read what is believed to be lacking."""
        record, slot = self.source(key), self.place[key]
        before = self.memory[slot].ljust(len(record), b"\0")
        start = len(record) // 2 if key in self.half else 0
        self.half.discard(key)
        self.memory[slot] = before[:start] + record[start:]


@miniature("bvi#3", "XC-BYTES-001", capabilities=CAPABILITIES)
class PublishesBeforeTheLastChunk(Holding):
    """The first three of four chunks stand for all."""

    def fill(self, key: Key) -> None:
        """Leave what the slot had at its end."""
        record, slot = self.source(key), self.place[key]
        most = len(record) * 3 // 4
        self.memory[slot] = record[:most] + self.memory[slot].ljust(len(record), b"\0")[most : len(record)]


@miniature("expertcache", "XC-BYTES-001", capabilities=CAPABILITIES)
class GivesASlotTwice(Holding):
    """Every second eviction puts its slot on the free list twice, so that two records share it later."""

    evictions = 0

    def give(self, slot: int) -> None:
        """Once, or twice."""
        self.evictions += 1
        super().give(slot)
        if self.evictions % 2 == 0:
            super().give(slot)


@miniature("llama.cpp#23170", "XC-BYTES-003", capabilities=CAPABILITIES)
class ReadsTheOldModelsFiles(Holding):
    """A rebind drops what is resident and leaves the files open that it was read from."""

    def source(self, key: Key) -> bytes:
        """The model that was opened first."""
        return self.config.content(key)


@miniature("expertcache", "XC-BYTES-001", capabilities=CAPABILITIES)
class SeedsWithoutReading(Holding):
    """Seeded records are marked resident, and nobody reads them."""

    def seed(self, keys: list[Key]) -> dict[str, Any]:
        """Leave in the slots what they had."""
        return super(Holding, self).seed(keys)


@miniature("expertcache", "XC-BYTES-001", capabilities=CAPABILITIES)
class OneScratchForAllThatIsNotKept(Holding):
    """What is not kept is read into one scratch slot, where the next such record replaces it."""

    scratch = b""

    def select(self, event: Event) -> dict[str, Any]:
        """Read what is not kept, one after the other."""
        answer = super().select(event)
        for key in answer.get("bypassed", ()):
            self.scratch = self.source(key)
        return answer

    def read(self, ticket: int, key: Key) -> Any:
        """The slot's bytes, or what scratch has now."""
        return super().read(ticket, key) if key in self.place else self.scratch
