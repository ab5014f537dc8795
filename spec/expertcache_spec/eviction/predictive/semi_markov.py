"""Semi-Markov: evict what is least likely to be asked for at its age, after such an interval.

What it is: reuse as a semi-Markov process. The state of a key is the length of its last interval between requests; how
long it stays there depends on the state. The hazard at each age is counted for each state.
State: five numbers for each key ever asked for, one a layer, two for each of the `intervals` x `ages` classes.
Order: likelihood of (interval class, age class), then number of the latest request, both rising.
Transitions: a request makes the age 0 and the visits since the one before the interval; every other visit of the layer
adds one to the age. A key asked for once has interval class 0. Hits, inserts, seeds, prefetches and pass boundaries
change nothing.
Laws: it tells apart keys of one age that come back at different periods, which `hazard` cannot. A stack policy.
Engines that differ: none known; interval policies keep a mean instead (ewma-interval).
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.eviction.predictive.classes import LEARNING, Classified, ScannedClasses, turns
from expertcache_spec.eviction.predictive.facts import Facts
from expertcache_spec.eviction.predictive.shelves import IndexedClasses


@attrs.define(slots=False)
class ByReuse(Classified):
    """The rule (XC-EVICT-310)."""

    intervals: int = 5
    ages: int = 6

    @property
    def count(self) -> int:
        """A class for each pair."""
        return self.intervals * self.ages

    def classify(self, facts: Facts, age: int) -> int:
        """Both spans doubling: 0, 1, 2 and 3, 4 to 7."""
        return min(facts.interval.bit_length(), self.intervals - 1) * self.ages + min(age.bit_length(), self.ages - 1)


@attrs.define(slots=False)
class DeclaredSemiMarkov(ByReuse, ScannedClasses):
    """The declarative form."""


@attrs.define(slots=False)
class SemiMarkov(ByReuse, IndexedClasses):
    """The indexed form: keys turn with the age."""

    name: ClassVar[str] = "semi-markov"

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.turns = turns(self.ages)


CARD = Card(
    "semi-markov",
    "XC-EVICT-310",
    DeclaredSemiMarkov,
    SemiMarkov,
    "least likely to be asked for at its age after such an interval",
    "causal estimators of the field report on V4.1 Flash",
    "O(1) mostly, O(resident) at worst",
    (
        Parameter("intervals", 5, "interval classes: none yet, 1, 2-3, 4-7 and so on", least=2, most=16),
        Parameter("ages", 6, "age classes: 0, 1, 2-3, 4-7 and so on", least=2, most=16),
        *LEARNING,
    ),
)
