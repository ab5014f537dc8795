"""Random: evict any, each as likely as the other. The floor that a policy must beat to be one.

What it is: random replacement without a generator: the draw is a keyed hash of what anyone can see, so that two
implementations of it agree on every victim.
State: the resident keys in order of insertion, and how many events of this partition have begun.
Order: the evictable keys by their latest insert, beginning at the one that is drawn and going round. With n evictable
keys the draw is the hash modulo n, counted from 0. The hash is BLAKE2b of the ASCII text `seed event n layer`, eight
bytes read as a big-endian number; `event` is how many have begun, `layer` that of the earliest inserted evictable key.
Transitions: an insert appends, an eviction removes, an event counts one when it begins; hits do not matter. Asking for
a victim changes nothing.
Laws: the same seed gives the same victims, whatever the experts are called and however a cache walks through its
tables; another seed gives others. Every evictable key is drawn alike, but for n parts in 2**64. On uniform requests
every policy hits alike, this one included: capacity over experts. No stack policy.
Engines that differ: simulators draw from an unseeded generator, so that no two of their runs agree.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from typing import ClassVar

import attrs
from sortedcontainers import SortedDict

from expertcache_spec.eviction.base import Policy, first_free
from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.eviction.counting.stating import Stated
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


def draw(seed: int, event: int, count: int, layer: int) -> int:
    """Which of `count` keys, from 0 (XC-EVICT-088)."""
    text = b"%d %d %d %d" % (seed, event, count, layer)
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") % count


@attrs.define(slots=False, kw_only=True)
class RandomRule(Stated):
    """The rule (XC-EVICT-087)."""

    seed: int
    events: int = 0

    def begin(self, event: Event) -> None:
        """Count the event."""
        super().begin(event)
        self.events += 1

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The drawn one of the evictable keys, the earliest inserted first."""
        keys = sorted((key for key in self.present if key not in held), key=lambda key: self.past.inserted[key])
        return keys[draw(self.seed, self.events, len(keys), keys[0].layer)] if keys else None


@attrs.define(slots=False)
class Random(Policy):
    """The indexed form: the keys in a sorted list of inserts; held ones before the drawn one are stepped over."""

    name: ClassVar[str] = "random"
    stamped: ClassVar[bool] = False
    seed: int
    events: int = 0
    inserted: int = 0
    numbers: dict[Key, int] = attrs.field(factory=dict)
    """Resident to the number of its insert."""
    order: SortedDict = attrs.field(factory=SortedDict)
    """The other way round, in order."""

    def begin(self, event: Event) -> None:
        """Count the event."""
        self.events += 1

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Nothing."""

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Append all."""
        for key in keys:
            self.insert(key, 0)

    def insert(self, key: Key, now: int) -> None:
        """Append."""
        self.inserted = number = self.inserted + 1
        self.numbers[key] = number
        self.order[number] = key

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The drawn one of the evictable keys, the earliest inserted first."""
        first = first_free(self.order.values(), held)
        if first is None:
            return None
        places = sorted(self.order.index(self.numbers[key]) for key in held if key in self.numbers)
        place = draw(self.seed, self.events, len(self.order) - len(places), first.layer)
        for taken in places:
            place += taken <= place
        found: Key = self.order.peekitem(place)[1]
        return found

    def evict(self, key: Key) -> None:
        """Remove."""
        del self.order[self.numbers.pop(key)]


CARD = Card(
    "random",
    "XC-EVICT-087",
    RandomRule,
    Random,
    "a drawn one",
    "the floor of every comparison",
    "O(log resident + held)",
    (Parameter("seed", 0, "what the draws depend on", least=0),),
)
