"""Scan: what the rules of this family are made of, a rank for each resident and a look at all of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import attrs

from expertcache_spec.eviction.base import Policy
from expertcache_spec.model import Key


@attrs.define(slots=False)
class Scan(Policy):
    """A rule with a state of its own: the victim is the resident of least `rank`, (layer, expert) last."""

    touched: dict[Key, int] = attrs.field(factory=dict)
    """Every resident, with the stamp of its latest touch."""

    def rank(self, key: Key) -> tuple[Any, ...]:
        """The place of a resident in the order of victims, the first to go least."""
        raise NotImplementedError

    def hit(self, key: Key, now: int) -> None:
        """Stamp the key."""
        self.touched[key] = now

    def insert(self, key: Key, now: int) -> None:
        """Stamp the key: it is resident."""
        self.touched[key] = now

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least key that nothing holds."""
        return min(
            (key for key in self.touched if key not in held), key=lambda key: (*self.rank(key), *key), default=None
        )

    def evict(self, key: Key) -> None:
        """Forget that it was here."""
        del self.touched[key]
