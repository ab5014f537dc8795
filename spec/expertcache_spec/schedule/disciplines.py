"""Disciplines: how an event's compute is cut into batches, and which reads a batch waits for.

A discipline adds dependencies to those that the data impose, and nothing else. From the strictest to the loosest:

sync: all reads, then all compute, in one batch.
split: the gate and up of resident experts run while the reads are in flight; then, in a second batch, those of the
missing ones and one down pass over all slots.
staged: as split, with the reads in two stages; gate and up of the missing experts run as soon as their bytes are in,
and the down pass follows the last read.
pipelined: the residents, then each missing expert by itself as its record lands.
free: nothing added; each stage of each expert as its own bytes land, at the price of one batch. A bound, no engine.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import attrs

from expertcache_spec.errors import UnknownName
from expertcache_spec.schedule.costs import check_counts
from expertcache_spec.schedule.work import Load
from expertcache_spec.wording import whole

Name = Literal["sync", "split", "staged", "pipelined", "free"]
NAMES: tuple[Name, ...] = get_args(Name)
Order = Literal["record", "stage"]
ORDERS: tuple[Order, ...] = get_args(Order)
MOST_MISSING = 10**9
"""The highest threshold that can be spelled; no event has so many records."""
Needs = Literal["nothing", "own", "gate_up", "all"]


class Batch(NamedTuple):
    """Work that is launched at once: the slots of each stage, and the reads that must have ended before the launch.

    needs: nothing, the whole records of its own slots, the gate and up of every missing record, or all reads.
    """

    gate_up: tuple[int, ...]
    down: tuple[int, ...]
    needs: Needs


@attrs.frozen(slots=False)
class Discipline:
    """A discipline with its guards (XC-SCHED-010 to XC-SCHED-013).

    name: one of `NAMES`. threshold: the fewest missing records for which it is taken. tokens, entries: the fewest
    decode passes of the stream and resident records for which it is taken; sync and free are always. reads: the order
    of an event's requests, record by record or stage by stage; by default stage by stage for staged, else record by
    record. Where a guard fails the event runs under sync, its requests in the same order.

    Raises `UnknownName` for a name or order that does not exist, `InvalidSchedule` for a number that is no count.
    """

    name: Name = "sync"
    threshold: int = 1
    tokens: int = 0
    entries: int = 0
    reads: Order = attrs.field(
        default=attrs.Factory(lambda self: "stage" if self.name == "staged" else "record", takes_self=True)
    )

    def __attrs_post_init__(self) -> None:
        for value, known in ((self.name, NAMES), (self.reads, ORDERS)):
            if value not in known:
                raise UnknownName(f"discipline {value!r}", where="schedule", cure=f"one of {', '.join(known)}")
        check_counts(self, 1, "threshold")
        check_counts(self, 0, "tokens", "entries")

    def taken(self, load: Load) -> Name:
        """The discipline that the event runs under: this one, or sync where a guard fails (XC-SCHED-011 to 013)."""
        if self.name == "free":
            return "free"
        holds = (
            len(load.absent) >= self.threshold
            and load.tokens >= self.tokens
            and load.entries >= self.entries
            and (self.name != "split" or bool(load.present))
        )
        return self.name if holds else "sync"

    def batches(self, load: Load) -> tuple[Batch, ...]:
        """The event's batches; all but those of pipelined run one after the other."""
        present, absent, every = load.present, load.absent, tuple(range(len(load.keys)))
        name = self.taken(load)
        if name == "sync":
            return (Batch(every, every, "all"),)
        if name == "free":
            return (Batch(every, every, "nothing"),)
        if name == "pipelined":
            residents = (Batch(present, present, "nothing"),) if present else ()
            return residents + tuple(Batch((slot,), (slot,), "own") for slot in absent)
        residents = (Batch(present, (), "nothing"),) if present else ()
        if name == "split":
            return (*residents, Batch(absent, every, "all"))
        return (*residents, Batch(absent, (), "gate_up"), Batch((), every, "all"))

    def in_sequence(self, load: Load) -> bool:
        """Whether each batch follows the one before, and every down every gate and up of the event."""
        return self.taken(load) not in ("pipelined", "free")

    def __str__(self) -> str:
        told = self.name == "split" or (self.threshold > 1 and self.name not in ("sync", "free"))
        return f"{self.name}:{self.threshold}" if told else self.name


def parse_discipline(text: str, *, tokens: int = 0, entries: int = 0) -> Discipline:
    """`sync`, `split`, `split:3`, `staged`, `pipelined:2`, `free`: a name and, after a colon, its threshold.

    Raises `UnknownName` for a name that does not exist, a threshold that is none, and one where none is looked at.
    """
    name, colon, number = text.partition(":")
    if name in NAMES and colon and name in ("sync", "free"):
        raise UnknownName(
            f"threshold {_cut(number)}",
            where=f"discipline {name}",
            cure=f"{name} takes none, it is always taken: leave the threshold out",
        )
    threshold = whole(number) if colon else 1
    if threshold is None or not 0 < threshold <= MOST_MISSING:
        cure = f"a whole number from 1 to {MOST_MISSING}, as in split:3"
        raise UnknownName(f"threshold {_cut(number)}", where=f"discipline {name}", cure=cure)
    return Discipline(name, threshold, tokens, entries)  # type: ignore[arg-type]


def _cut(text: str) -> str:
    """The text as a message shows it."""
    return repr(text if len(text) <= 20 else text[:20] + "...")


def ds4_split(slots: int, threshold: int = 3) -> Discipline:
    """The split of ds4 with a cache of that many slots: its threshold, its fourth token, its filled cache.

    Entries must reach 1,024, or half the cache where that has fewer than 2,048 slots (ds4, section 4.2 of its
    Metal backend). The published threshold is 3; the field report tried 1.
    """
    return Discipline("split", threshold, tokens=4, entries=1024 if slots >= 2048 else slots // 2)
