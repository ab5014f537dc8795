"""A policy that does what a log says, for logs whose own policy is not declared or not known."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import ClassVar

import attrs

from expertcache_spec.eviction import Policy
from expertcache_spec.model import Key


class TooFewVictims(Exception):
    """Room is needed and the log evicts nobody for it."""


@attrs.define
class Script:
    """The victims and refusals of the transition under way, the smallest first."""

    victims: deque[Key] = attrs.field(factory=deque)
    refused: set[Key] = attrs.field(factory=set)


@attrs.define(slots=False)
class Scripted(Policy):
    """Evicts what the script says next, refuses whom it says, and has no order of its own."""

    script: Script
    present: dict[Key, None] = attrs.field(factory=dict)
    can_refuse: bool = True
    may_abstain: ClassVar[bool] = True

    def insert(self, key: Key, now: int) -> None:
        """The key is here."""
        self.present[key] = None

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The script's next victim; raises `TooFewVictims` where a miss needs one and the script has none."""
        if incoming in self.script.refused:
            return next((key for key in self.present if key not in held), None)
        for key in self.script.victims:
            if key in self.present and key not in held:  # some are of other partitions, some about to leave
                return key
        if incoming is not None:
            raise TooFewVictims
        return None

    def refuses(self, incoming: Key, victim: Key) -> bool:
        """Whether the log says so."""
        return incoming in self.script.refused

    def evict(self, key: Key) -> None:
        """The key leaves; if the script said so, that is done."""
        del self.present[key]
        if key in self.script.victims:
            self.script.victims.remove(key)
