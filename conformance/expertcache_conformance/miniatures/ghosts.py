"""Plain right caches for the policies that keep ghosts: ARC, 2Q, S3-FIFO. `wrong_queues` gets them wrong."""

from __future__ import annotations

from expertcache_conformance.adapters.protocol import Config
from expertcache_conformance.miniatures.queues import QueueCache
from expertcache_spec.model import Key


class FourLists(QueueCache):
    """ARC: T1, T2, B1 and B2 as lists, the least recent first, and the target p."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.lists: dict[str, list[Key]] = {"t1": [], "t2": [], "b1": [], "b2": []}
        self.p = 0.0
        self.met: dict[Key, str] = {}

    def move(self, key: Key, target: str | None) -> None:
        """Out of every list, to the recent end of one."""
        for keys in self.lists.values():
            if key in keys:
                keys.remove(key)
        if target is not None:
            self.lists[target].append(key)

    def touch(self, key: Key) -> None:
        """To the recent end of its list."""
        super().touch(key)
        self.move(key, next((name for name in ("t1", "t2") if key in self.lists[name]), None))

    def hit(self, key: Key) -> None:
        """Seen again."""
        self.move(key, "t2")

    def meet(self, reads: list[Key]) -> None:
        """Learn from the ghosts."""
        self.met = {}
        for key in reads:
            ghosts = next((name for name in ("b1", "b2") if key in self.lists[name]), None)
            if ghosts is not None:
                self.learn(ghosts)
                self.met[key] = ghosts
                self.move(key, None)

    def learn(self, ghosts: str) -> None:
        """Move p."""
        b1, b2 = len(self.lists["b1"]), len(self.lists["b2"])
        step = max(1.0, b2 / b1) if ghosts == "b1" else -max(1.0, b1 / b2)
        self.p = min(self.slots or 0, max(0, self.p + step))

    def insert(self, key: Key) -> None:
        """Into T2 what was a ghost, else into T1."""
        super().insert(key)
        self.move(key, "t2" if key in self.met else "t1")
        self.trim()

    def trim(self) -> None:
        """Forget ghosts."""
        t1, t2, b1, b2 = self.lists.values()
        while b1 and len(t1) + len(b1) > (self.slots or 0):
            b1.pop(0)
        while b2 and len(t1) + len(t2) + len(b1) + len(b2) > 2 * (self.slots or 0):
            b2.pop(0)

    def choose(self, incoming: Key, earlier: list[Key], held: set[Key]) -> Key:
        """From T1 or T2 by p; from the other where there is nothing to take."""
        free = {name: [key for key in self.lists[name] if key not in held] for name in ("t1", "t2")}
        size = len(self.lists["t1"]) + sum(key not in self.met for key in earlier)
        first = size > self.p or (size == self.p and self.met.get(incoming) == "b2")
        side = "1" if free["t1"] and (first or not free["t2"]) else "2"
        key = free[f"t{side}"][0]
        self.move(key, f"b{side}")
        self.trim()
        return key


class TwoQueues(QueueCache):
    """2Q: first comers in order of age, those that came back in order of recency, and what was let go."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.comers: list[Key] = []
        self.ghosts: list[Key] = []
        self.met: list[Key] = []

    def meet(self, reads: list[Key]) -> None:
        """Those that come back are no ghosts any more."""
        self.met = [key for key in reads if key in self.ghosts]
        self.ghosts = [key for key in self.ghosts if key not in reads]

    def insert(self, key: Key) -> None:
        """A first comer, unless it comes back."""
        super().insert(key)
        if key not in self.met:
            self.comers.append(key)

    def choose(self, incoming: Key, earlier: list[Key], held: set[Key]) -> Key:
        """The oldest first comer while there are many, else the least recent of the others."""
        slots = self.slots or 0
        young = [key for key in self.comers if key not in held]
        old = [key for key in self.stamp if key not in held and key not in self.comers]
        size = len(self.comers) + sum(key not in self.met for key in earlier)
        if young and (size > max(1, slots // 4) or not old):
            self.comers.remove(young[0])
            self.ghosts = [*self.ghosts, young[0]][-(slots // 2) :] if slots > 1 else []
            return young[0]
        return min(old, key=lambda key: self.stamp[key])


class ThreeQueues(QueueCache):
    """S3-FIFO: small, main and ghosts as lists, the oldest first; counts to 3."""

    needed = 2
    """Hits in the small queue that lead to the main one."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.small: list[Key] = []
        self.main: list[Key] = []
        self.ghosts: list[Key] = []
        self.met: list[Key] = []
        self.hits: dict[Key, int] = {}

    def hit(self, key: Key) -> None:
        """One more."""
        self.hits[key] = min(3, self.hits[key] + 1)

    def meet(self, reads: list[Key]) -> None:
        """Those that come back are no ghosts any more."""
        self.met = [key for key in reads if key in self.ghosts]
        self.ghosts = [key for key in self.ghosts if key not in reads]

    def insert(self, key: Key) -> None:
        """Into main what comes back, else into small."""
        super().insert(key)
        self.hits[key] = 0
        (self.main if key in self.met else self.small).append(key)

    def choose(self, incoming: Key, earlier: list[Key], held: set[Key]) -> Key:
        """Ask main while it is too long or small has nothing, else small; what stays moves to main's new end."""
        slots = self.slots or 0
        while True:
            small = [key for key in self.small if key not in held]
            main = [key for key in self.main if key not in held]
            size = len(self.main) + sum(key in self.met for key in earlier)
            from_main = main and (not small or size > slots - max(1, slots // 10))
            key = main[0] if from_main else small[0]
            (self.main if from_main else self.small).remove(key)
            if self.hits[key] < (1 if from_main else self.needed):
                if not from_main:
                    self.remember(key)
                return key
            self.hits[key] = self.hits[key] - 1 if from_main else 0
            self.main.append(key)

    def remember(self, key: Key) -> None:
        """A ghost, one of as many as nine tenths of the slots."""
        kept = int((self.slots or 0) * 0.9)
        self.ghosts = [*self.ghosts, key][-kept:] if kept else []
