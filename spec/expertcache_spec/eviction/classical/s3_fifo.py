"""S3-FIFO: three queues; one-hit wonders leave by the small one before they can take room in the main one.

What it is: a small FIFO for newcomers, a main FIFO in which used keys go round again, and the ghosts of what the small
one let go, which enter the main one when they return.
State: small and main, residents in order of insertion; a count from 0 to `ceiling` for each; ghosts, at most `ghosts`
times the capacity. The small queue's size is `small` times the capacity, at least one; the main one has the rest. All
are rounded down.
Order: when main holds more than its size, or small has nothing to give, main gives: its oldest key, if its count is
above 0, pays one and goes to the new end; the victim is the first that cannot pay. Else small gives: its oldest key, if
its count is `threshold` or more, moves to the new end of main with count 0; the victim is the first with less, and it
becomes a ghost. After such a move the question is asked anew (`promotion` ask-again, the paper), or small goes on until
a key leaves it (go-on). Held keys are passed over where they lie.
Transitions: a hit adds one, up to `ceiling`. A miss that is a ghost enters main and is no ghost any more; any other
enters small, with count 0. Under `fill` main, until the first victim ever, newcomers enter main when small is full. A
seed or a prefetch is a newcomer, and no ghost from then on. Reset of history zeroes counts and forgets the ghosts. In
an event main counts as if the earlier misses bound for it were in it.
Laws: under `fill` small nothing enters main that was not hit `threshold` times or let go before: one-hit wonders leave
by small. The ghosts stay within their size, and are never resident. Without ghosts, and with a `threshold` above the
`ceiling`, it is FIFO. No stack policy.
Engines that differ: libCacheSim's S3FIFO, hit for hit and victim for victim, is `fill` main with `promotion` go-on,
where the small size is two at least; below it keeps nothing. The paper asks whether small holds its size, which is the
same question when the cache is full; after a move that makes main too long it evicts from both, where here one is
enough.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

import attrs

from expertcache_spec.eviction.base import Policy, first_free
from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.eviction.classical.ghosts import Queue, bound
from expertcache_spec.model import Key


def size_of_small(capacity: int, small: float) -> int:
    """The records of the small queue."""
    return max(1, int(capacity * small))


@attrs.define(slots=False)
class S3FifoRule(Policy):
    """The rule (XC-EVICT-132): three lists, oldest first."""

    small: float
    ghosts: float
    threshold: int
    ceiling: int
    fill: str
    promotion: str
    capacity: int = attrs.field(default=0, init=False)
    filling: bool = attrs.field(default=True, init=False)
    queue_small: list[Key] = attrs.field(factory=list, init=False)
    queue_main: list[Key] = attrs.field(factory=list, init=False)
    queue_ghosts: list[Key] = attrs.field(factory=list, init=False)
    counts: dict[Key, int] = attrs.field(factory=dict, init=False)
    coming: list[Key] = attrs.field(factory=list, init=False)
    """The event's misses, in router order."""
    returning: list[Key] = attrs.field(factory=list, init=False)
    """Those of them that were ghosts."""

    @property
    def present(self) -> list[Key]:
        """Every key that holds a slot."""
        return [*self.queue_small, *self.queue_main]

    def set_capacity(self, records: int) -> None:
        """Forget the ghosts beyond the new size."""
        self.capacity = records
        self._forget_overflow()

    def _forget_overflow(self) -> None:
        while len(self.queue_ghosts) > int(self.capacity * self.ghosts):
            self.queue_ghosts.pop(0)

    def hit(self, key: Key, now: int) -> None:
        """Add one."""
        self.counts[key] = min(self.counts[key] + 1, self.ceiling)

    def misses(self, keys: Sequence[Key]) -> None:
        """Look them up among the ghosts."""
        self.coming = list(keys)
        self.returning = [key for key in keys if key in self.queue_ghosts]
        self.queue_ghosts = [key for key in self.queue_ghosts if key not in keys]

    def insert(self, key: Key, now: int) -> None:
        """Into main when it returns, else into small; perhaps into main while the cache fills."""
        small_is_full = len(self.queue_small) >= size_of_small(self.capacity, self.small)
        to_main = key in self.returning or (self.fill == "main" and self.filling and small_is_full)
        (self.queue_main if to_main else self.queue_small).append(key)
        self.counts[key] = 0
        self.returning = [other for other in self.returning if other != key]
        self.queue_ghosts = [other for other in self.queue_ghosts if other != key]

    def _main_is_over(self, incoming: Key | None) -> bool:
        earlier = self.coming[: self.coming.index(incoming)] if incoming is not None and incoming in self.coming else []
        size = len(self.queue_main) + sum(key in self.returning for key in earlier)
        return size > self.capacity - size_of_small(self.capacity, self.small)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The paper's evict, evictS and evictM, one step at a time."""
        going_on = False
        while True:
            small = [key for key in self.queue_small if key not in held]
            main = [key for key in self.queue_main if key not in held]
            if not small and not main:
                return None
            self.filling = False
            if not small or (main and not going_on and self._main_is_over(incoming)):
                key = main[0]
                self.queue_main.remove(key)
                if self.counts[key] == 0:
                    del self.counts[key]
                    return key
                self.counts[key] -= 1
                self.queue_main.append(key)
            else:
                key = small[0]
                self.queue_small.remove(key)
                if self.counts[key] < self.threshold:
                    del self.counts[key]
                    self.queue_ghosts.append(key)
                    self._forget_overflow()
                    return key
                self.counts[key] = 0
                self.queue_main.append(key)
                going_on = self.promotion == "go-on"

    def evict(self, key: Key) -> None:
        """Remove; no ghost."""
        for queue in (self.queue_small, self.queue_main):
            if key in queue:
                queue.remove(key)
                del self.counts[key]

    def forget(self) -> None:
        """Zero the counts, forget the ghosts."""
        self.counts = dict.fromkeys(self.counts, 0)
        self.queue_ghosts.clear()


