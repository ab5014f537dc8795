"""What a policy is: an order over the evictable keys, stated once as a rule and once as an index.

The residency machine drives a policy through the hooks of `Policy`, always in this sequence for one event:
`begin`; `hits` (`hit` for each hit); `misses`; `victim` and `evict` until every miss has room; `inserts` (`insert` for
each admitted miss); `settle` with all touched keys in touch order.

`Declarative` turns an order function over the recorded `Past` into a policy by linear scan: it is the rule. The
indexed class beside it must choose the same victims, step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from expertcache_spec.errors import ExpertCacheError, InvalidPolicy, NeedsFuture
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

NEVER = 1 << 62
"""The index of a next use that does not come."""


class Policy:
    """Base of every eviction policy of one partition; hooks that a policy has no use for stay no-ops.

    `now` is a stamp that grows with every touch, unique in the life of a machine. `held` are the keys that may not be
    evicted: leased, in flight or pinned.
    """

    name: ClassVar[str] = ""
    stamped: ClassVar[bool] = True
    """Whether the policy looks at stamps; one that keeps an order instead gets none."""
    can_refuse: bool = False
    """Whether admission `refusable` means something: whether `refuses` is defined."""
    renews: bool = False
    """Whether `renew` means something: whether a log must say which prefetches found their record there."""
    may_abstain: ClassVar[bool] = False
    """Whether it may name no victim though not all are held, as the script of a log does."""

    def set_capacity(self, records: int) -> None:
        """The partition holds that many records from here on (of average size, under a byte budget)."""

    def begin(self, event: Event) -> None:
        """An event of this partition begins, before hits are judged: clocks and counts of what is asked for.

        Offline policies raise `NeedsFuture`, unchanged, for an event that their future does not have next.
        """

    def hit(self, key: Key, now: int) -> None:
        """A resident key is asked for."""

    def insert(self, key: Key, now: int) -> None:
        """A key takes a slot: a demand miss, a seed or a prefetch."""
        raise NotImplementedError

    def prefetch(self, key: Key, now: int) -> None:
        """A prefetch takes a slot: an `insert`, unless a policy treats it otherwise."""
        self.insert(key, now)

    def renew(self, key: Key) -> None:
        """A prefetch asks for a key that has its slot already, and is not in an event."""

    def misses(self, keys: Sequence[Key]) -> None:
        """What the event is about to load, in router order, after its hits and before any victim."""

    def prioritize(self, key: Key, priority: int) -> None:
        """A seed list names the key, resident or not, with that priority."""

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """The resident keys of an event: `hit` for each, unless a policy has a shorter way."""
        for key in keys:
            self.hit(key, stamps[key])

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """The admitted misses of an event, in router order: `insert` for each, unless a policy has a shorter way."""
        for key in keys:
            self.insert(key, stamps[key])

    def settle(self, keys: Sequence[Key]) -> None:
        """The event's resident and inserted keys in touch order, for policies that keep an order instead of stamps."""

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least evictable key of the policy's order; None when all are held.

        `incoming` is the miss that needs the room; None when a budget shrinks, an event is trimmed or `retain` chooses.
        """
        raise NotImplementedError

    def leave(self, held: Collection[Key], incoming: Sequence[Key]) -> list[Key]:
        """A victim for each of `incoming`, evicted: `victim` and `evict` in turn, unless a policy has a shorter way."""
        gone = []
        for key in incoming:
            victim = self.victim(held, key)
            if type(victim) is not Key or victim in held:
                raise wrong_victim(self, victim, "is held" if isinstance(victim, Key) else "is no Key")
            try:
                self.evict(victim)
            except KeyError as error:
                raise wrong_victim(self, victim, "its own evict() does not know") from error
            gone.append(victim)
        return gone

    def turn(
        self, order: Sequence[Key], hits: Sequence[Key], misses: Sequence[Key], stamps: Mapping[Key, int], going: int
    ) -> list[Key]:
        """An event with misses, whole, after `begin`; its victims, of which there are `going`, none below one.

        `hits`, `misses`, `leave`, `inserts` and `settle` in turn, unless a policy has a shorter way. `order` is the
        touch order; what needs no room is the first of the misses.
        """
        self.hits(hits, stamps)
        self.misses(misses)
        gone = self.leave(set(hits), misses[-going:]) if going > 0 else []
        self.inserts(misses, stamps)
        self.settle(order)
        return gone

    def refuses(self, incoming: Key, victim: Key) -> bool:
        """Under admission `refusable`: whether `incoming` is worth no more than `victim`, and so is not kept."""
        raise NotImplementedError

    def evict(self, key: Key) -> None:
        """The key leaves: the slot of an evicted, failed or dropped record."""
        raise NotImplementedError

    def forget(self) -> None:
        """Reset of scope `history`: counts and estimates start again; residency and recency stay (XC-RES-022)."""


@attrs.define(slots=False)
class Past:
    """Everything that a declarative rule may look at, recorded plainly.

    inserted: number of the latest insert. inserts: how often it was inserted. touched: stamp of the latest touch.
    requests: events that asked for the key, ever. uses: events that asked for it since its latest insert, that one
    included. future: the events to come, for offline rules only.
    """

    inserted: dict[Key, int] = attrs.field(factory=dict)
    inserts: dict[Key, int] = attrs.field(factory=dict)
    touched: dict[Key, int] = attrs.field(factory=dict)
    requests: dict[Key, int] = attrs.field(factory=dict)
    uses: dict[Key, int] = attrs.field(factory=dict)
    future: list[Event] | None = None

    def next_use(self, key: Key) -> int:
        """How many events from now `key` is asked for again; `NEVER` when it is not."""
        if self.future is None:
            raise NeedsFuture("the next use is unknown", cure="replay a whole trace, not a stream")
        return next((i for i, event in enumerate(self.future) if key in event.keys), NEVER)


Order = Callable[[Past, Key], tuple[Any, ...]]
"""A declarative rule: the key with the least tuple is the victim. (layer, expert) is appended to every tuple."""


@attrs.define(slots=False)
class Declarative(Policy):
    """The policy that an order function states: victim = the least evictable key, found by linear scan."""

    order: Order
    past: Past = attrs.field(factory=Past)
    can_refuse: bool = False
    present: dict[Key, None] = attrs.field(factory=dict)

    def begin(self, event: Event) -> None:
        """Count the requests of the event; it is no longer in the future."""
        if self.past.future is not None:
            place = next((i for i, coming in enumerate(self.past.future) if coming.layer == event.layer), -1)
            check_expected(event, self.past.future[place] if place >= 0 else None)
            del self.past.future[place]
        for key in event.keys:
            self.past.requests[key] = self.past.requests.get(key, 0) + 1

    def hit(self, key: Key, now: int) -> None:
        """Stamp the key and count its use."""
        self.past.touched[key] = now
        self.past.uses[key] += 1

    def insert(self, key: Key, now: int) -> None:
        """Number and stamp the key; its uses start at one."""
        self.past.inserted[key] = 1 + max(self.past.inserted.values(), default=0)
        self.past.touched[key] = now
        self.past.uses[key] = 1
        self.past.inserts[key] = self.past.inserts.get(key, 0) + 1
        self.present[key] = None

    def rank(self, key: Key) -> tuple[Any, ...]:
        """The place of `key` in the policy's total order."""
        place = self.order(self.past, key)
        if not isinstance(place, tuple):
            raise InvalidPolicy(f"returned {place!r:.200}", where=self._said(), cure="return a tuple")
        return (*place, *key)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least key that nothing holds. Raises `InvalidPolicy`, naming the order function, where that fails."""
        try:
            return min((key for key in self.present if key not in held), key=self.rank, default=None)
        except ExpertCacheError:
            raise
        except Exception as error:
            cure = f"return a tuple of comparable values; a Past has {', '.join(vars(self.past))}"
            raise InvalidPolicy(f"raised {type(error).__name__}: {error}", where=self._said(), cure=cure) from error

    def _said(self) -> str:
        name = getattr(self.order, "__qualname__", type(self.order).__qualname__)
        return f"order function {getattr(self.order, '__module__', '')}:{name}"

    def refuses(self, incoming: Key, victim: Key) -> bool:
        """Whether the incoming key would itself come first in the order, ties included."""
        return self.order(self.past, incoming) <= self.order(self.past, victim)

    def evict(self, key: Key) -> None:
        """Remove the key; what is past stays past."""
        del self.present[key]

    def forget(self) -> None:
        """Zero the counts."""
        self.past.requests.clear()
        self.past.uses.update(dict.fromkeys(self.past.uses, 0))


def wrong_victim(policy: Policy, victim: object, why: str) -> InvalidPolicy:
    """The error of a policy that names what must not leave, or what is not there (XC-RES-005)."""
    return InvalidPolicy(
        f"victim() named {victim!r:.200}, which {why}",
        where=f"policy {type(policy).__module__}:{type(policy).__qualname__}",
        cure="name a resident Key that is not among `held`; None only when all are held",
    )


def check_expected(event: Event, expected: Event | None) -> None:
    """Raise `NeedsFuture` unless the event is the one that the future holds next for its layer (XC-EVICT-052)."""
    if expected is not event and expected != event:
        raise NeedsFuture(
            "the future that this policy was given does not have this event next",
            where=f"stream {event.stream} pass {event.pass_index} layer {event.layer}",
            cure="select the events of the given trace, each once and in its layer's order",
        )


def by_order(order: Order) -> Callable[[], Policy]:
    """The declarative form of a policy that an order function states."""
    return lambda: Declarative(order)


def first_free(order: Iterable[Key], held: Collection[Key]) -> Key | None:
    """The first key of `order` that nothing holds."""
    for key in order:
        if key not in held:
            return key
    return None


def leave_in_order(order: dict[Key, None], held: Collection[Key], count: int) -> list[Key]:
    """Remove the first `count` keys of `order` that nothing holds, and return them."""
    gone: list[Key] = []
    if count:
        for key in order:
            if key not in held:
                gone.append(key)
                if len(gone) == count:
                    break
        for key in gone:
            del order[key]
    return gone
