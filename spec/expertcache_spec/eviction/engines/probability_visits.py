"""Probability x visits: evict what is least likely and least visited, as their product.

What it is: FineMoE's rule: the probability that the router will ask for the expert, from a map of an earlier pass that
is like the present one, times the number of its visits.
State: the visits of every key; the maps (`probability`); the residents in order of their latest touch.
Order: probability x visits, rising; with `truncate` the product rounded down to a whole number; then the latest touch,
or with `ties=scan` (layer, expert) at once.
Transitions: every event visits its keys and tells the maps, before its victims are chosen. An eviction keeps the
visits under `visits=kept`, and drops them under `resident`, where a load starts at one and a prefetch at none.
Laws: what the map does not expect has probability 0 and goes first, in order of the ties; so before anything is known
it is `lru`. With `truncate` nearly everything is such a tie: a product is below 1 until visits outweigh the
probability. Under touch `router` a stack policy, where visits are kept.
Engines that differ: FineMoE keeps 1000 maps, matches the first layers by an embedding that no trace records and the
others by the cosine of their paths, and predicts six layers ahead; here a pass is matched as it goes, by the sum of
products, and its keys are expected at any time. Its product is an integer, which truncates: most keys tie at 0, and
the scan order decides.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import attrs
from sortedcontainers import SortedDict

from expertcache_spec.eviction.base import Policy
from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.eviction.engines.gate import UNIT
from expertcache_spec.eviction.engines.maps import Latest, Matched
from expertcache_spec.eviction.engines.scan import Scan
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


@attrs.define(slots=False)
class Expectation:
    """The product of every key: its probability and its visits (XC-EVICT-231)."""

    probability: Latest | Matched
    kept: bool
    unit: int
    visits: dict[Key, int] = attrs.field(factory=dict)

    def note(self, event: Event) -> None:
        """The event visits its keys; where visits end with the residency, a load starts them again."""
        self.probability.note(event)
        for key in event.keys:
            self.visits[key] = self.visits.get(key, 0) + 1

    def product(self, key: Key) -> int:
        """Probability x visits, in units, or in whole numbers rounded down."""
        return self.probability.of(key) * self.visits.get(key, 0) // self.unit

    def loaded(self, key: Key, visits: int) -> None:
        """The key has become resident."""
        if not self.kept:
            self.visits[key] = visits

    def forget(self) -> None:
        """Nothing was asked for yet."""
        self.probability.forget()
        self.visits.clear()


def expectation(probability: str, maps: int, visits: str, truncate: bool) -> Expectation:
    """Nothing is expected yet."""
    source = Matched(maps) if probability == "matched" else Latest()
    return Expectation(source, visits == "kept", UNIT if truncate else 1)


class Declared(Scan):
    """The rule (XC-EVICT-230)."""

    def __init__(self, *, ties: str, **expected: Any) -> None:
        super().__init__()
        self.expected, self.ties = expectation(**expected), ties

    def rank(self, key: Key) -> tuple[Any, ...]:
        """The product, then the latest touch, or nothing else."""
        return (self.expected.product(key), self.touched[key] if self.ties == "recency" else 0)

    def begin(self, event: Event) -> None:
        """The event is known."""
        self.expected.note(event)

    def insert(self, key: Key, now: int) -> None:
        """A seed or a prefetch: no visit."""
        super().insert(key, now)
        self.expected.loaded(key, 0)

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Loads of an event: a visit each."""
        for key in keys:
            super().insert(key, stamps[key])
            self.expected.loaded(key, 1)

    def forget(self) -> None:
        """Nothing is expected."""
        self.expected.forget()


class ProbabilityVisits(Policy):
    """The indexed form: residents in order of the ties; the first whose product is 0 goes, and few come before it.

    Only the keys of a map have a product; where nothing else is left, they are compared one by one.
    """

    name: ClassVar[str] = "probability-visits"
    stamped: ClassVar[bool] = False

    def __init__(self, *, ties: str, **expected: Any) -> None:
        self.expected = expectation(**expected)
        self.order: OrderedDict[Key, None] | SortedDict = OrderedDict() if ties == "recency" else SortedDict()

    def begin(self, event: Event) -> None:
        """The event is known."""
        self.expected.note(event)

    def insert(self, key: Key, now: int) -> None:
        """A seed or a prefetch: no visit."""
        self.order[key] = None
        self.expected.loaded(key, 0)

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Visited already; `settle` moves them."""

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Loads of an event: a visit each."""
        for key in keys:
            self.order[key] = None
            self.expected.loaded(key, 1)

    def settle(self, keys: Sequence[Key]) -> None:
        """Move the touched keys to the recent end, in touch order."""
        if isinstance(self.order, OrderedDict):
            for key in keys:
                self.order.move_to_end(key)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The first of the least product."""
        found, least, product = None, -1, self.expected.product
        for key in self.order:
            if key not in held and (found is None or product(key) < least):
                found, least = key, product(key)
                if not least:
                    break
        return found

    def evict(self, key: Key) -> None:
        """Remove; visits stay, unless a later load starts them again."""
        del self.order[key]

    def forget(self) -> None:
        """Nothing is expected; the order stays."""
        self.expected.forget()


CARD = Card(
    "probability-visits",
    "XC-EVICT-230",
    Declared,
    ProbabilityVisits,
    "least probability x visits",
    "FineMoE (fMoE), its code and an independent port",
    "O(1) and the stored uses of the key; O(keys of a map) for a victim at worst",
    (
        Parameter("probability", "matched", "of the pass most alike, or of the latest event", ("matched", "latest")),
        Parameter("maps", 64, "how many passes are stored; FineMoE keeps 1000", least=1),
        Parameter("visits", "kept", "whether visits outlive an eviction", ("kept", "resident")),
        Parameter("truncate", False, "whether the product is rounded down to a whole number"),
        Parameter("ties", "recency", "what goes first of equal products", ("recency", "scan")),
    ),
)  # fmt: skip
