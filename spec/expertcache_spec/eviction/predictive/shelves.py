"""The index of policies that sort keys into classes: a shelf for each class, its keys in order of request number."""

from __future__ import annotations

from bisect import bisect
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter
from typing import ClassVar

import attrs
from sortedcontainers import SortedDict

from expertcache_spec.eviction.predictive.classes import Classified
from expertcache_spec.eviction.predictive.facts import UNASKED, Entry, Facts
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

NUMBER = itemgetter(0)


@attrs.define
class Shelf:
    """Residents in order of a number that no two share, both ends at hand.

    An entry without a resident is outdated. Such entries go when they come to an end at hand, or all at once. A number
    is mostly among the highest, and then filing costs O(1).
    """

    row: deque[Entry] = attrs.field(factory=deque)
    most: int = 8
    """At how many entries the outdated ones go."""

    def put(self, facts: Facts) -> None:
        """File whom the facts judge by their number; the former entry, on whatever shelf, is outdated."""
        number, row, former = facts.number, self.row, facts.place
        if former is not None:
            former[1] = None
        facts.place = entry = [number, facts.seat]
        if not row or number > row[-1][0]:
            row.append(entry)
        else:
            row.insert(bisect(row, [number]), entry)
        if len(row) > self.most:
            self.row = deque(entry for entry in row if entry[1] is not None)
            self.most = 8 + 4 * len(self.row)

    def walk(self, oldest: bool) -> Iterator[Entry]:
        """The entries that count, rising, or falling from the highest."""
        row, end = self.row, 0 if oldest else -1
        while row and row[end][1] is None:
            row.popleft() if oldest else row.pop()
        return (entry for entry in (row if oldest else reversed(row)) if entry[1] is not None)


@attrs.define(slots=False)
class IndexedClasses(Classified):
    """The indexed form: a shelf for each class, in order of request number.

    A key changes class when it is asked for, and when its age reaches one of `turns`, which must be where `classify`
    grows by one: then the visit of that many visits ago is looked up. So a request costs O(turns) mostly, and a
    victim O(classes).
    """

    stamped: ClassVar[bool] = False
    turns: tuple[int, ...] = attrs.field(default=(), init=False)
    known: dict[int, list[int]] = attrs.field(factory=dict, init=False)
    """Layer to how many of its keys are in each class."""
    visitors: dict[int, deque[list[Facts]]] = attrs.field(factory=dict, init=False)
    """Layer to what its latest visits asked for, as far back as the last turn."""
    shelves: list[Shelf] = attrs.field(init=False)
    """Class to the residents that are judged to be in it."""
    unjudged: SortedDict = attrs.field(factory=SortedDict, init=False)
    """The residents that are judged by a key that nobody has asked for."""
    likelihoods: list[int] = attrs.field(factory=list, init=False)
    """Of every class, when they were last ranked."""
    ranking: list[int] = attrs.field(factory=list, init=False)
    """The classes by likelihood, rising; none when it must be made again."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.shelves = [Shelf() for _ in range(self.count)]

    def begin(self, event: Event) -> None:
        """Count by class, then move what has reached a turn and what was asked for."""
        layer = event.layer
        if layer not in self.known:
            self.known[layer] = [0] * self.count
            self.visitors[layer] = deque(maxlen=self.turns[-1] if self.turns else 0)
        known, latest = self.known[layer], self.visitors[layer]
        asked = self.past.record(event)
        self.table.visit(known, [facts.filed for facts in asked if facts.filed != UNASKED])
        self._turn(known, latest, self.past.visits[layer])
        latest.append(asked)
        for key, facts in zip(reversed(event.keys), asked, strict=True):
            if facts.filed == UNASKED:
                self._meet(self.judge(key), facts)
            self._move(known, facts, self.classify(facts, 0))
        self.ranking.clear()

    def _turn(self, known: list[int], latest: deque[list[Facts]], visit: int) -> None:
        """The keys whose age has just reached a turn go one class up, and so does whom they judge."""
        shelves, there = self.shelves, len(latest)
        for turn in self.turns:
            if turn > there:
                break
            then = visit - turn
            for facts in latest[-turn]:
                if facts.visit == then:
                    old = facts.filed
                    facts.filed = to = old + 1
                    known[old] -= 1
                    known[to] += 1
                    if facts.seat is not None:
                        shelves[to].put(facts)

    def _meet(self, key: Key, facts: Facts) -> None:
        """The first request of the key by which `key` is judged."""
        if key in self.unjudged:
            del self.unjudged[key]
            facts.seat = key

    def _move(self, known: list[int], facts: Facts, to: int) -> None:
        """Put a key into its class, and on the shelf of that class whom it judges."""
        old, facts.filed = facts.filed, to
        known[to] += 1
        if old != UNASKED:
            known[old] -= 1
        if facts.seat is not None:
            self.shelves[to].put(facts)

    def insert(self, key: Key, now: int) -> None:
        """File under the class as it stands."""
        facts = self.past.asked.get(self.judge(key))
        if facts is None:
            self.unjudged[key] = None
        else:
            facts.seat = key
            self.shelves[facts.filed].put(facts)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The first key of the least likely class that has one to give, or of several equally likely ones."""
        return next(self._from_least(held), None)

    def leave(self, held: Collection[Key], incoming: Sequence[Key]) -> list[Key]:
        """The first keys, in one walk."""
        gone = list(islice(self._from_least(held), len(incoming)))
        for key in gone:
            self.evict(key)
        return gone

    def _from_least(self, held: Collection[Key]) -> Iterator[Key]:
        """The residents that nothing holds, the least likely first, while none is filed or evicted."""
        for key in self.unjudged:
            if key not in held:
                yield key
        if not self.ranking:
            self.likelihoods = self.table.likelihoods()
            self.ranking = sorted(range(self.count), key=self.likelihoods.__getitem__)
        oldest = self.ties == "oldest"
        for _, classes in groupby(self.ranking, self.likelihoods.__getitem__):
            walks = [self.shelves[each].walk(oldest) for each in classes if self.shelves[each].row]
            if not walks:
                continue
            for _, key in walks[0] if len(walks) == 1 else merge(*walks, key=NUMBER, reverse=not oldest):
                if key not in held:
                    yield key

    def evict(self, key: Key) -> None:
        """Only residency ends."""
        facts = self.past.asked.get(self.judge(key))
        if facts is None:
            del self.unjudged[key]
        else:
            facts.leave()
            facts.seat = None

    def forget(self) -> None:
        """Every known key is classified anew from what is left."""
        super().forget()
        past = self.past
        for key, facts in sorted(past.asked.items(), key=lambda item: item[1].number):
            self._move(self.known[key.layer], facts, self.classify(facts, past.age(key)))
        self.ranking.clear()
