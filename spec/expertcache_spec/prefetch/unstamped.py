"""Any policy, whose prefetched records carry no access time (parameter `stamps` off).

A record that a prefetch brought stays outside the policy's order until demand asks for it: it leaves before all
others, the first to come first. To demand it is then as if it had just been inserted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import attrs

from expertcache_spec.eviction.base import Policy, first_free
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


@attrs.define(slots=False)
class Unstamped(Policy):
    """The policy `inner` with a waiting room before it (XC-PREFETCH-009)."""

    inner: Policy
    waiting: dict[Key, None] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.stamped = self.inner.stamped  # type: ignore[misc]
        self.can_refuse, self.renews = self.inner.can_refuse, self.inner.renews

    def prefetch(self, key: Key, now: int) -> None:
        """Wait."""
        self.waiting[key] = None

    def renew(self, key: Key) -> None:
        """What waits still does; the rest as the inner policy."""
        if key not in self.waiting:
            self.inner.renew(key)

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """What waited is inserted; the rest are hits."""
        fresh = [key for key in keys if key in self.waiting]
        self.inner.hits([key for key in keys if key not in self.waiting] if fresh else keys, stamps)
        for key in fresh:
            del self.waiting[key]
        if fresh:
            self.inner.inserts(fresh, stamps)

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The first that waits, else the inner policy's."""
        found = first_free(self.waiting, held)
        return self.inner.victim(held, incoming) if found is None else found

    def refuses(self, incoming: Key, victim: Key) -> bool:
        """Never in favour of one that waits."""
        return victim not in self.waiting and self.inner.refuses(incoming, victim)

    def evict(self, key: Key) -> None:
        """From where it is."""
        if key in self.waiting:
            del self.waiting[key]
        else:
            self.inner.evict(key)

    def set_capacity(self, records: int) -> None:
        """As the inner policy."""
        self.inner.set_capacity(records)

    def begin(self, event: Event) -> None:
        """As the inner policy."""
        self.inner.begin(event)

    def insert(self, key: Key, now: int) -> None:
        """As the inner policy."""
        self.inner.insert(key, now)

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """As the inner policy."""
        self.inner.inserts(keys, stamps)

    def misses(self, keys: Sequence[Key]) -> None:
        """As the inner policy."""
        self.inner.misses(keys)

    def prioritize(self, key: Key, priority: int) -> None:
        """As the inner policy."""
        self.inner.prioritize(key, priority)

    def settle(self, keys: Sequence[Key]) -> None:
        """As the inner policy."""
        self.inner.settle(keys)

    def forget(self) -> None:
        """As the inner policy."""
        self.inner.forget()
