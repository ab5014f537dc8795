"""Ages: how long a record has not been asked for. What `stale` and `cold` mean wherever the specification says so."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from expertcache_spec.model import Key
from expertcache_spec.trace import Event


@attrs.define
class Ages:
    """When each key was last asked for, in events of its own layer: a layer that is not asked does not age."""

    events: dict[int, int] = attrs.field(factory=dict)
    """Layer to how many events it has had."""
    seen: dict[Key, int] = attrs.field(factory=dict)
    """Key to the number of the event of its layer that asked for it last, or after which it was inserted."""

    def asked(self, event: Event) -> None:
        """One more event of that layer; its keys are as fresh as can be."""
        number = self.events[event.layer] = self.events.get(event.layer, 0) + 1
        self.seen.update(dict.fromkeys(event.keys, number))

    def inserted(self, keys: Iterable[Key]) -> None:
        """Records that came without demand are as fresh as what the latest event asked for."""
        for key in keys:
            self.seen[key] = self.events.get(key.layer, 0)

    def idle(self, key: Key) -> int:
        """How many events of its layer, the latest included, have passed without asking for the key.

        0 for a key of the latest event. A key that was never asked for nor inserted is as old as its layer.
        """
        return self.events.get(key.layer, 0) - self.seen.get(key, 0)

    def is_stale(self, key: Key, idle: int) -> bool:
        """Whether at least `idle` events have passed without it, or it was never asked for (XC-ADMIT-006)."""
        return key not in self.seen or self.idle(key) >= idle

    def forget(self) -> None:
        """Start again."""
        self.events.clear()
        self.seen.clear()
