"""The bar of CLOCK-LRU-K: which k protects enough; all whole numbers, rates in ten-thousandths."""

from __future__ import annotations

import attrs

LOWEST = (500, 3000)
"""The least that the lower and the upper rate may become."""
HIGHEST = (4000, 8000)
"""The most."""
SOME = 100
"""Counts beyond this are halved after each move."""


@attrs.define(slots=False)
class Bar:
    """k, and the two loops that move it (XC-EVICT-104).

    The rate of graduates among victims moves k: below `low` it falls, above `high` it rises. The hit rate moves `low`
    and `high`: when the latest move of k did not pay, its threshold becomes harder to reach, when it did, easier.
    """

    value: int
    adapts: bool
    ceiling: int
    every: int
    window: int
    low: int
    high: int
    step: int
    graduated: int = attrs.field(default=0, init=False)
    under: int = attrs.field(default=0, init=False)
    over: int = attrs.field(default=0, init=False)
    """Victims that the bar did not protect, and that it did."""
    seen: int = attrs.field(default=0, init=False)
    """The victims counted at the latest look. Halving leaves it above them, and the next look is then due at once."""
    hits: int = attrs.field(default=0, init=False)
    probes: int = attrs.field(default=0, init=False)
    rate: int = attrs.field(default=0, init=False)
    """The hit rate of the latest whole window."""
    direction: int = attrs.field(default=0, init=False)
    """How the latest look moved k."""

    def probed(self, hits: int, probes: int) -> None:
        """So many requests, so many of them hits."""
        self.hits += hits
        self.probes += probes

    def evicted(self, frequency: int) -> None:
        """One victim more, of that frequency; look at k when that is due and a window of probes is whole."""
        if frequency > self.value:
            self.over += 1
        else:
            self.under += 1
        victims = self.under + self.over
        if 0 <= victims - self.seen < self.every:
            return
        self.seen = victims
        if self.adapts and self.probes >= self.window:
            self._learn(10_000 * self.hits // self.probes)
            self._move(10_000 * self.graduated // victims)
            self._age(victims)

    def _learn(self, rate: int) -> None:
        """Judge the latest move of k by the hit rate since."""
        better = rate > self.rate
        if self.rate and self.direction > 0:
            if better and self.high > LOWEST[1] + self.step:
                self.high -= self.step
            elif not better and self.high < HIGHEST[1] - self.step:
                self.high += self.step
        elif self.rate and self.direction < 0:
            if better and self.low < HIGHEST[0] - self.step:
                self.low += self.step
            elif not better and self.low > LOWEST[0] + self.step:
                self.low -= self.step
        self.rate, self.hits, self.probes = rate, 0, 0

    def _move(self, graduates: int) -> None:
        """Lower or raise k by one, or leave it."""
        self.direction = 0
        if graduates < self.low and self.value > 1:
            self.direction = -1
        elif graduates > self.high and self.value < self.ceiling - 1:
            self.direction = 1
        self.value += self.direction

    def _age(self, victims: int) -> None:
        """Halve counts that have grown."""
        if self.graduated > SOME:
            self.graduated //= 2
        if victims > SOME:
            self.under, self.over = self.under // 2, self.over // 2
