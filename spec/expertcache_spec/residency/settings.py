"""The declared choices of the machine, and what its transitions answer."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import attrs

from expertcache_spec.admission.naming import ADMISSIONS, spelled
from expertcache_spec.errors import UnknownName
from expertcache_spec.model import Key, Scope
from expertcache_spec.trace import Event

Room = Literal["reserve", "trim", "retain"]
Touch = Literal["router", "hits_first"]
Repeats = Literal["promote", "ignore"]
Overflow = Literal["error", "bypass", "waves"]
NoVictimRule = Literal["wait", "bypass", "error"]
ResetScope = Literal["counters", "history", "contents"]

SETTINGS: dict[str, tuple[str, ...]] = {
    "scope": get_args(Scope),
    "room": get_args(Room),
    "touch": get_args(Touch),
    "repeats": get_args(Repeats),
    "overflow": get_args(Overflow),
    "no_victim": get_args(NoVictimRule),
    "admission": tuple(ADMISSIONS),
}
"""Each setting with its values; the first is the default. An admission may have parameters: `sightings:n=3`."""


@attrs.frozen(slots=False)
class Settings:
    """The choices that real engines make differently, as parameters.

    scope: one cache over all layers, or isolated quotas by layer. room: `reserve` evicts, then loads; `trim` loads
    the event, then evicts down without taking the event's own keys; `retain` serves the event, then keeps the best of
    residents and event. touch: recency in router order, or hits before misses. repeats: whether a later row asking
    for the same expert makes it more recent. overflow: what happens when an event alone cannot fit. no_victim: what
    happens when the room is leased, in flight or pinned. admission: which misses are kept; the others are served
    without being kept.

    Raises `UnknownName` for a value that does not exist.
    """

    scope: Scope = "global"
    room: Room = "reserve"
    touch: Touch = "router"
    repeats: Repeats = "promote"
    overflow: Overflow = "error"
    no_victim: NoVictimRule = "wait"
    admission: str = attrs.field(default="always", converter=spelled)

    def __attrs_post_init__(self) -> None:
        for name, known in SETTINGS.items():
            if name != "admission" and getattr(self, name) not in known:
                raise UnknownName(
                    f"{name} {getattr(self, name)!r}", where="settings", cure=f"one of {', '.join(known)}"
                )


class Selection(NamedTuple):
    """What one selection decided; every tuple is in router order, `victims` in the order chosen.

    hits, misses and bypassed split the event's keys. reads: the misses whose read this event starts and publishes
    with `complete`. joined: misses that somebody else is already reading. refused: misses that are served and not
    kept. deferred: misses left for later waves. victims: evicted to make room.
    """

    ticket: int
    event: Event
    hits: tuple[Key, ...]
    misses: tuple[Key, ...]
    reads: tuple[Key, ...]
    victims: tuple[Key, ...] = ()
    joined: tuple[Key, ...] = ()
    refused: tuple[Key, ...] = ()
    bypassed: tuple[Key, ...] = ()
    deferred: tuple[Key, ...] = ()


class Step(NamedTuple):
    """What one event did, whole: the terms in which implementations are compared.

    Every tuple is in router order but `victims`, which are in the order chosen. refused: served, not kept.
    """

    hits: tuple[Key, ...] = ()
    misses: tuple[Key, ...] = ()
    victims: tuple[Key, ...] = ()
    bypassed: tuple[Key, ...] = ()
    refused: tuple[Key, ...] = ()
