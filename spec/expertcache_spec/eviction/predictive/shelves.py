"""The index of policies that sort keys into classes: a shelf for each class, its keys in order of request number."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable
from typing import Any, ClassVar

import attrs
from sortedcontainers import SortedDict

from expertcache_spec.eviction.base import first_free
from expertcache_spec.eviction.predictive.classes import Classified
from expertcache_spec.eviction.predictive.facts import UNASKED, Facts
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

Numbered = tuple[int, Key]


@attrs.define
class Shelf:
    """Keys in order of a number that no two share, both ends at hand.

    A number is mostly the highest that the shelf has seen, and then its key is appended to the `row`; `strays`, which
    come late, are sorted in. So filing costs O(1) mostly and O(log n) at worst. last: the highest number of the row.
    """

    row: OrderedDict[int, Key] = attrs.field(factory=OrderedDict)
    strays: SortedDict = attrs.field(factory=SortedDict)
    last: int = 0

    def put(self, number: int, key: Key) -> None:
        """Put the key at its number."""
        if number > self.last or not self.row:
            self.row[number] = key
            self.last = number
        else:
            self.strays[number] = key

    def take(self, number: int) -> None:
        """Remove the key at that number."""
        if self.row.pop(number, None) is None:
            del self.strays[number]

    def first(self, held: Collection[Key]) -> Numbered | None:
        """The lowest number and its key, held keys left out."""
        return self._end(min, iter, held)

    def latest(self, held: Collection[Key]) -> Numbered | None:
        """The highest number and its key, held keys left out."""
        return self._end(max, reversed, held)

    def _end(self, best: Callable[..., Numbered], way: Callable[..., Any], held: Collection[Key]) -> Numbered | None:
        found = None
        for pair in way(self.row.items()):
            if pair[1] not in held:
                found = pair
                break
        if self.strays:
            stray = next((number for number in way(self.strays) if self.strays[number] not in held), None)
            if stray is not None:
                return best(found or (stray, self.strays[stray]), (stray, self.strays[stray]))
        return found


@attrs.define(slots=False)
class IndexedClasses(Classified):
    """The indexed form: a shelf for each class, in order of request number.

    A key changes class when it is asked for, and when its age reaches one of `turns`, which must be where `classify`
    grows by one: then the visit of that many visits ago is looked up. So a request costs O(log resident) and
    O(turns), a victim O(classes).
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
    ranking: list[tuple[int, Shelf]] = attrs.field(factory=list, init=False)
    """The shelves that are not empty by likelihood, rising; none when it must be made again."""

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
        moves = self._turned(latest, self.past.visits[layer])
        latest.append(asked)
        for key, facts in zip(reversed(event.keys), asked, strict=True):
            if facts.filed == UNASKED:
                self._meet(self.judge(key), facts)
            moves.append((facts, self.classify(facts, 0)))
        self._move(known, moves)
        self.ranking.clear()

    def _turned(self, latest: deque[list[Facts]], visit: int) -> list[tuple[Facts, int]]:
        """The keys whose age has just reached a turn, each with its new class."""
        moves = []
        for turn in self.turns:
            if turn > len(latest):
                break
            then = visit - turn
            moves += [(facts, facts.filed + 1) for facts in latest[-turn] if facts.visit == then]
        return moves

    def _meet(self, key: Key, facts: Facts) -> None:
        """The first request of the key by which `key` is judged."""
        if key in self.unjudged:
            del self.unjudged[key]
            facts.seat = key

    def _move(self, known: list[int], moves: Iterable[tuple[Facts, int]]) -> None:
        """Put keys of one layer into their classes, and on these shelves whom they judge."""
        shelves = self.shelves
        for facts, to in moves:
            old, facts.filed = facts.filed, to
            if old != UNASKED:
                known[old] -= 1
            known[to] += 1
            seat = facts.seat
            if seat is not None:
                if facts.place:
                    shelves[old].take(facts.place)
                facts.place = number = facts.number
                shelves[to].put(number, seat)

    def insert(self, key: Key, now: int) -> None:
        """File under the class as it stands."""
        facts = self.past.asked.get(self.judge(key))
        if facts is None:
            self.unjudged[key] = None
        else:
            facts.seat, facts.place = key, facts.number
            self.shelves[facts.filed].put(facts.number, key)
            self.ranking.clear()

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The first key of the least likely class that has one to give, or of several equally likely ones."""
        if self.unjudged and (key := first_free(self.unjudged, held)):
            return key
        if not self.ranking:
            pairs = zip(self.table.likelihoods(), self.shelves, strict=True)
            filled = [pair for pair in pairs if pair[1].row or pair[1].strays]
            self.ranking = sorted(filled, key=lambda pair: pair[0])
        oldest = self.ties == "oldest"
        found: tuple[int, int, Key] | None = None
        for value, shelf in self.ranking:
            if found is not None and value > found[0]:
                break
            first = shelf.first(held) if oldest else shelf.latest(held)
            if first is not None and (found is None or (first < found[1:]) == oldest):
                found = (value, *first)
        return None if found is None else found[2]

    def evict(self, key: Key) -> None:
        """Only residency ends."""
        facts = self.past.asked.get(self.judge(key))
        if facts is None:
            del self.unjudged[key]
        else:
            self.shelves[facts.filed].take(facts.place)
            facts.seat, facts.place = None, 0

    def forget(self) -> None:
        """Every known key is classified anew from what is left."""
        super().forget()
        past = self.past
        for key, facts in sorted(past.asked.items(), key=lambda item: item[1].number):
            self._move(self.known[key.layer], [(facts, self.classify(facts, past.age(key)))])
        self.ranking.clear()
