"""A plain right cache that knows what became of its prefetches, and the wrong ones of it."""

from __future__ import annotations

from typing import Any

from expertcache_conformance.adapters.protocol import Config
from expertcache_conformance.miniatures.plain import PlainCache
from expertcache_conformance.miniatures.wrong import miniature
from expertcache_conformance.program import PREFETCH_COUNTS
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


class Speculating(PlainCache):
    """Remembers the records that only a prefetch has brought, or is bringing, and books each once."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.guesses: set[Key] = set()
        self.books: dict[str, int] = dict.fromkeys(PREFETCH_COUNTS, 0)

    def prefetch(self, key: Key) -> dict[str, str]:
        """Book the outcome."""
        answer = super().prefetch(key)
        started = answer["outcome"] == "started"
        self.books["issued" if started else "refused" if answer["outcome"] == "refused" else "duplicate"] += 1
        self.guesses |= {key} if started else set()
        return answer

    def select(self, event: Event) -> dict[str, Any]:
        """Book the guesses that demand meets: on their way, or there."""
        under_way = self.reading & self.guesses
        answer = super().select(event)
        for key in self.guesses.intersection(event.keys):
            self.met("late" if key in under_way else "useful")
        self.guesses.difference_update(event.keys)
        return answer

    def met(self, how: str) -> None:
        """One guess has come to an end."""
        self.books[how] += 1

    def fail(self, key: Key) -> None:
        """A guess that failed."""
        self.books["failed"] += key in self.guesses
        self.guesses.discard(key)
        super().fail(key)

    def evict(self, key: Key) -> None:
        """A guess that nobody wanted."""
        self.books["wasted"] += key in self.guesses
        self.guesses.discard(key)
        super().evict(key)

    def prefetch_counts(self) -> dict[str, int]:
        """The books."""
        return dict(self.books)


@miniature("k3-out-of-core#32; slotstream", "XC-PREFETCH-014", capabilities=["leases", "prefetch"])
class ReadsAgainWhatIsPrefetched(Speculating):
    """Speculation has a queue of its own, and demand that meets one of its reads begins another."""

    def select(self, event: Event) -> dict[str, Any]:
        """Read what is only guessed."""
        guessed = self.guesses & self.reading
        answer = super().select(event)
        again = [key for key in answer.get("joined", ()) if key in guessed]
        joined = [key for key in answer.get("joined", ()) if key not in guessed]
        return {**answer, "reads": [*answer["reads"], *again], "joined": joined}


@miniature("ChampSim#154, XiangShan#3474", "XC-METRIC-004", capabilities=["leases", "prefetch", "prefetch-counts"])
class LateCountsAsUseful(Speculating):
    """A prefetch that demand had to wait for is booked as if it had been in time."""

    def met(self, how: str) -> None:
        """All the same."""
        super().met("useful")