@attrs.define(slots=False)
class S3Fifo(Policy):
    """The indexed form: three ordered dicts; a key's steps in the queues are paid by the hits that it had."""

    name: ClassVar[str] = "s3-fifo"
    stamped: ClassVar[bool] = False
    small: float
    ghosts: float
    threshold: int
    ceiling: int
    fill: str
    promotion: str
    small_size: int = attrs.field(default=1, init=False)
    main_size: int = attrs.field(default=0, init=False)
    ghost_size: int = attrs.field(default=0, init=False)
    filling: bool = attrs.field(default=False, init=False)
    queue_small: Queue = attrs.field(factory=OrderedDict, init=False)
    queue_main: Queue = attrs.field(factory=OrderedDict, init=False)
    queue_ghosts: Queue = attrs.field(factory=OrderedDict, init=False)
    counts: dict[Key, int] = attrs.field(factory=dict, init=False)
    returning: set[Key] = attrs.field(factory=set, init=False)
    earlier: dict[Key, int] = attrs.field(factory=dict, init=False)
    """Miss of the event to how many before it are bound for main."""

    def __attrs_post_init__(self) -> None:
        self.filling = self.fill == "main"

    def set_capacity(self, records: int) -> None:
        """Size the queues."""
        self.small_size = size_of_small(records, self.small)
        self.main_size, self.ghost_size = records - self.small_size, int(records * self.ghosts)
        bound(self.queue_ghosts, self.ghost_size)

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Add one each."""
        counts, ceiling = self.counts, self.ceiling
        for key in keys:
            if counts[key] < ceiling:
                counts[key] += 1

    def misses(self, keys: Sequence[Key]) -> None:
        """Find and count the returning ones."""
        self.returning.clear()
        self.earlier, found = {}, 0
        for key in keys:
            self.earlier[key] = found
            if key in self.queue_ghosts:
                del self.queue_ghosts[key]
                self.returning.add(key)
                found += 1

    def insert(self, key: Key, now: int) -> None:
        """Into main or small."""
        if key in self.returning:
            self.returning.remove(key)
            queue = self.queue_main
        else:
            self.queue_ghosts.pop(key, None)
            spill = self.filling and len(self.queue_small) >= self.small_size
            queue = self.queue_main if spill else self.queue_small
        queue[key] = None
        self.counts[key] = 0

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """As `insert`."""
        for key in keys:
            self.insert(key, 0)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """Ask small or main, then the other."""
        ahead = self.earlier.get(incoming, 0) if incoming is not None else 0
        while True:
            from_main = len(self.queue_main) + ahead > self.main_size
            key = None if from_main else self._from_small(held, ahead)
            if key is None:
                key = self._from_main(held)
            if key is None and from_main:
                key = self._from_small(held, ahead)
            if key is not None or first_free(self.queue_main, held) is None:
                return key

    def _from_small(self, held: Collection[Key], ahead: int) -> Key | None:
        """Promote what was used until a key leaves; None when none is left, or when main has become too long."""
        small, main, counts = self.queue_small, self.queue_main, self.counts
        while (key := first_free(small, held)) is not None:
            self.filling = False
            del small[key]
            if counts[key] < self.threshold:
                del counts[key]
                self.queue_ghosts[key] = None
                bound(self.queue_ghosts, self.ghost_size)
                return key
            counts[key] = 0
            main[key] = None
            if self.promotion == "ask-again" and len(main) + ahead > self.main_size:
                break
        return None

    def _from_main(self, held: Collection[Key]) -> Key | None:
        """Let used keys pay until one cannot."""
        main, counts = self.queue_main, self.counts
        while (key := first_free(main, held)) is not None:
            self.filling = False
            if not counts[key]:
                del main[key], counts[key]
                return key
            counts[key] -= 1
            main.move_to_end(key)
        return None

    def evict(self, key: Key) -> None:
        """Remove; no ghost."""
        if self.counts.pop(key, None) is not None:
            self.queue_small.pop(key, None)
            self.queue_main.pop(key, None)

    def forget(self) -> None:
        """Zero the counts, forget the ghosts."""
        self.counts = dict.fromkeys(self.counts, 0)
        self.queue_ghosts.clear()


CARD = Card(
    "s3-fifo",
    "XC-EVICT-132",
    S3FifoRule,
    S3Fifo,
    "oldest of the small queue that was hardly used; of the main one, where that is too long, oldest unused",
    "Yang et al., SOSP 2023; libCacheSim",
    "O(1), steps in the queues amortized over hits",
    parameters=(
        Parameter("small", 0.1, "the part of the capacity that is the small queue's", (), 0, 1),
        Parameter("ghosts", 0.9, "how many ghosts are kept, for each record of the capacity", (), 0, 16),
        Parameter("threshold", 2, "the hits in the small queue that move a key to the main one", (), 0, 255),
        Parameter("ceiling", 3, "the most that a count holds", (), 0, 255),
        Parameter("fill", "small", "where newcomers go while the cache first fills", ("small", "main")),
        Parameter("promotion", "ask-again", "what a move to the main queue does next", ("ask-again", "go-on")),
    ),
)
