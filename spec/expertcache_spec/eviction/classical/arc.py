"""ARC: one list for keys seen once, one for keys seen again, and ghosts of both that say which deserves more room.

What it is: Megiddo and Modha's adaptive replacement, with the capacity in records as its c.
State: T1 and T2, the residents seen once and seen again; B1 and B2, the ghosts that left them; each in order of
recency. The target p, from 0 to c, is what T1 should hold: an IEEE double, one division and one addition a step, or
under `step` whole an integer.
Order: T1, when it holds more than p, or exactly p while the incoming key was a ghost of B2; else T2; the least recent
first. Held keys are passed over where they lie; where one list has nothing to give, the other gives.
Transitions: a hit moves the key to the recent end of T2. A miss in B1 raises p by the size of B2 over that of B1, a
miss in B2 lowers it by the inverse, by one at least; both enter T2 and are no ghosts any more. Any other miss enters
T1. A victim becomes the most recent ghost of its side. After either B1 forgets its oldest while T1 and B1 together
exceed c, then B2 while all four exceed 2c: which is when the paper forgets them, seen from the other end. In an event p
learns from all its ghosts before the first victim is chosen, and T1 counts as if the earlier misses bound for it were
in it. A seed or a prefetch enters T1, teaches p nothing, and is no ghost from then on. A smaller c lowers p to c and
forgets ghosts at once. Reset of history zeroes p and empties B1 and B2; T1 and T2 are places, and stay.
Laws: T1 and T2 hold at most c together, T1 and B1 too, all four 2c; p is from 0 to c: in slots, and while nothing
overshoots. Without any hit it is FIFO. While no ghost returns p is 0, and T2 gives only where T1 cannot. No stack
policy.
Engines that differ: libCacheSim's ARC is this one, hit for hit and victim for victim; an older version of it is `step`
whole. PyMimircache and cacheus give other counts under the name. siphon adds execution pins, which here are held keys.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

import attrs

from expertcache_spec.eviction.base import Policy
from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.eviction.classical.ghosts import Queue, first_of_two
from expertcache_spec.model import Key


def ratio(other: int, own: int, step: str) -> float:
    """How far p moves for a ghost of the list that holds `own`, beside `other` ghosts of the other list."""
    return max(1, other // own) if step == "whole" else max(1.0, other / own)


@attrs.define(slots=False)
class ArcRule(Policy):
    """The rule (XC-EVICT-115): the paper's four lists, least recent first, and p."""

    step: str
    c: int = attrs.field(default=0, init=False)
    p: float = attrs.field(default=0, init=False)
    t1: list[Key] = attrs.field(factory=list, init=False)
    t2: list[Key] = attrs.field(factory=list, init=False)
    b1: list[Key] = attrs.field(factory=list, init=False)
    b2: list[Key] = attrs.field(factory=list, init=False)
    coming: list[Key] = attrs.field(factory=list, init=False)
    """The event's misses, in router order."""
    returning: dict[Key, str] = attrs.field(factory=dict, init=False)
    """Those of them that were ghosts, and of which list."""

    @property
    def present(self) -> list[Key]:
        """Every key that holds a slot."""
        return [*self.t1, *self.t2]

    def set_capacity(self, records: int) -> None:
        """Clip p, forget ghosts."""
        self.c, self.p = records, min(self.p, records)
        self._forget_overflow()

    def _forget_overflow(self) -> None:
        while self.b1 and len(self.t1) + len(self.b1) > self.c:
            self.b1.pop(0)
        while self.b2 and len(self.t1) + len(self.t2) + len(self.b1) + len(self.b2) > 2 * self.c:
            self.b2.pop(0)

    def hit(self, key: Key, now: int) -> None:
        """Seen again: case I."""
        for queue in (self.t1, self.t2):
            if key in queue:
                queue.remove(key)
        self.t2.append(key)

    def misses(self, keys: Sequence[Key]) -> None:
        """Learn from the ghosts among them: cases II and III."""
        self.coming, self.returning = list(keys), {}
        for key in keys:
            if key in self.b1:
                self.p = min(self.c, self.p + ratio(len(self.b2), len(self.b1), self.step))
                self.b1.remove(key)
                self.returning[key] = "b1"
            elif key in self.b2:
                self.p = max(0, self.p - ratio(len(self.b1), len(self.b2), self.step))
                self.b2.remove(key)
                self.returning[key] = "b2"

    def insert(self, key: Key, now: int) -> None:
        """Into T2 when it returns, else into T1."""
        (self.t2 if self.returning.pop(key, "") else self.t1).append(key)
        for ghosts in (self.b1, self.b2):
            if key in ghosts:
                ghosts.remove(key)
        self._forget_overflow()

    def settle(self, keys: Sequence[Key]) -> None:
        """Recency inside a list is touch order."""
        for key in keys:
            queue = self.t1 if key in self.t1 else self.t2
            queue.remove(key)
            queue.append(key)

    def _size_of_t1(self, incoming: Key | None) -> int:
        earlier = self.coming[: self.coming.index(incoming)] if incoming is not None and incoming in self.coming else []
        return len(self.t1) + sum(key not in self.returning for key in earlier)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The paper's replace."""
        free_1 = [key for key in self.t1 if key not in held]
        free_2 = [key for key in self.t2 if key not in held]
        size = self._size_of_t1(incoming)
        from_b2 = incoming is not None and self.returning.get(incoming) == "b2"
        if free_1 and (size > self.p or (from_b2 and size == self.p) or not free_2):
            self.t1.remove(free_1[0])
            self.b1.append(free_1[0])
            self._forget_overflow()
            return free_1[0]
        if free_2:
            self.t2.remove(free_2[0])
            self.b2.append(free_2[0])
            self._forget_overflow()
            return free_2[0]
        return None

    def evict(self, key: Key) -> None:
        """Remove; no ghost."""
        for queue in (self.t1, self.t2):
            if key in queue:
                queue.remove(key)

    def forget(self) -> None:
        """Forget p and the ghosts."""
        self.p = 0
        self.b1.clear()
        self.b2.clear()


