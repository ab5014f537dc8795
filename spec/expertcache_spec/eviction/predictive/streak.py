"""Streak: evict what is least likely to be asked for after such a run.

What it is: the length of the latest run of consecutive visits that asked for the key, and whether it goes on.
State: five numbers for each key ever asked for, one a layer, two for each of the 2 x (`longest` + 1) classes.
Order: likelihood of (run, whether broken), then number of the latest request, both rising.
Transitions: a request right after another lengthens the run, a later one starts it at one; the first visit of the layer
without a request breaks it, and its length is remembered. Hits, inserts, seeds, prefetches and pass boundaries change
nothing.
Laws: with `longest` 1 there are two classes of keys, those of the last visit and the rest. A stack policy.
Engines that differ: none known.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.eviction.predictive.classes import LEARNING, Classified, ScannedClasses
from expertcache_spec.eviction.predictive.facts import Facts
from expertcache_spec.eviction.predictive.shelves import IndexedClasses


@attrs.define(slots=False)
class ByStreak(Classified):
    """The rule (XC-EVICT-295)."""

    longest: int = 6

    @property
    def count(self) -> int:
        """Two classes for each length, 0 (forgotten) included."""
        return 2 * (self.longest + 1)

    def classify(self, facts: Facts, age: int) -> int:
        """Even while the run goes on, odd when it is broken."""
        return 2 * min(facts.run, self.longest) + (age > 0)


@attrs.define(slots=False)
class DeclaredStreak(ByStreak, ScannedClasses):
    """The declarative form."""


@attrs.define(slots=False)
class Streak(ByStreak, IndexedClasses):
    """The indexed form: a key turns once, when its run breaks."""

    name: ClassVar[str] = "streak"

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.turns = (1,)


CARD = Card(
    "streak",
    "XC-EVICT-295",
    DeclaredStreak,
    Streak,
    "least likely to be asked for after its latest run of requests",
    "causal estimators of the field report on V4.1 Flash",
    "O(1) mostly, O(resident) at worst",
    (Parameter("longest", 6, "visits on end that count as the longest run", least=1, most=64), *LEARNING),
)
