"""The wrong ones. Each is the plain cache with one thing broken, after a report from a real engine or simulator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from expertcache_conformance.adapters.protocol import Config
from expertcache_conformance.miniatures.plain import PlainCache, Refused
from expertcache_conformance.miniatures.subject import Miniature
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

MINIATURES: list[Miniature] = []


def miniature(source: str, *breaks: str, **claims: Any) -> Any:
    """Class decorator: list the cache under its name, with its docstring as the sentence."""

    def enlist(cache: type[Any]) -> type[Any]:
        name = "".join("_" + c.lower() if c.isupper() else c for c in cache.__name__).lstrip("_")
        sentence = " ".join((cache.__doc__ or "").split())
        profile = {"policies": ["lru"], **claims}
        MINIATURES.append(Miniature(name, sentence, source, frozenset(breaks), cache, profile))
        return cache

    return enlist


# ------------------------------------------------------------------------------------------ recency and counts


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


# ------------------------------------------------------------------------------------------ room


@miniature("simulators survey, mutants", "XC-RES-010", "XC-RES-012")
class OneSlotTooMany(PlainCache):
    """One record more than the budget allows is kept."""

    def within(self, layer: int, keys: list[Key]) -> bool:
        """Off by one."""
        return super().within(layer, keys[1:])


@miniature("simulators survey, mutants", "XC-RES-008")
class OneSlotTooFew(PlainCache):
    """The last slot is never used."""

    def make_room(self, key: Key, held: set[Key]) -> list[Key]:
        """Evict one too early, where something may be evicted."""
        victims = super().make_room(key, held)
        full = not self.fits(key.layer, [key, key])
        if full and not victims and any(other not in held for other in self.group(key.layer)):
            victims.append(self.victim(key.layer, held))
            self.evict(victims[-1])
        return victims


@miniature("ds4#504", "XC-RES-008")
class TornDownWhenFull(PlainCache):
    """When room is lacking, everything that is not in use is dropped."""

    def make_room(self, key: Key, held: set[Key]) -> list[Key]:
        """Evict all."""
        if super().fits(key.layer, [key]):
            return []
        victims = [other for other in self.group(key.layer) if other not in held]
        for victim in victims:
            self.evict(victim)
        return victims


@miniature("ds4#647", "XC-MODEL-004", budgets=["bytes"])
class CountedAtNominalSize(PlainCache):
    """Every record is charged what a record of the first layer takes."""

    def size(self, key: Key) -> int:
        """The first layer's size."""
        return self.config.geometry.size(0)


@miniature("mlx-lm #1588", "XC-MODEL-003", budgets=["slots", "bytes"])
class BytesIgnoredBesideSlots(PlainCache):
    """Given slots and bytes, only the slots are enforced."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        if self.slots is not None:
            self.bytes = None


@miniature("arXiv 2608.07911's quota rule, reversed", "XC-MODEL-006", settings={"scope": ["layer"]})
class RemainderToTheLastLayers(PlainCache):
    """The remainder of a budget split by layer goes to the last layers."""

    def quota(self, total: int | None, layer: int) -> int | None:
        """Counted from the other end."""
        return super().quota(total, self.config.geometry.layers - 1 - layer)


@miniature("colibri#1034", "XC-RES-011", capabilities=["resize"])
class ResizeIgnored(PlainCache):
    """A new budget is accepted and changes nothing."""

    def resize(self, slots: int | None, bytes: int | None) -> dict[str, Any]:  # noqa: A002
        """Nothing."""
        return {"victims": []}


@miniature("colibri#1543", "XC-RES-012")
class RefusalRefreshes(PlainCache):
    """An event that is refused because it cannot fit has refreshed its residents before."""

    def check(self, event: Event, held: set[Key]) -> None:
        """Touch first, then refuse."""
        try:
            super().check(event, held)
        except Refused:
            for key in event.keys:
                if key in self.stamp:
                    self.touch(key)
            raise


@miniature("ds4#802", "XC-RES-012")
class OversizedEventServedAnyway(PlainCache):
    """An event that cannot fit is loaded over the budget instead of being refused."""

    def check(self, event: Event, held: set[Key]) -> None:
        """Refuse nothing."""

    def victim(self, layer: int, held: set[Key]) -> Key:
        """Grow when there is none."""
        raise Refused("must-wait")

    def make_room(self, key: Key, held: set[Key]) -> list[Key]:
        """Evict what may be evicted, then grow."""
        victims = []
        free = [other for other in self.group(key.layer) if other not in held]
        while free and not self.fits(key.layer, [key]):
            victims.append(min(free, key=self.order))
            free.remove(victims[-1])
            self.evict(victims[-1])
        return victims


@miniature("BigMoeOnEdge#187", "XC-RES-014")
class CapacityZeroKeepsSome(PlainCache):
    """A capacity of zero is taken for a small one."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.slots = config.slots or 3


# ------------------------------------------------------------------------------------------ life cycle


@miniature("llama.cpp#23170", "XC-RES-023", capabilities=["rebind"])
class ModelChangeUnnoticed(PlainCache):
    """Records of the former model are hits for the new one."""

    def rebind(self, fingerprint: str) -> None:
        """Nothing."""


@miniature("ds4 8edc3c7d, inverted", "XC-RES-022", capabilities=["reset"])
class HistoryResetDropsContents(PlainCache):
    """Resetting what was learned drops the records too."""

    def reset(self, scope: str) -> None:
        """Everything, always."""
        super().reset("contents")


@miniature("colibri#441", "XC-RES-021", capabilities=["leases", "prefetch"])
class PrefetchEvicts(PlainCache):
    """A speculative read takes the least recent record's slot."""

    def prefetch(self, key: Key) -> dict[str, str]:
        """Evict when full."""
        if key not in self.stamp and any(other not in self.held() for other in self.group(key.layer)):
            self.make_room(key, self.held())
        return super().prefetch(key)


@miniature("ds4#629", "XC-RES-020", capabilities=["seeds"])
class SeedingIsAStub(PlainCache):
    """Seeding answers that all is well and installs nothing."""

    def seed(self, keys: list[Key]) -> dict[str, Any]:
        """Nothing."""
        return {"installed": [], "present": 0, "ignored": 0, "refused": len(keys)}


# ------------------------------------------------------------------------------------------ the conversation


@miniature("bowtie's miniatures", "XC-CONF-001")
class AnswersNonsense(PlainCache):
    """Victims are reported as slot numbers."""

    def step(self, event: Event) -> dict[str, Any]:
        """Slots instead of keys."""
        return {**super().step(event), "victims": [0]}


@miniature("Micro-Expert-Router@a8c30dc", "XC-CONF-002")
class VictimByLuck(PlainCache):
    """The victim depends on how many caches were opened before."""

    opened = 0

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        VictimByLuck.opened += 1
        self.luck = VictimByLuck.opened % 2

    def order(self, key: Key) -> tuple[int, ...]:
        """One way or the other."""
        return (-self.stamp[key] if self.luck else self.stamp[key],)


@miniature("BigMoeOnEdge@783d7b8", "XC-CONF-003", policies=["lru"], settings={"touch": ["router", "hits_first"]})
class ClaimsThenRefuses(PlainCache):
    """A touch order that the profile claims is refused when it is asked for."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        if config.settings.touch == "hits_first":
            raise Refused("unknown-name")
