"""The checker: every line of a log against the rules, in order, in time linear in the log.

The residency machine of this specification follows the log: what the log reports as done, it does too, and what the
two say must agree. Around it stand the rules that a machine of whole transitions has no words for: reads, slots, work,
clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import attrs

from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.history.books import Coverage
from expertcache_spec.history.following import FOLLOWERS, Block, Record
from expertcache_spec.history.header import Header
from expertcache_spec.history.reading import Line
from expertcache_spec.history.speculating import Speculating
from expertcache_spec.history.verdict import Offence, Verdict
from expertcache_spec.history.working import Working
from expertcache_spec.model import Budget, Key


@attrs.define(slots=False)
class Checker(Speculating):
    """Feed it the lines of a log in order; `finish` gives the verdict."""

    clock: int = attrs.field(default=0, init=False)
    clock_line: int = attrs.field(default=0, init=False)
    records: int = attrs.field(default=0, init=False)
    ended: bool = attrs.field(default=False, init=False)

    def feed(self, line: int, record: Record) -> None:
        """Take one line; raises `Offence` where it breaks a rule."""
        if record["clock"] < self.clock:
            raise Offence("XC-HIST-001", line, f"clock {record['clock']} after {self.clock}", self.clock_line)
        self.clock, self.clock_line = record["clock"], line
        op = record["op"]
        if op in FOLLOWERS:
            self.follow(record, line)
        else:
            self.close()
            self._HANDLERS[op](self, record, line)
        self.records += 1

    def resize(self, record: Record, line: int) -> None:
        """The budget changes; evictions follow (XC-RES-011)."""
        self.block = Block(record, line, "XC-RES-011", self._resized)

    def _resized(self, block: Block) -> None:
        try:
            victims = self.machine.resize(Budget(block.record.get("slots"), block.record.get("bytes")))
        except ExpertCacheError as error:
            raise Offence("XC-RES-011", block.line, error.what) from error
        self._compare(block, victims)

    def pin(self, record: Record, line: int) -> None:
        """A resident record is pinned (XC-RES-018)."""
        key = self.key(record, line)
        self._try(lambda: self.machine.pin(key), "XC-RES-018", line)
        self.pinned[key] = line

    def unpin(self, record: Record, line: int) -> None:
        """A pin ends (XC-RES-019)."""
        key = self.key(record, line)
        self._try(lambda: self.machine.unpin(key), "XC-RES-019", line)
        self.pinned.pop(key, None)

    def seed(self, record: Record, line: int) -> None:
        """A profile's key is installed into free room, or not (XC-RES-020)."""
        key = Key(*record["key"])
        done = self.machine.seed([key], [record["priority"]])
        how = "read" if done.reads else "present" if done.present else "ignored" if done.ignored else "refuse"
        if how != record["how"]:
            raise Offence("XC-RES-020", line, f"{key}: the log says {record['how']}, the machine {how}")
        if done.reads:
            self.flights[key] = Coverage(line)

    def reset(self, record: Record, line: int) -> None:
        """A scope starts again (XC-RES-022)."""
        self._try(lambda: self.machine.reset(record["scope"]), "XC-RES-022", line)
        if record["scope"] == "contents":
            self._clear()

    def rebind(self, record: Record, line: int) -> None:
        """Another model's records are served from here on (XC-RES-023)."""
        epoch = self.machine.epoch
        self._try(lambda: self.machine.rebind(record["fingerprint"]), "XC-RES-023", line)
        if self.machine.epoch != epoch:
            self._clear()

    def _clear(self) -> None:
        for facts in (self.slots, self.places, self.published, self.pinned, self.deferring):
            facts.clear()

    def _try(self, act: Callable[[], object], rule: str, line: int) -> None:
        try:
            act()
        except ExpertCacheError as error:
            raise Offence(rule, line, error.what) from error

    def end(self, record: Record, line: int) -> None:
        """Nothing is left open (XC-HIST-011)."""
        waves = [(wave.line, f"ticket {ticket} is not released") for ticket, wave in self.tickets.items()]
        flights = [(coverage.line, f"{key} is still being read") for key, coverage in self.flights.items()]
        deferred = [(since, f"ticket {ticket} is not resumed") for ticket, (_, since) in self.deferring.items()]
        left = min([*waves, *flights, *deferred, *self.unfinished()], default=None)
        if left is not None:
            raise Offence("XC-HIST-011", line, f"the log ends and {left[1]}", left[0])
        self.ended = True
        self.records -= 1

    _HANDLERS: ClassVar[dict[str, Any]] = {
        "select": Working.select, "resume": Working.resume, "read_start": Working.read_start,
        "read_end": Working.read_end, "publish": Working.publish, "fail": Working.fail,
        "compute_start": Working.compute_start, "compute_end": Working.compute_end, "combine": Working.combine,
        "release": Working.release, "abandon": Working.abandon, "resize": resize, "pin": pin, "unpin": unpin,
        "seed": seed, "reset": reset, "rebind": rebind, "prefetch": Speculating.prefetch, "end": end,
    }  # fmt: skip


def check(header: Header, lines: Iterable[Line], watch: Callable[[Iterable[Line]], Iterable[Line]] = iter) -> Verdict:
    """The verdict on a log. Takes every line up to the first offence, and all of them when there is none.

    `lines` come from `read_log`, whose errors pass through; `watch` may wrap them, to draw progress or to stop. Time is
    linear in the lines, memory bounded by the model, by what is under way, and by the number of streams.
    """
    checker = Checker(header)
    try:
        for line, record in watch(lines):
            checker.feed(line, record)
        if not checker.ended:
            raise Offence("XC-HIST-011", checker.clock_line, "the log does not end")
    except Offence as found:
        return Verdict("illegal", checker.records, found.line, found.rule, found.what, found.witness)
    if not checker.records:
        checker.undecided["XC-HIST-012"] = "the log says nothing between header and end, and proves nothing"
    undecided = dict(sorted(checker.undecided.items()))
    return Verdict("unknown" if undecided else "legal", checker.records, undecided=undecided)


def numbered(records: Iterable[Record]) -> Iterator[Line]:
    """Records with the numbers of the lines that they would have in a file, header first."""
    return ((line, record) for line, record in enumerate(records, 2))
