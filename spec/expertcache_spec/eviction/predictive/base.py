"""What the predictive policies share: the requests they learn from, the control, and the rule's scan.

A causal predictor sees the events of its partition as they begin, and nothing else: neither what was resident nor in
which order it was touched. What it says of a key goes on changing while the key is absent and survives its eviction,
and it is the same at every capacity. All arithmetic is on whole numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import attrs

from expertcache_spec.eviction.base import Policy
from expertcache_spec.eviction.cards import Parameter
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

CONTROL = (
    Parameter(
        "control",
        "none",
        "whether a key is judged by its own past (none) or by that of a fixed other key of its layer (shuffled)",
        choices=("none", "shuffled"),
    ),
    Parameter("seed", 0, "which other key that is", least=0),
)
"""The parameters that every predictive policy ends with."""

PLACES = 32
"""A likelihood is a whole number of 2^-32, rounded down (XC-EVICT-274)."""


def stranger(key: Key, seed: int) -> Key:
    """The key by whose past `key` is judged under control `shuffled`, and the other way round (XC-EVICT-275).

    One or both of the two lowest bits of the expert are flipped: which, depends on the seed and the layer. Where the
    number of experts is no multiple of four, the last few meet strangers that do not exist.
    """
    mixed = ((seed + 1) * 2654435761 + key.layer * 40503) & 0xFFFFFFFF
    return Key(key.layer, key.expert ^ (1 + (mixed >> 9) % 3))


@attrs.define(slots=False)
class Causal(Policy):
    """A policy whose order follows from the requests alone: inserts and evictions change residency, nothing else."""

    control: str = "none"
    seed: int = 0
    numbers: dict[Key, int] = attrs.field(factory=dict, init=False)
    """Of each key's latest request, counted over the partition; within an event the first key has the highest."""
    requests: int = attrs.field(default=0, init=False)

    def judge(self, key: Key) -> Key:
        """The key by whose past `key` is judged; applied twice it leads back."""
        return key if self.control == "none" else stranger(key, self.seed)

    def begin(self, event: Event) -> None:
        """Learn from every key of the event, hit or miss (XC-EVICT-271)."""
        self.requests = number = self.requests + len(event.keys)
        numbers = self.numbers
        for key in event.keys:
            numbers[key] = number
            number -= 1

    def number(self, key: Key) -> int:
        """Of the key's latest request; 0 before the first."""
        return self.numbers.get(key, 0)

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Nothing: `begin` has seen them."""

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Each; a predictor looks at no stamps."""
        for key in keys:
            self.insert(key, 0)


@attrs.define(slots=False)
class Scanned(Causal):
    """The declarative form: the victim is the least of `order`, by linear scan."""

    present: dict[Key, None] = attrs.field(factory=dict, init=False)

    def order(self, key: Key) -> tuple[int, ...]:
        """The rule: what a victim has least of, from the past of `key`."""
        raise NotImplementedError

    def insert(self, key: Key, now: int) -> None:
        """The key may be a victim from now on."""
        self.present[key] = None

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least key that nothing holds, each judged by its own past or by its stranger's."""
        free = (key for key in self.present if key not in held)
        return min(free, key=lambda key: (*self.order(self.judge(key)), *key), default=None)

    def evict(self, key: Key) -> None:
        """Only residency ends."""
        del self.present[key]
