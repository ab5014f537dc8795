"""Hazard: evict what is least likely to be asked for at its age.

What it is: the learned hazard rate of reuse: how likely a key is asked for at its layer's next visit, by the visits
since it last was. LRU takes for granted that this falls with age; here it is counted.
State: five numbers for each key ever asked for, one a layer, two for each of the `ages` classes.
Order: likelihood of the age class, then number of the latest request, both rising.
Transitions: a request makes the age 0, every other visit of the layer adds one; ages are sorted into 0, 1, 2-3, 4-7 and
so on, the last class taking the rest. Hits, inserts, seeds, prefetches and pass boundaries change nothing.
Laws: a loop of one key more than fits, on which LRU hits 0, it learns to hit. A stack policy.
Engines that differ: none known that count it; aged and recency policies assume its shape.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.eviction.predictive.classes import LEARNING, Classified, ScannedClasses, turns
from expertcache_spec.eviction.predictive.facts import Facts
from expertcache_spec.eviction.predictive.shelves import IndexedClasses


@attrs.define(slots=False)
class ByAge(Classified):
    """The rule (XC-EVICT-280)."""

    ages: int = 6

    @property
    def count(self) -> int:
        """One class for each span of ages."""
        return self.ages

    def classify(self, facts: Facts, age: int) -> int:
        """0 for age 0, 1 for 1, 2 for 2 and 3, doubling."""
        return min(age.bit_length(), self.ages - 1)


@attrs.define(slots=False)
class DeclaredHazard(ByAge, ScannedClasses):
    """The declarative form."""


@attrs.define(slots=False)
class Hazard(ByAge, IndexedClasses):
    """The indexed form: keys turn with the age."""

    name: ClassVar[str] = "hazard"

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.turns = turns(self.ages)


CARD = Card(
    "hazard",
    "XC-EVICT-280",
    DeclaredHazard,
    Hazard,
    "least likely to be asked for at its age",
    "causal estimators of the field report on V4.1 Flash",
    "O(1) mostly, O(resident) at worst",
    (Parameter("ages", 6, "age classes: 0, 1, 2-3, 4-7 and so on", least=2, most=16), *LEARNING),
)
