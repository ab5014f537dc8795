"""Sharing: the bandwidth among the readers that transfer, nanosecond by nanosecond, in integers (XC-SCHED-003).

Time is a whole number of nanoseconds. In each, every reader that transfers receives the same share of the bandwidth;
a transfer ends with the first nanosecond that completes it. The share is a whole number of grains, so that nothing is
ever rounded.
"""

from __future__ import annotations

import attrs

from expertcache_spec.schedule.costs import Storage
from expertcache_spec.schedule.tasks import TaskId


@attrs.define
class Sharing:
    """The transfers under way, with what each still lacks, in grains."""

    storage: Storage
    left: dict[TaskId, int] = attrs.field(factory=dict)
    grain: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.grain = self.storage.grain

    @property
    def share(self) -> int:
        """Grains that each transfer receives in a nanosecond."""
        return self.grain // self.storage.divisor(len(self.left))

    def begin(self, task: TaskId, transfer: int) -> None:
        """Start a transfer of that many nanoseconds of the whole bandwidth."""
        self.left[task] = transfer * self.grain

    def ends_in(self) -> int:
        """Nanoseconds until the next transfer ends if none joins; something must be transferring."""
        return -(-min(self.left.values()) // self.share)

    def advance(self, elapsed: int) -> list[TaskId]:
        """Let time pass, at most until the next end; the transfers that end, in the order in which they began."""
        share = self.share if self.left else 0
        for task in self.left:
            self.left[task] -= elapsed * share
        done = [task for task, left in self.left.items() if left <= 0]
        for task in done:
            del self.left[task]
        return done
