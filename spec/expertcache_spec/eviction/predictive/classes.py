"""Predictors that sort keys into classes, and learn how often a key of each class is asked for at its layer's visits.

At every visit of a layer, each of its keys that was ever asked for, resident or not, counts one chance for the class
that it is in, and one use if the visit asks for it. The likelihood of a class is (uses + 1) / (chances + 2). A policy
of this kind is one function, `classify`: the number of the class of a key, from its facts and its age.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import add

import attrs

from expertcache_spec.eviction.cards import Parameter
from expertcache_spec.eviction.predictive.base import CONTROL, PLACES, Causal, Scanned
from expertcache_spec.eviction.predictive.facts import UNASKED, Facts, Requests
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

LEARNING = (
    Parameter(
        "ties",
        "oldest",
        "which of two keys of equal likelihood goes first: the one asked for longest ago, or latest",
        choices=("oldest", "latest"),
    ),
    Parameter("limit", 1 << 20, "chances at which a class halves its chances and its uses", least=2),
    *CONTROL,
)
"""The parameters that every policy of this kind ends with."""


def turns(classes: int) -> tuple[int, ...]:
    """The ages at which a key enters a new class, where classes are 0, 1, 2-3, 4-7 and so on."""
    return tuple(1 << place for place in range(classes - 1))


@attrs.define(slots=False)
class Table:
    """Chances and uses of each of `count` classes; a class halves both, rounding down, at `limit` chances."""

    count: int
    limit: int
    chances: list[int] = attrs.field(init=False)
    uses: list[int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Nothing is known of any class."""
        self.chances, self.uses = [0] * self.count, [0] * self.count

    def visit(self, chances: Sequence[int], uses: Iterable[int]) -> None:
        """One visit: how many keys of each class had a chance, and the class of each that was asked for."""
        self.chances = list(map(add, self.chances, chances))
        for each in uses:
            self.uses[each] += 1
        if max(self.chances) >= self.limit:
            for each, count in enumerate(self.chances):
                if count >= self.limit:
                    self.chances[each], self.uses[each] = count >> 1, self.uses[each] >> 1

    def likelihood(self, of: int) -> int:
        """How likely a key of the class is asked for at the next visit of its layer."""
        return ((self.uses[of] + 1) << PLACES) // (self.chances[of] + 2)

    def likelihoods(self) -> list[int]:
        """Of every class."""
        return [((used + 1) << PLACES) // (had + 2) for used, had in zip(self.uses, self.chances, strict=True)]


@attrs.define(slots=False)
class Classified(Causal):
    """What both forms have: the rule is `classify`, over `count` classes."""

    ties: str = "oldest"
    limit: int = 1 << 20
    past: Requests = attrs.field(factory=Requests, init=False)
    table: Table = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.table = Table(self.count, self.limit)

    @property
    def count(self) -> int:
        """How many classes there are."""
        raise NotImplementedError

    def classify(self, facts: Facts, age: int) -> int:
        """The class of a key with these facts, `age` visits of its layer after its latest request."""
        raise NotImplementedError

    def number(self, key: Key) -> int:
        """As `Causal.number`, out of the facts."""
        facts = self.past.asked.get(key)
        return 0 if facts is None else facts.number

    def forget(self) -> None:
        """Only recency stays (XC-EVICT-276)."""
        self.past.forget()
        self.table.clear()


@attrs.define(slots=False)
class ScannedClasses(Scanned, Classified):
    """The declarative form: every key is classified anew whenever its class is wanted."""

    def class_of(self, key: Key) -> int:
        """Of any key, resident or not."""
        facts = self.past.asked.get(key)
        return UNASKED if facts is None else self.classify(facts, self.past.age(key))

    def begin(self, event: Event) -> None:
        """Every known key of the layer had a chance; then the visit becomes past."""
        chances = [0] * self.count
        for key in self.past.asked:
            if key.layer == event.layer:
                chances[self.class_of(key)] += 1
        self.table.visit(chances, [self.class_of(key) for key in event.keys if key in self.past.asked])
        self.past.record(event)

    def order(self, key: Key) -> tuple[int, ...]:
        """The least likely class; of equally likely keys, the one asked for longest ago (or latest)."""
        number, its_class = self.number(key), self.class_of(key)
        likelihood = -1 if its_class == UNASKED else self.table.likelihood(its_class)
        return likelihood, number if self.ties == "oldest" else -number
