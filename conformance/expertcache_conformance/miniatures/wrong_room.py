"""Wrong room: budgets, refusals, what becomes of a cache in the end, and answers that are none."""

from __future__ import annotations

from typing import Any

from expertcache_conformance.adapters.protocol import Config
from expertcache_conformance.miniatures.plain import PlainCache, Refused
from expertcache_conformance.miniatures.wrong import miniature
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

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
