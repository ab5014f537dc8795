"""Wrong ones of the literature's policies: a plain right cache of `queues` or `ghosts` with one thing broken."""

from __future__ import annotations

from expertcache_conformance.miniatures.ghosts import FourLists, ThreeQueues, TwoQueues
from expertcache_conformance.miniatures.queues import ArrayClock, LinkedSieve, Segments
from expertcache_conformance.miniatures.wrong import miniature
from expertcache_spec.model import Key


@miniature("classical; fak#13294 for LRU", "XC-EVICT-091", policies=["clock"])
class ClockHitIsForgotten(ArrayClock):
    """A hit sets no reference bit, so that CLOCK is FIFO."""

    def hit(self, key: Key) -> None:
        """Nothing."""


@miniature("classical: a loop that begins with `for slot in slots`", "XC-EVICT-092", policies=["clock"])
class ClockHandRestarts(ArrayClock):
    """Every search for a victim starts from the first slot."""

    def choose(self, incoming: Key, earlier: list[Key], held: set[Key]) -> Key:
        """From the first."""
        self.hand = 0
        return super().choose(incoming, earlier, held)


@miniature("slotstream, before its pins", "XC-EVICT-093", policies=["clock"])
class ClockClearsWhatIsHeld(ArrayClock):
    """The hand lowers the bits of records that are in use, too."""

    def pass_held(self, key: Key) -> None:
        """Clear the bit."""
        self.bits.discard(key)


@miniature("slotstream sold as the textbook's", "XC-EVICT-094", policies=["clock"])
class ClockInsertSetsTheBit(ArrayClock):
    """A new record starts with its bit set, where initial 0 is claimed."""

    def insert(self, key: Key) -> None:
        """Used at once."""
        super().insert(key)
        self.bits.add(key)


@miniature("Zhang et al. 2024, on what SIEVE is not", "XC-EVICT-141", policies=["sieve"])
class SieveMovesOnAHit(LinkedSieve):
    """A hit moves the record to the new end, which makes SIEVE an LRU."""

    def touch(self, key: Key) -> None:
        """To the new end."""
        super().touch(key)
        if key in self.newer:
            self.unlink(key)
            self.link(key)

    def hit(self, key: Key) -> None:
        """No bit."""

    def choose(self, incoming: Key, earlier: list[Key], held: set[Key]) -> Key:
        """No hand."""
        self.hand = None
        return super().choose(incoming, earlier, held)


@miniature("Zhang et al. 2024: with survivors moved it is CLOCK", "XC-EVICT-141", policies=["sieve"])
class SieveMovesSurvivors(LinkedSieve):
    """A visited record that the hand passes goes to the new end."""

    def pass_by(self, key: Key) -> None:
        """Clear the bit and move."""
        super().pass_by(key)
        self.unlink(key)
        self.link(key)


@miniature("Zhang et al. 2024: lazy promotion without quick demotion", "XC-EVICT-142", policies=["sieve"])
class SieveHandRestarts(LinkedSieve):
    """Every search starts from the oldest record."""

    def choose(self, incoming: Key, earlier: list[Key], held: set[Key]) -> Key:
        """No hand."""
        self.hand = None
        return super().choose(incoming, earlier, held)


@miniature("libCacheSim's SLRU while it fills, taken further", "XC-EVICT-112", policies=["slru:protected=0.5"])
class SegmentsProtectOnInsert(Segments):
    """A new record is protected before it was hit once."""

    def insert(self, key: Key) -> None:
        """As a hit."""
        super().insert(key)
        self.hit(key)


@miniature("Karedla et al. 1994, misread", "XC-EVICT-111", policies=["slru:protected=0.5"])
class SegmentsDemoteToTheOldEnd(Segments):
    """What no longer fits among the protected is the next victim instead of the most recent on probation."""

    def demote(self, key: Key) -> None:
        """To the old end."""
        self.stamp[key] = min(self.stamp.values()) - 1


@miniature("ARC without its adaptation", "XC-EVICT-116", policies=["arc"])
class ArcGhostsTeachNothing(FourLists):
    """A ghost that returns moves no target."""

    def learn(self, ghosts: str) -> None:
        """Nothing."""


@miniature("ARC with ghosts for statistics only", "XC-EVICT-117", policies=["arc"])
class ArcGhostsReturnAsNew(FourLists):
    """A ghost that returns enters the list of what was seen once."""

    def insert(self, key: Key) -> None:
        """Into T1, always."""
        super().insert(key)
        self.move(key, "t1")
        self.trim()


@miniature("2Q as an SLRU", "XC-EVICT-126", policies=["two-q"])
class TwoQueuesPromoteOnAHit(TwoQueues):
    """A hit among the first comers moves the record to the long queue."""

    def hit(self, key: Key) -> None:
        """No first comer any more."""
        if key in self.comers:
            self.comers.remove(key)


@miniature("2Q without A1out", "XC-EVICT-127", policies=["two-q"])
class TwoQueuesKnowNoGhosts(TwoQueues):
    """Nobody is remembered, so that nobody comes back."""

    def meet(self, reads: list[Key]) -> None:
        """Nobody."""


@miniature("libCacheSim's default sold as the paper's", "XC-EVICT-133", policies=["s3-fifo"])
class OneHitIsEnough(ThreeQueues):
    """One hit in the small queue leads to the main one, where two are claimed."""

    needed = 1


@miniature("S3-FIFO as two queues", "XC-EVICT-135", policies=["s3-fifo"])
class ThreeQueuesKnowNoGhosts(ThreeQueues):
    """What the small queue let go comes back as a newcomer."""

    def remember(self, key: Key) -> None:
        """Nobody."""