@attrs.define(slots=False)
class Arc(Policy):
    """The indexed form: four ordered dicts; everything but passing over held keys is O(1)."""

    name: ClassVar[str] = "arc"
    stamped: ClassVar[bool] = False
    step: str
    c: int = attrs.field(default=0, init=False)
    p: float = attrs.field(default=0, init=False)
    t1: Queue = attrs.field(factory=OrderedDict, init=False)
    t2: Queue = attrs.field(factory=OrderedDict, init=False)
    b1: Queue = attrs.field(factory=OrderedDict, init=False)
    b2: Queue = attrs.field(factory=OrderedDict, init=False)
    returning: dict[Key, bool] = attrs.field(factory=dict, init=False)
    """Miss of the event that was a ghost to whether it was one of B2."""
    earlier: dict[Key, int] = attrs.field(factory=dict, init=False)
    """Miss of the event to how many before it are bound for T1."""

    def set_capacity(self, records: int) -> None:
        """Clip p, forget ghosts."""
        self.c, self.p = records, min(self.p, records)
        self._trim()

    def _trim(self) -> None:
        ones = len(self.t1) + len(self.b1)
        while self.b1 and ones > self.c:
            self.b1.popitem(last=False)
            ones -= 1
        excess = ones + len(self.t2) + len(self.b2) - 2 * self.c
        while self.b2 and excess > 0:
            self.b2.popitem(last=False)
            excess -= 1

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """To T2; `settle` orders it."""
        t1, t2 = self.t1, self.t2
        for key in keys:
            if key in t1:
                del t1[key]
                t2[key] = None

    def misses(self, keys: Sequence[Key]) -> None:
        """Learn from the ghosts, and count the others."""
        b1, b2, fresh = self.b1, self.b2, 0
        self.earlier, self.returning = {}, {}
        for key in keys:
            self.earlier[key] = fresh
            if key in b1:
                self.p = min(self.c, self.p + ratio(len(b2), len(b1), self.step))
                del b1[key]
                self.returning[key] = False
            elif key in b2:
                self.p = max(0, self.p - ratio(len(b1), len(b2), self.step))
                del b2[key]
                self.returning[key] = True
            else:
                fresh += 1

    def insert(self, key: Key, now: int) -> None:
        """Into its list; then forget what is too much."""
        if self.returning.pop(key, None) is None:
            self.b1.pop(key, None)
            self.b2.pop(key, None)
            self.t1[key] = None
        else:
            self.t2[key] = None
        self._trim()

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """As `insert`."""
        for key in keys:
            self.insert(key, 0)

    def settle(self, keys: Sequence[Key]) -> None:
        """Move each to the recent end of its list."""
        t1, t2 = self.t1, self.t2
        for key in keys:
            (t1 if key in t1 else t2).move_to_end(key)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """From T1 or T2 by p; from the other when there is nothing to take."""
        size, from_b2 = len(self.t1), False
        if incoming is not None:
            size, from_b2 = size + self.earlier.get(incoming, 0), self.returning.get(incoming, False)
        from_t1 = size > self.p or (from_b2 and size == self.p)
        queue, key = first_of_two(*((self.t1, self.t2) if from_t1 else (self.t2, self.t1)), held)
        if key is not None:
            del queue[key]
            (self.b1 if queue is self.t1 else self.b2)[key] = None
            self._trim()
        return key

    def evict(self, key: Key) -> None:
        """Remove; no ghost."""
        self.t1.pop(key, None)
        self.t2.pop(key, None)

    def forget(self) -> None:
        """Forget p and the ghosts."""
        self.p = 0
        self.b1.clear()
        self.b2.clear()


CARD = Card(
    "arc",
    "XC-EVICT-115",
    ArcRule,
    Arc,
    "least recent of the keys seen once, or of those seen again, by a target that ghosts move",
    "Megiddo, Modha, FAST 2003; libCacheSim; siphon",
    "O(1)",
    parameters=(
        Parameter(
            "step", "real", "whether p moves by fractions or is rounded down to whole records", ("real", "whole")
        ),
    ),
)
