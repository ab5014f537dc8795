"""What a log says about its policy: each event with its hits and its victims, and nothing else."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import attrs

from expertcache_spec.history.following import FOLLOWERS, Record, event_of
from expertcache_spec.history.reading import Line
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


class Decided(NamedTuple):
    """One event, the keys that were resident when it began, and those that left for it, in the log's order.

    kept_out: keys of the event that were served and not kept: bypassed, refused, let go at its end.
    """

    event: Event
    hits: tuple[Key, ...]
    victims: tuple[Key, ...]
    kept_out: tuple[Key, ...] = ()


@attrs.define
class _Building:
    event: Event
    hits: list[Key] = attrs.field(factory=list)
    victims: list[Key] = attrs.field(factory=list)
    kept_out: list[Key] = attrs.field(factory=list)
    resumed: bool = False
    deferring: bool = False
    done: bool = False

    def note(self, record: Record) -> None:
        """Take a judgement, an eviction or a refusal of the event."""
        op, how, key = record["op"], record.get("how"), Key(*record["key"])
        self.deferring |= how == "defer"
        if op == "hit" and not self.resumed:
            self.hits.append(key)
        elif op == "evict":
            self.victims.append(key)
        elif op in ("bypass", "refuse") or how == "refuse":
            self.kept_out.append(key)

    def decided(self) -> Decided:
        """What was noted."""
        return Decided(self.event, tuple(self.hits), tuple(self.victims), tuple(self.kept_out))


def decisions(lines: Iterable[Line]) -> Iterator[Decided]:
    """The events of a log in the order of their selection, each when all its waves have been released.

    An eviction belongs to the event whose ticket it names, or whose selection, wave or release it follows; those of a
    resize or a prefetch belong to none. The log is taken at its word: `check` says whether it may be. Raises
    `InvalidTrace` for a selection that is no event. Memory is bounded by what is open.
    """
    order: deque[_Building] = deque()
    tickets: dict[int, _Building] = {}
    current: _Building | None = None
    released, guessed = -1, False
    for _, record in lines:
        op, ticket = record["op"], record.get("ticket", -1)
        if op in FOLLOWERS:
            building = None if guessed else tickets.get(ticket, current)
            if building is not None:
                building.note(record)
            continue
        if released >= 0 and current is not None:
            current.done = not current.deferring
            if current.done:
                del tickets[released]
        while order and order[0].done:
            yield order.popleft().decided()
        current, released, guessed = None, -1, op == "prefetch"
        if op == "select":
            current = tickets[ticket] = _Building(event_of(record))
            order.append(current)
        elif op == "resume" and record["after"] in tickets:
            current = tickets[ticket] = tickets.pop(record["after"])
            current.resumed, current.deferring = True, False
        elif op in ("release", "abandon") and ticket in tickets:
            current, released = tickets[ticket], ticket
            current.deferring &= op == "release"
    for building in order:
        yield building.decided()
