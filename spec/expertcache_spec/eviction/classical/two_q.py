"""2Q: a key proves itself by coming back after it has left; only then it enters the long queue.

What it is: the full version of Johnson and Shasha: a FIFO of first comers, the ghosts of those that it let go, and an
LRU of those that returned while still remembered.
State: A1in, a queue of residents in order of insertion; A1out, the keys that left it, at most `a1out` times the
capacity; Am, residents in order of recency. Kin is `a1in` times the capacity; both are rounded down, Kin to one at
least.
Order: while A1in holds more than Kin, its keys, oldest first; else those of Am, least recent first. Held keys are
passed over where they lie; where one queue has nothing to give, the other gives.
Transitions: a hit in A1in changes nothing, a hit in Am makes the key the most recent. A victim out of A1in becomes the
newest of A1out, one out of Am is forgotten. A miss that is in A1out enters Am and leaves A1out; any other enters A1in.
A seed or a prefetch always enters A1in, and is no ghost from then on. Reset of history empties A1out. In an event A1in
counts as if the earlier misses of the event that are bound for it were in it.
Laws: A1out holds at most its size, and never a resident. Without ghosts it is FIFO, whatever is hit. No stack policy.
Engines that differ: libCacheSim's TwoQ is this one, hit for hit and victim for victim, where Kin is at least one; below
it keeps nothing. The paper's simple version has no A1in.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

import attrs

from expertcache_spec.eviction.base import Policy
from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.eviction.classical.ghosts import Queue, bound, first_of_two
from expertcache_spec.model import Key


@attrs.define(slots=False)
class TwoQRule(Policy):
    """The rule (XC-EVICT-125): three lists, the next to leave first."""

    a1in: float
    a1out: float
    capacity: int = attrs.field(default=0, init=False)
    queue_in: list[Key] = attrs.field(factory=list, init=False)
    ghosts: list[Key] = attrs.field(factory=list, init=False)
    main: list[Key] = attrs.field(factory=list, init=False)
    coming: list[Key] = attrs.field(factory=list, init=False)
    """The event's misses, in router order."""
    returning: list[Key] = attrs.field(factory=list, init=False)
    """Those of them that were ghosts."""

    @property
    def present(self) -> list[Key]:
        """Every key that holds a slot."""
        return [*self.queue_in, *self.main]

    def set_capacity(self, records: int) -> None:
        """Forget the ghosts beyond the new size."""
        self.capacity = records
        self._forget_overflow()

    def _forget_overflow(self) -> None:
        while len(self.ghosts) > int(self.capacity * self.a1out):
            self.ghosts.pop(0)

    def misses(self, keys: Sequence[Key]) -> None:
        """Look them up among the ghosts."""
        self.coming = list(keys)
        self.returning = [key for key in keys if key in self.ghosts]
        self.ghosts = [key for key in self.ghosts if key not in keys]

    def insert(self, key: Key, now: int) -> None:
        """Into Am when it returns, else into A1in."""
        (self.main if key in self.returning else self.queue_in).append(key)
        self.returning = [other for other in self.returning if other != key]
        self.ghosts = [other for other in self.ghosts if other != key]

    def settle(self, keys: Sequence[Key]) -> None:
        """Recency in Am is touch order."""
        for key in keys:
            if key in self.main:
                self.main.remove(key)
                self.main.append(key)

    def _size_in(self, incoming: Key | None) -> int:
        """A1in, the earlier misses of the event counted as in it."""
        earlier = self.coming[: self.coming.index(incoming)] if incoming is not None and incoming in self.coming else []
        return len(self.queue_in) + sum(key not in self.returning for key in earlier)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The paper's reclaimfor."""
        kin = max(1, int(self.capacity * self.a1in))
        free_in = [key for key in self.queue_in if key not in held]
        free_main = [key for key in self.main if key not in held]
        if free_in and (self._size_in(incoming) > kin or not free_main):
            self.queue_in.remove(free_in[0])
            self.ghosts.append(free_in[0])
            self._forget_overflow()
            return free_in[0]
        if free_main:
            self.main.remove(free_main[0])
            return free_main[0]
        return None

    def evict(self, key: Key) -> None:
        """Remove; no ghost."""
        for queue in (self.queue_in, self.main):
            if key in queue:
                queue.remove(key)

    def forget(self) -> None:
        """Forget the ghosts."""
        self.ghosts.clear()


@attrs.define(slots=False)
class TwoQ(Policy):
    """The indexed form: three ordered dicts; everything but passing over held keys is O(1)."""

    name: ClassVar[str] = "two-q"
    stamped: ClassVar[bool] = False
    a1in: float
    a1out: float
    kin: int = attrs.field(default=1, init=False)
    kout: int = attrs.field(default=0, init=False)
    queue_in: Queue = attrs.field(factory=OrderedDict, init=False)
    ghosts: Queue = attrs.field(factory=OrderedDict, init=False)
    main: Queue = attrs.field(factory=OrderedDict, init=False)
    returning: set[Key] = attrs.field(factory=set, init=False)
    earlier: dict[Key, int] = attrs.field(factory=dict, init=False)
    """Miss of the event to how many before it are bound for A1in."""

    def set_capacity(self, records: int) -> None:
        """Size the queues."""
        self.kin, self.kout = max(1, int(records * self.a1in)), int(records * self.a1out)
        bound(self.ghosts, self.kout)

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Nothing yet: `settle` moves those in Am."""

    def misses(self, keys: Sequence[Key]) -> None:
        """Find the returning ones, and count the others."""
        self.returning.clear()
        self.earlier, fresh = {}, 0
        for key in keys:
            self.earlier[key] = fresh
            if key in self.ghosts:
                del self.ghosts[key]
                self.returning.add(key)
            else:
                fresh += 1

    def insert(self, key: Key, now: int) -> None:
        """Into Am when it returns, else into A1in."""
        if key in self.returning:
            self.returning.remove(key)
            self.main[key] = None
        else:
            self.ghosts.pop(key, None)
            self.queue_in[key] = None

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """As `insert`."""
        for key in keys:
            self.insert(key, 0)

    def settle(self, keys: Sequence[Key]) -> None:
        """Move those in Am to its recent end."""
        main = self.main
        for key in keys:
            if key in main:
                main.move_to_end(key)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """From A1in while it is too long, else from Am; from the other when there is nothing to take."""
        size = len(self.queue_in) + (self.earlier.get(incoming, 0) if incoming is not None else 0)
        order = (self.queue_in, self.main) if size > self.kin else (self.main, self.queue_in)
        queue, key = first_of_two(*order, held)
        if key is not None:
            del queue[key]
            if queue is self.queue_in:
                self.ghosts[key] = None
                bound(self.ghosts, self.kout)
        return key

    def evict(self, key: Key) -> None:
        """Remove; no ghost."""
        self.queue_in.pop(key, None)
        self.main.pop(key, None)

    def forget(self) -> None:
        """Forget the ghosts."""
        self.ghosts.clear()


CARD = Card(
    "two-q",
    "XC-EVICT-125",
    TwoQRule,
    TwoQ,
    "oldest first comer while there are many, else least recent of those that came back",
    "Johnson, Shasha, VLDB 1994; libCacheSim",
    "O(1)",
    parameters=(
        Parameter("a1in", 0.25, "Kin: the part of the capacity that A1in may hold when room lacks", (), 0, 1),
        Parameter("a1out", 0.5, "Kout: how many ghosts A1out keeps, for each record of the capacity", (), 0, 16),
    ),
)
