"""Route hotness: evict what the router has chosen least of late, whether it was resident then or not.

What it is: the policy of ds4's streaming cache: a decayed count of selections, hotness, before recency.
State: the hotness of every key that was ever chosen or seeded, resident or not; the stamp of each resident's latest
touch; the tokens decoded so far, and at which of them hotness was last halved.
Order: (hotness, stamp of the latest touch), rising.
Transitions: every selection adds one to its key, repeats inside an event included, hit or miss, up to a ceiling; every
sixteenth decoded token first halves all hotness, rounding down. A prompt adds the frequencies of its tokens and moves
no clock. A seed adds its priority, at least one, whether the key is resident or not. A new conversation zeroes hotness
and leaves residents and recency alone. An eviction changes no hotness; a prefetch stamps recency and adds none.
Laws: a key of hotness h that nothing asks for has none after 16 x (floor(log2 h) + 1) tokens: 96 for a priority of 32,
208 for 4096. So seeds are no pins. Under touch `router` a stack policy, under `hits_first`, the touch order of ds4,
none. Where nothing is ever halved, seeded or reset it is `lfu` that counts the repeats inside an event.
Engines that differ: ds4 counts a token at a fixed layer in its version of August 2026 (0 for DeepSeek, 3 for GLM; a
slice that starts elsewhere never ages) and at the lowest layer seen in that of September. Its early load chooses the
victims of a decoded layer before that layer is counted: `early_load`, which can matter only where a halving is due.
An entry at the ceiling with the last possible stamp is no victim there: unreachable. Without a victim it grows past
its budget; here the machine waits, bypasses or refuses. Before June 2026 it ranked by (hits, recency). q36 halves
every 16 tokens as well; llama.cpp's moe-stream decays hotness with an LRU tie-break at a rate not published.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from expertcache_spec.eviction.base import Policy
from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.eviction.engines import clock
from expertcache_spec.eviction.engines.clock import TokenClock
from expertcache_spec.eviction.engines.hotness import Hotness, LaterHotness
from expertcache_spec.eviction.engines.scan import Scan
from expertcache_spec.eviction.heaps import Heaps
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

UINT32_MAX = (1 << 32) - 1


class Declared(Scan):
    """The rule (XC-EVICT-180)."""

    def __init__(self, *, ceiling: int, early_load: bool, **clock: Any) -> None:
        super().__init__()
        self.hotness, self.early_load = Hotness(TokenClock(**clock), ceiling), early_load
        self.waiting: Event | None = None

    def rank(self, key: Key) -> tuple[Any, ...]:
        """Hotness before recency."""
        return (self.hotness.of.get(key, 0), self.touched[key])

    def begin(self, event: Event) -> None:
        """A new conversation forgets; then the event is counted, after the choice of victims under early load."""
        if self.hotness.clock.begins_anew(event):
            self.hotness.start_anew()
        if self.early_load and event.phase == "decode":
            self.waiting = event
        else:
            self.hotness.note(event)

    def settle(self, keys: Sequence[Key]) -> None:
        """Count what was loaded early."""
        if self.waiting is not None:
            self.hotness.note(self.waiting)
            self.waiting = None

    def prioritize(self, key: Key, priority: int) -> None:
        """Add the priority."""
        self.hotness.seed(key, priority)

    def forget(self) -> None:
        """Zero the hotness."""
        self.hotness.start_anew()


class RouteHotness(Policy):
    """The indexed form: residents by hotness, then by latest touch; those of 2h and 2h + 1 meet at a halving."""

    name: ClassVar[str] = "route-hotness"
    stamped: ClassVar[bool] = False

    def __init__(self, *, ceiling: int, early_load: bool, **clock: Any) -> None:
        self.hotness, self.early_load = LaterHotness(TokenClock(**clock), ceiling), early_load
        self.index, self.touches = Heaps(), 0
        self.waiting: Event | None = None

    def begin(self, event: Event) -> None:
        """Count the event, or let it wait for `settle`, which files the residents that it asks for."""
        if self.hotness.clock.begins_anew(event):
            self.forget()
        if self.early_load and event.phase == "decode":
            self.waiting = event
        elif self.hotness.note(event):
            self.index.shift(self.hotness.of.halvings)

    def insert(self, key: Key, now: int) -> None:
        """File as the most recent of its hotness."""
        self.touches += 1
        self.index.file(key, self.hotness.of.get(key, 0), self.touches)

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Nothing yet: `settle` files what was touched."""

    inserts = hits

    def settle(self, keys: Sequence[Key]) -> None:
        """File what was touched, in touch order, under the hotness of now."""
        if self.waiting is not None and self.hotness.note(self.waiting):
            self.index.shift(self.hotness.of.halvings)
        self.waiting = None
        hot, file, first = self.hotness.of.get, self.index.file, self.touches + 1
        for place, key in enumerate(keys, first):
            file(key, hot(key, 0), place)
        self.touches += len(keys)

    def prioritize(self, key: Key, priority: int) -> None:
        """Add the priority; a resident keeps its recency."""
        if self.hotness.seed(key, priority):
            self.index.shift(self.hotness.of.halvings)
        if key in self.index.filed:
            self.index.file(key, self.hotness.of[key], self.index.filed[key][0])

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least hot, of equals the least recent."""
        return self.index.first(held)

    def leave(self, held: Collection[Key], incoming: Sequence[Key]) -> list[Key]:
        """As many of them, in one walk."""
        return self.index.take(held, len(incoming))

    def evict(self, key: Key) -> None:
        """Remove from the index; the hotness stays."""
        self.index.remove(key)

    def forget(self) -> None:
        """Zero the hotness; the recency stays."""
        self.hotness.start_anew()
        self.index.level()


CARD = Card(
    "route-hotness",
    "XC-EVICT-180",
    Declared,
    RouteHotness,
    "least hot, then least recently touched",
    "antirez/ds4, Metal: versions of August (b0309611) and September 2026 (30ac654f)",
    "O(log resident); O(hotnesses) at a halving",
    (
        *clock.PARAMETERS,
        Parameter("ceiling", UINT32_MAX, "where hotness stops growing", least=1),
        Parameter("early_load", False, "whether a decoded layer's victims are chosen before it is counted"),
    ),
    objections=clock.objections,
)
