"""Last rank: evict what the router ranked where reuse is least likely.

What it is: the rank of the latest request as a predictor: a key that came first in its row may be wanted again sooner
than one that came last. How much sooner is counted, rank by rank.
State: five numbers for each key ever asked for, one a layer, two for each of the `ranks` classes.
Order: likelihood of the rank class, then number of the latest request, both rising.
Transitions: a request replaces the rank, whatever it was; where several rows ask, the best place counts. Time changes
no rank, so that a key which was ranked well long ago stays well ranked: the policy's weakness. Hits, inserts, seeds,
prefetches and pass boundaries change nothing.
Laws: where rank says nothing about reuse it is no better than chance. A stack policy.
Engines that differ: none known; gate scores are added up instead by score-based policies.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.eviction.predictive.classes import LEARNING, Classified, ScannedClasses
from expertcache_spec.eviction.predictive.facts import Facts
from expertcache_spec.eviction.predictive.shelves import IndexedClasses


@attrs.define(slots=False)
class ByRank(Classified):
    """The rule (XC-EVICT-290)."""

    ranks: int = 8

    @property
    def count(self) -> int:
        """One class a rank."""
        return self.ranks

    def classify(self, facts: Facts, age: int) -> int:
        """The rank; the last class takes the rest, and what was forgotten."""
        return min(facts.rank, self.ranks - 1)


@attrs.define(slots=False)
class DeclaredLastRank(ByRank, ScannedClasses):
    """The declarative form."""


@attrs.define(slots=False)
class LastRank(ByRank, IndexedClasses):
    """The indexed form: nothing turns with the age."""

    name: ClassVar[str] = "last-rank"


CARD = Card(
    "last-rank",
    "XC-EVICT-290",
    DeclaredLastRank,
    LastRank,
    "least likely to be asked for at the rank it last had",
    "causal estimators of the field report on V4.1 Flash",
    "O(1) mostly, O(resident) at worst",
    (Parameter("ranks", 8, "rank classes; the last one takes all further ranks", least=2, most=64), *LEARNING),
)
