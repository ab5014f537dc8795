"""Rules with a state of their own: what the recorded past does not hold, kept plainly beside it."""

from __future__ import annotations

from typing import Any

import attrs

from expertcache_spec.eviction.base import Declarative, Order, Past
from expertcache_spec.model import Key


@attrs.define(slots=False, kw_only=True)
class Stated(Declarative):
    """A declarative rule that is a class: `place` is its order."""

    order: Order = attrs.field(init=False, repr=False, default=attrs.Factory(lambda self: self.place, takes_self=True))

    def place(self, past: Past, key: Key) -> tuple[Any, ...]:
        """What a victim has least of."""
        raise NotImplementedError
