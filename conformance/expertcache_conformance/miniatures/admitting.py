"""Plain right caches with an admission, which `wrong_admissions` gets wrong: slots, room `reserve`, one budget."""

from __future__ import annotations

from collections import Counter

from expertcache_conformance.adapters.protocol import Config
from expertcache_conformance.miniatures.plain import PlainCache
from expertcache_spec.admission import admission
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


class Admitting(PlainCache):
    """Asks before it looks for room, and again when it knows who would leave; what is declined is not kept."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        card, self.facts = admission(config.settings.admission)
        self.asks = card.name != "always"
        self.declined: list[Key] = []

    def wants(self, key: Key) -> bool:
        """Whether the key is worth room at all."""
        return True

    def takes(self, key: Key, victim: Key) -> bool:
        """Whether the key is kept at the price of the victim."""
        return True

    def select(self, event: Event) -> dict[str, object]:
        """As ever, with what was declined; the event's keys are asked about before they are counted."""
        self.declined = [key for key in event.keys if self.asks and key not in self.stamp and not self.wants(key)]
        answer = super().select(event)
        return {**answer, "refused": [key for key in answer["misses"] if key in self.declined]}

    def check(self, event: Event, held: set[Key]) -> None:
        """What is declined needs no room."""
        kept = [key.expert for key in event.keys if key not in self.declined]
        if kept:
            super().check(Event(event.layer, (tuple(kept),)), held)

    def load(self, reads: list[Key], held: set[Key]) -> list[Key]:
        """Make room for what is admitted; `reads` keeps nothing else."""
        victims: list[Key] = []
        for key in list(reads):
            if key in self.declined or not (self.fits(key.layer, [key]) or self.swap(key, held, victims)):
                reads.remove(key)
                self.declined.append(key)
                continue
            self.insert(key)
            self.reading.add(key)
        for keys in self.leases.values():
            keys[:] = [key for key in keys if key in self.stamp]
        return victims

    def swap(self, key: Key, held: set[Key], victims: list[Key]) -> bool:
        """Evict for the key, if it goes for the victim."""
        victim = self.victim(key.layer, held)
        if self.asks and not self.takes(key, victim):
            return False
        self.evict(victim)
        victims.append(victim)
        return True

    def touch_order(self, event: Event, hits: list[Key]) -> list[Key]:
        """What is here."""
        return [key for key in super().touch_order(event, hits) if key in self.stamp]


class Sighted(Admitting):
    """Admission sightings: kept at the nth event that asks for it since it last left."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.seen: Counter[Key] = Counter()
        self.former: set[Key] = set()

    def wants(self, key: Key) -> bool:
        """Whether this sighting is the last one needed."""
        return self.seen[key] + 1 >= (self.facts["again"] or self.facts["n"] if key in self.former else self.facts["n"])

    def count(self, event: Event) -> None:
        """One sighting more."""
        super().count(event)
        self.seen.update(event.keys)

    def evict(self, key: Key) -> None:
        """It must be seen again."""
        super().evict(key)
        self.former.add(key)
        del self.seen[key]

    def reset(self, scope: str) -> None:
        """Nothing was seen."""
        super().reset(scope)
        self.seen.clear()
        self.former.clear()


class Hotter(Admitting):
    """Admission hysteresis: kept if its requests exceed the victim's by a quarter and the margin."""

    def takes(self, key: Key, victim: Key) -> bool:
        """In whole requests, the present one included."""
        cold = self.asked.get(victim, 0)
        return self.asked[key] > cold + cold // self.facts["divisor"] + self.facts["margin"]
