"""Decisions from a script: a residency machine whose hits, misses and victims are those of a schedule's scenario.

A schedule is about when, not about what: the loads of its scenario have been decided by a replay. To run them for real
the runtime needs a machine that leases, reads, publishes and refuses as ever, and decides as the script says.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from expertcache_spec.errors import MustWait
from expertcache_spec.eviction import make
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.residency import Residency, Selection
from expertcache_spec.schedule import Load, Scenario
from expertcache_spec.schedule.work import adoptions
from expertcache_spec.trace import Event


@attrs.frozen(slots=False)
class Script:
    """What a scenario's loads say about records. Events are numbers, their places in the replay.

    issued: each speculative read that is called for, by event and place, with the event that misses its record.
    """

    loads: tuple[Load, ...]
    issued: dict[tuple[int, int], int | None]

    @staticmethod
    def of(scenario: Scenario) -> Script:
        """The script of a scenario."""
        return Script(scenario.loads, adoptions(scenario.loads))

    def events(self) -> list[Event]:
        """The events, each with its number as its pass."""
        return [
            Event(load.layer, (tuple(key.expert for key in load.keys),), load.stream, number)
            for number, load in enumerate(self.loads)
        ]

    def initial(self) -> list[Key]:
        """Records that are there from the outset: hit, or made to leave, before any event misses or guesses them."""
        found: dict[Key, bool] = {}
        for event, load in enumerate(self.loads):
            for key in (*load.keys, *load.victims):
                found.setdefault(key, key not in load.missing)
            for place, key in enumerate(load.prefetches):
                if (event, place) in self.issued:
                    found.setdefault(key, False)
        return [key for key, there in found.items() if there]

    def next_use(self, key: Key, after: int) -> int | None:
        """The first event behind that one which asks for the record."""
        return next((n for n in range(after + 1, len(self.loads)) if key in self.loads[n].keys), None)

    def keeps(self, event: int, key: Key) -> bool:
        """Whether the record that the event misses is resident from there on."""
        until = self.next_use(key, event)
        if until is not None and key not in self.loads[until].missing:
            return True
        return any(key in load.victims for load in self.loads[event + 1 : until])

    def victims(self, event: int) -> Iterator[Key]:
        """The records that leave for the event."""
        for key in self.loads[event].victims:
            until = self.next_use(key, event)
            if until is None or key in self.loads[until].missing or self.guessed(key, event, until):
                yield key

    def guessed(self, key: Key, after: int, until: int) -> bool:
        """Whether an event from the one on and before the other begins to read the record on speculation."""
        return any(after <= by < until and self.loads[by].prefetches[place] == key for by, place in self.issued)

    def guesses(self, event: int) -> bool:
        """Whether the event misses a record whose read may have begun on speculation."""
        return event in self.issued.values()


class Scripted(Residency):
    """A machine that decides by the script. It has room for everything; what leaves, leaves when the script says so.

    owner: for each record under way, the event and the place that its requests belong to.
    """

    def __init__(self, script: Script, geometry: Geometry, fingerprint: str) -> None:
        super().__init__(
            geometry, Budget(slots=geometry.layers * geometry.experts), make("lru"), fingerprint=fingerprint
        )
        self.script = script
        self.owner: dict[Key, tuple[int, int]] = {}
        self.numbers: dict[int, int] = {}
        """Of each ticket, the event."""
        self._guessed: dict[Key, int] = {}

    def going(self, event: int) -> list[Key]:
        """What must leave before the event reads: its victims, and what is there although the script misses it."""
        load, part = self.script.loads[event], self.parts[-1]
        stale = sorted(key for key in load.missing if self._guessed.get(key) != event)
        return [key for key in (*self.script.victims(event), *stale) if part.has(key)]

    def ready(self, event: int) -> bool:
        """Whether the event would find what the script says: its hits are there, nothing is held that it replaces.

        For its victims it may stand in line, except where it misses a record that is being read on speculation: that
        read is demand from the moment at which the event is known.
        """
        load, holds = self.script.loads[event], self.parts[-1].holds
        there = all(key not in self.flights for key in load.keys if key not in load.missing)
        must_go = self.going(event) if self.script.guesses(event) else set(self.going(event)) & load.missing
        return there and not any(key in holds for key in must_go)

    def select(self, event: Event) -> Selection:
        """As `Residency.select`, decided by the script; raises `MustWait` while somebody holds what must leave."""
        number, part = event.pass_index, self.parts[-1]
        going = self.going(number)
        if any(key in part.holds for key in going):
            raise MustWait("a victim is held", where=f"event {number}", cure="release an executed event")
        for key in going:
            self.drop(part, key)
        hits = [key for key in event.keys if key in part.resident]
        joined = [key for key in event.keys if key in self.flights]
        absent = [key for key in event.keys if not part.has(key)]
        kept = [key for key in absent if self.script.keeps(number, key)]
        alone = tuple(key for key in absent if key not in kept)
        self.owner |= {key: (number, event.keys.index(key)) for key in kept}
        part.policy.begin(event)
        found = self._serve(part, event, event.keys, hits, joined, kept, joined + kept, alone, (), [])
        found = found._replace(victims=tuple(going))
        self.leases[found.ticket].selection = found
        self.numbers[found.ticket] = number
        return found

    def may_guess(self, event: int, place: int) -> bool:
        """Book a speculative read of the script; whether it is one that the cache would begin now."""
        load, target = self.script.loads[event], self.script.issued[event, place]
        key = load.prefetches[place]
        if self.parts[-1].has(key):
            return False
        self.owner[key] = event, len(load.keys) + place
        if target is not None:
            self._guessed[key] = target
            self.owner[key] = target, self.script.loads[target].keys.index(key)
        return True
