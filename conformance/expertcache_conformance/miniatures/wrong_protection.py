"""Wrong protection, and lookups that find, publish or read what they must not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from expertcache_conformance.miniatures.plain import PlainCache, Refused
from expertcache_conformance.miniatures.wrong import miniature
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

# ------------------------------------------------------------------------------------------ protection


@miniature("vllm#50562", "XC-RES-005", policies=["lfu-reset"])
class EvictsItsOwnEvent(PlainCache):
    """A record just loaded has the lowest count and is the victim of the next miss of its own event."""

    def load(self, reads: list[Key], held: set[Key]) -> list[Key]:
        """Protect nothing of the event."""
        victims = []
        for key in reads:
            victims += self.make_room(key, self.pins)
            self.insert(key)
            self.reading.add(key)
        self.reading &= set(self.stamp)
        for keys in self.leases.values():
            keys[:] = [key for key in keys if key in self.stamp]
        return victims

    def touch_order(self, event: Event, hits: list[Key]) -> Iterable[Key]:
        """What is still there."""
        return [key for key in super().touch_order(event, hits) if key in self.stamp]

    def complete(self, key: Key) -> None:
        """Publish what is still there."""
        self.reading.discard(key)


@miniature("ds4#384", "XC-RES-004", "XC-RES-024", capabilities=["leases"])
class LeaseEndsAtEncode(PlainCache):
    """An event's records may be evicted once it is selected, before it has executed."""

    def held(self) -> set[Key]:
        """What is read or pinned, and the event being selected."""
        newest = self.leases.get(self.tickets, [])
        return set(newest) | self.reading | self.pins


@miniature("mlx-serve#449", "XC-RES-024", capabilities=["leases"])
class FallsBackToTheFirstSlot(PlainCache):
    """With every record held, the first slot is taken anyway."""

    def check(self, event: Event, held: set[Key]) -> None:
        """Refuse only what can never fit."""
        if not self.within(event.layer, list(event.keys)):
            raise Refused("event-too-large")

    def victim(self, layer: int, held: set[Key]) -> Key:
        """Slot 0."""
        try:
            return super().victim(layer, held)
        except Refused:
            return next(iter(self.group(layer)))


@miniature("colibri#229", "XC-RES-018", capabilities=["pins"])
class PinsForgotten(PlainCache):
    """Pinned records are evicted like any other."""

    def held(self) -> set[Key]:
        """Leases and reads only."""
        return super().held() - self.pins | {key for keys in self.leases.values() for key in keys}


@miniature("bugs survey, question 6", "XC-RES-019", capabilities=["pins"])
class UnpinRefreshes(PlainCache):
    """Ending a pin makes the record the most recent."""

    def unpin(self, key: Key) -> None:
        """Touch, too."""
        super().unpin(key)
        self.touch(key)


# ------------------------------------------------------------------------------------------ lookups


@miniature("mlx-serve#449", "XC-RES-002")
class DuplicateLookedUpTwice(PlainCache):
    """An expert that two rows ask for is looked up twice."""

    def step(self, event: Event) -> dict[str, Any]:
        """Report every selection."""
        answer = super().step(event)
        return {**answer, "misses": [key for key in event.selections() if key in answer["misses"]]}


@miniature("ds4#639", "XC-RES-003", "XC-RES-010")
class BudgetWithoutEffect(PlainCache):
    """The budget is accepted, nothing is reported evicted, and every record is read again on every token."""

    def step(self, event: Event) -> dict[str, Any]:
        """Forget everything first."""
        self.stamp.clear()
        return super().step(event)


@miniature("bam#39", "XC-MODEL-001")
class ExpertsAliased(PlainCache):
    """Residency is looked up by the expert's number alone."""

    def select(self, event: Event) -> dict[str, Any]:
        """Find the expert in any layer."""
        answer = super().select(event)
        known = {key.expert for key in self.stamp if key.layer != event.layer}
        aliased = [key for key in answer["misses"] if key.expert in known]
        hits = [*answer["hits"], *aliased]
        return {**answer, "hits": hits, "misses": [key for key in answer["misses"] if key not in aliased]}


@miniature("bam#39, with a stride", "XC-MODEL-001")
class KeysByArithmetic(PlainCache):
    """Residency is looked up by layer * 4 + expert, in a model of more experts than that."""

    def select(self, event: Event) -> dict[str, Any]:
        """Find the number, whosever it is."""
        known = {key.layer * 4 + key.expert for key in self.stamp if key.layer != event.layer}
        answer = super().select(event)
        aliased = [key for key in answer["misses"] if key.layer * 4 + key.expert in known]
        hits = [*answer["hits"], *aliased]
        return {**answer, "hits": hits, "misses": [key for key in answer["misses"] if key not in aliased]}


@miniature("neo4j#3181; bvi#3", "XC-RES-015", capabilities=["leases"])
class PublishedBeforeRead(PlainCache):
    """A record counts as resident as soon as its read has started."""

    def select(self, event: Event) -> dict[str, Any]:
        """A hit on what is in flight."""
        answer = super().select(event)
        return {
            **answer,
            "hits": [*answer["hits"], *answer.get("joined", [])],
            "misses": [key for key in answer["misses"] if key not in answer.get("joined", [])],
            "joined": [],
        }


@miniature("k3-out-of-core#32", "XC-RES-027", capabilities=["leases"])
class ReadTwice(PlainCache):
    """A record that another request is reading is read again."""

    def select(self, event: Event) -> dict[str, Any]:
        """Start the read anew."""
        answer = super().select(event)
        return {**answer, "reads": answer["reads"] + answer.get("joined", []), "joined": []}


@miniature("ds4 section 5.5", "XC-RES-016", capabilities=["faults"])
class FailedReadLeaksItsSlot(PlainCache):
    """The slot of a failed read is never used again."""

    leaked = 0

    def fail(self, key: Key) -> None:
        """Lose the slot."""
        super().fail(key)
        self.leaked += 1

    def fits(self, layer: int, more: Iterable[Key] = ()) -> bool:
        """Without the lost slots."""
        return super().fits(layer, [*more, *[Key(0, 0)] * self.leaked])


@miniature("colibri#78", "XC-RES-016", capabilities=["faults"])
class FailedReadIsPublished(PlainCache):
    """A failed read leaves its record resident."""

    def fail(self, key: Key) -> None:
        """Publish."""
        self.complete(key)
