"""Wrong ones of the admissions: a plain right cache of `admitting` with one thing broken."""

from __future__ import annotations

from expertcache_conformance.miniatures.admitting import Hotter, Sighted
from expertcache_conformance.miniatures.plain import PlainCache
from expertcache_conformance.miniatures.wrong import miniature
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

SIGHTINGS = {"admission": ["always", "sightings:n=3"]}
HYSTERESIS = {"admission": ["always", "hysteresis:margin=1"]}


@miniature("turboquant, the readmission count", "XC-ADMIT-004", settings=SIGHTINGS)
class SightingsOutliveTheRecord(Sighted):
    """A record that has left comes back at its next sighting, because its old ones still count."""

    def evict(self, key: Key) -> None:
        """Forget nothing."""
        seen = self.seen[key]
        super().evict(key)
        self.seen[key] = seen


@miniature("fak#4233, two records that swap for ever", "XC-ADMIT-005", settings=HYSTERESIS)
class SwapsWithoutAMargin(Hotter):
    """A record displaces the victim as soon as it is hotter."""

    def takes(self, key: Key, victim: Key) -> bool:
        """By anything."""
        return self.asked[key] > self.asked.get(victim, 0)


@miniature("imp#1408, in reverse", "XC-ADMIT-001", settings=HYSTERESIS)
class EvictsForWhatItDeclines(Hotter):
    """A declined record is read into a resident's room, so it costs one and is not kept either."""

    def load(self, reads: list[Key], held: set[Key]) -> list[Key]:
        """One resident more for each, while there are any."""
        victims = super().load(reads, held)
        for key in self.declined:
            if any(other not in held | set(reads) for other in self.group(key.layer)):
                victims.append(self.victim(key.layer, held | set(reads)))
                self.evict(victims[-1])
        return victims


@miniature("colibri#336", "XC-ADMIT-012", settings=SIGHTINGS, capabilities=["reset"])
class SightingsOutliveTheReset(Sighted):
    """A reset of history leaves the sightings of another prompt."""

    def reset(self, scope: str) -> None:
        """Keep them, unless everything goes."""
        seen, former = self.seen.copy(), set(self.former)
        super().reset(scope)
        if scope == "history":
            self.seen, self.former = seen, former


@miniature("an event that is checked before the admission", "XC-ADMIT-004", settings=SIGHTINGS)
class ChecksRoomForWhatItDeclines(Sighted):
    """An event of more records than fit is refused, though it would keep none of them."""

    def check(self, event: Event, held: set[Key]) -> None:
        """As if all of it were kept."""
        PlainCache.check(self, event, held)
