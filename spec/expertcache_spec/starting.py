"""What a cache holds before its first event: records that stay resident, and the seeds of a hotlist.

The seeds are in before anything is served, but what they are lent counts from where the first conversation has begun:
that zeroes all hotness before anything of it is seeded (XC-EVICT-184).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from expertcache_spec.errors import InvalidBudget
from expertcache_spec.eviction.base import Policy
from expertcache_spec.model import Key
from expertcache_spec.residency import Residency
from expertcache_spec.trace import Event


@attrs.frozen(slots=False)
class Start:
    """A warm start; `replay` takes it.

    seeds: keys in the order in which they are loaded, each with its priority (`Residency.seed`). resident: keys that
    are loaded before them and pinned for good; they are within the budget.
    """

    seeds: Sequence[tuple[Key, int]] = ()
    resident: Sequence[Key] = ()

    def apply(self, machine: Residency) -> None:
        """Load all of it into a machine that has served nothing.

        Raises `InvalidBudget` where what stays resident does not fit, `InvalidModel` for what is no `Key`.
        """
        for part in machine.parts.values():
            _Opening(part.policy)
        found = machine.seed(self.resident)
        if found.refused:
            raise InvalidBudget(
                f"{found.refused} of {len(self.resident)} records that stay resident do not fit",
                where="start", cure="a larger budget, or fewer of them",
            )  # fmt: skip
        for key in found.reads:
            machine.complete(key)
            machine.pin(key)
        lent = [priority for _, priority in self.seeds]
        for key in machine.seed([key for key, _ in self.seeds], lent).reads:
            machine.complete(key)

    def described(self) -> dict[str, Any]:
        """Everything that the result depends on, as plain data for the manifest."""
        return {
            "seeds": [[*key, priority] for key, priority in self.seeds],
            "resident": [list(key) for key in self.resident],
        }


@attrs.define(slots=False, eq=False)
class _Opening:
    """Keeps what a policy is told of priorities until its first event has begun, then tells it and is gone."""

    policy: Policy
    lent: list[tuple[Key, int]] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        vars(self.policy).update(begin=self.begin, prioritize=self.prioritize)

    def prioritize(self, key: Key, priority: int) -> None:
        """Later."""
        self.lent.append((key, priority))

    def begin(self, event: Event) -> None:
        """As the policy, and then everything that was lent."""
        type(self.policy).begin(self.policy, event)
        for name in ("begin", "prioritize"):
            del vars(self.policy)[name]
        for key, priority in self.lent:
            self.policy.prioritize(key, priority)
