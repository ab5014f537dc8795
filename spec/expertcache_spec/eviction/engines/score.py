"""Score: evict the record whose expert the gate has given the least.

What it is: SB, a baseline of SpecMD: the accumulated gate score, whatever the recency.
State: for every key, resident or not, the sum of its gate scores and how many rows they came from; the stamp of each
resident's latest touch; a token clock.
Order: the accumulated score, rising; then the stamp of the latest touch.
Transitions: every event, hit or miss, adds the weights that its rows give their experts; with `counts=all` the scores
of every expert of the layer. A row without weights shares 1 evenly among its experts. With `halve_every` sums and
numbers of rows are halved every so many tokens, rounding down. A prefetch or a seed adds nothing; an eviction keeps
the score.
Laws: where no weights are known and every row asks for as many experts, it is `lfu` that counts repeats inside an
event. Under touch `router` a stack policy: what a key has been given does not depend on what is resident.
Engines that differ: the paper says neither sum, mean nor decay, nor whether an expert that was not chosen accrues, nor
what a prefetch does. HybriMoE keeps a moving average of the scores of the top experts, near misses included.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from expertcache_spec.eviction.base import Policy
from expertcache_spec.eviction.cards import Card, Parameter, Value
from expertcache_spec.eviction.engines import clock
from expertcache_spec.eviction.engines.clock import TokenClock
from expertcache_spec.eviction.engines.gate import gate, scores
from expertcache_spec.eviction.engines.scan import Scan
from expertcache_spec.eviction.index import Heap
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


@attrs.define(slots=False)
class Scores:
    """What the gate has given every key so far, in units of 2^-30 (XC-EVICT-221)."""

    clock: TokenClock
    counts: str
    accumulate: str
    sums: dict[Key, int] = attrs.field(factory=dict)
    rows: dict[Key, int] = attrs.field(factory=dict)

    def note(self, event: Event) -> tuple[bool, Collection[Key]]:
        """Halve what is due, then add the event; whether anything was halved, and the keys that were given something.

        A new conversation starts from nothing where `reset_at` says so.
        """
        anew = self.clock.begins_anew(event)
        if anew:
            self.start_anew()
        times = self.clock.tick(event)
        if times:
            self.rows = {key: rows >> times for key, rows in self.rows.items() if rows >> times}
            self.sums = {key: self.sums[key] >> times for key in self.rows}
        given = scores(event) if self.counts == "all" else gate(event)
        everyone = self.counts == "all" and event.scores is not None
        for key, units in given.items():
            self.sums[key] = self.sums.get(key, 0) + units
            self.rows[key] = self.rows.get(key, 0) + (len(event.rows) if everyone else event.multiplicity(key))
        return anew or times > 0, given

    def value(self, key: Key) -> int:
        """The sum, or the mean over rows, rounded down; 0 for what was never given anything."""
        total = self.sums.get(key, 0)
        return total // self.rows[key] if total and self.accumulate == "mean" else total

    def start_anew(self) -> None:
        """Nothing was given to anyone."""
        self.sums.clear()
        self.rows.clear()
        self.clock.start_anew()


class Declared(Scan):
    """The rule (XC-EVICT-220)."""

    def __init__(self, *, counts: str, accumulate: str, **clock: Any) -> None:
        super().__init__()
        self.scores = Scores(TokenClock(**clock), counts, accumulate)

    def rank(self, key: Key) -> tuple[Any, ...]:
        """Score before recency."""
        return (self.scores.value(key), self.touched[key])

    def begin(self, event: Event) -> None:
        """Add what the event gives."""
        self.scores.note(event)

    def forget(self) -> None:
        """Zero the scores."""
        self.scores.start_anew()


class Score(Policy):
    """The indexed form: a heap of ((score, latest touch), key)."""

    name: ClassVar[str] = "score"
    stamped: ClassVar[bool] = False

    def __init__(self, *, counts: str, accumulate: str, **clock: Any) -> None:
        self.scores = Scores(TokenClock(**clock), counts, accumulate)
        self.index, self.touches = Heap(), 0

    def begin(self, event: Event) -> None:
        """Add what the event gives; file again what it gives to others, its own keys are filed by `settle`."""
        everything, given = self.scores.note(event)
        if everything:
            self._rank_again()
        elif len(given) > len(event.keys):
            filed = self.index.filed
            for key in filed.keys() & given:
                self.index.file(key, (self.scores.value(key), filed[key][1]))

    def _rank_again(self) -> None:
        filed, value = self.index.filed, self.scores.value
        self.index.rank_again(lambda key: (value(key), filed[key][1]))

    def insert(self, key: Key, now: int) -> None:
        """File as the most recent of its score."""
        self.settle((key,))

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Nothing yet: `settle` files what was touched."""

    inserts = hits

    def settle(self, keys: Sequence[Key]) -> None:
        """File what was touched, in touch order."""
        for key in keys:
            self.touches += 1
            self.index.file(key, (self.scores.value(key), self.touches))

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least score, of equals the least recent."""
        return self.index.first(held)

    def evict(self, key: Key) -> None:
        """Remove from the index; the score stays."""
        self.index.remove(key)

    def forget(self) -> None:
        """Zero the scores; the recency stays."""
        self.scores.start_anew()
        self._rank_again()


_DEFAULTS: dict[str, Value] = {"halve_every": 0, "reset_at": "never"}

CARD = Card(
    "score",
    "XC-EVICT-220",
    Declared,
    Score,
    "least accumulated gate score",
    "SpecMD (arXiv 2602.03921), baseline SB",
    "O(log resident); O(keys) at a halving",
    (
        Parameter("counts", "selected", "whose scores accrue: of what is chosen, or of the layer", ("selected", "all")),
        Parameter("accumulate", "sum", "the sum of a key's scores, or their mean over rows", ("sum", "mean")),
        *(attrs.evolve(each, default=_DEFAULTS.get(each.name, each.default)) for each in clock.PARAMETERS),
    ),
    objections=clock.objections,
)  # fmt: skip
