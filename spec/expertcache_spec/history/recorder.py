"""The recorder: drives a machine and says what it does, line by line, as an engine would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from expertcache_spec.fanout import chunk_plan
from expertcache_spec.model import Budget, Key
from expertcache_spec.residency import Residency, Selection
from expertcache_spec.residency.settings import ResetScope
from expertcache_spec.trace import Event, encode_event

Record = dict[str, Any]

_EVENT = ("stream", "pass", "phase", "layer", "experts", "accepted", "weights", "scores")
"""What a log says of an event, under the names of the trace format."""


def lines_of(selection: Selection, after: int | None = None) -> Iterator[tuple[str, Record]]:
    """What a log says of a selection, or of the wave that follows the one of ticket `after`, before its evictions."""
    ticket = selection.ticket
    if after is None:
        line = encode_event(selection.event)
        yield "select", {"ticket": ticket, **{name: line[name] for name in _EVENT if name in line}}
    else:
        yield "resume", {"ticket": ticket, "after": after}
    groups = {
        "read": selection.reads, "join": selection.joined, "refuse": selection.refused, "defer": selection.deferred,
    }  # fmt: skip
    how = {key: name for name, keys in groups.items() for key in keys}
    for key in selection.event.keys:  # a wave has some of them
        of = {"ticket": ticket, "key": list(key)}
        if key in how:
            yield "miss", {**of, "how": how[key]}
        elif key in selection.hits:
            yield "hit", of
        elif key in selection.bypassed:
            yield "bypass", of


@attrs.define(slots=False)
class Recorder:
    """Drives a machine and notes what it does; `records` fills with lines, `taken` empties it.

    split, page: the chunk plan of every read. Time is counted in lines; reads and work have threads of their own.
    """

    machine: Residency
    split: int = 1
    page: int = 16384
    records: list[Record] = attrs.field(factory=list)
    slots: dict[Key, int] = attrs.field(factory=dict)
    _free: list[int] = attrs.field(factory=list)
    _reads: int = 0
    _clock: int = 0
    _count: int = 0

    def say(self, op: str, thread: int = 0, **fields: Any) -> None:
        """Write one line."""
        self.records.append({"op": op, "clock": self._clock, "thread": thread, **fields})
        self._clock += 1
        self._count += 1

    def taken(self) -> list[Record]:
        """The lines since the last call."""
        lines, self.records = self.records, []
        return lines

    # ------------------------------------------------------------------------------------------ events

    def select(self, event: Event) -> Selection:
        """Select an event, and say what was decided; raises what the machine raises, having said nothing."""
        selection = self.machine.select(event)
        self._judged(selection)
        return selection

    def resume(self, earlier: Selection) -> Selection:
        """Select the next wave of an event."""
        selection = self.machine.resume(earlier)
        self._judged(selection, after=earlier.ticket)
        return selection

    def _judged(self, selection: Selection, after: int | None = None) -> None:
        for op, fields in lines_of(selection, after):
            self.say(op, **fields)
        self.evicted(selection.victims, ticket=selection.ticket)

    def evicted(self, victims: Iterable[Key], **ticket: int) -> None:
        """Say who has left."""
        for key in victims:
            self.say("evict", key=list(key), **ticket)
            self._leave(key)

    def _leave(self, key: Key) -> None:
        self._free.append(self.slots.pop(key))

    def release(self, selection: Selection) -> None:
        """The work of the wave has executed."""
        ended = self.machine.release(selection.ticket)
        self.say("release", ticket=selection.ticket)
        self.evicted(ended.victims, ticket=selection.ticket)
        for key in ended.refused:
            self.say("refuse", ticket=selection.ticket, key=list(key))
            self._leave(key)

    # ------------------------------------------------------------------------------------------ reads and work

    def begin_reads(self, keys: Iterable[Key], **ticket: int) -> list[Record]:
        """Start the reads of the records by their plans; returns what `end_reads` takes."""
        started = []
        for key in keys:
            if not ticket:
                self.slots[key] = self._free.pop() if self._free else len(self.slots)
            where = ticket or {"slot": self.slots[key]}
            for number, chunk in enumerate(chunk_plan(self.machine.size(key.layer), self.split, self.page)):
                run = {"read": self._reads, "offset": chunk.offset, "length": chunk.length}
                self._reads += 1
                self.say("read_start", 1 + number, **run, key=list(key), **where)
                started.append({**run, "thread": 1 + number})
        return started

    def end_reads(self, started: Iterable[Record]) -> None:
        """The reads have delivered, in the order given."""
        for run in started:
            self.say("read_end", **run)

    def publish(self, key: Key, **ticket: int) -> None:
        """The record is whole: publish it."""
        progress = self.machine.complete(key)
        self.say("publish", key=list(key))
        self.evicted(progress.victims, **ticket)

    def fail(self, key: Key) -> None:
        """The reading of the record has failed."""
        progress = self.machine.fail(key)
        self.say("fail", key=list(key))
        self._leave(key)
        self.evicted(progress.victims)

    def load(self, selection: Selection) -> None:
        """Read and publish all that the wave misses; what arrives last was asked for first."""
        started = self.begin_reads(selection.reads)
        alone = self.begin_reads((*selection.refused, *selection.bypassed), ticket=selection.ticket)
        self.compute(selection, selection.hits)
        self.end_reads([*reversed(started), *alone])
        for key in reversed(selection.reads):
            self.publish(key, ticket=selection.ticket)

    def compute(self, selection: Selection, keys: Iterable[Key]) -> None:
        """Work on the records, to its end."""
        for key in keys:
            self.say("compute_start", 9, ticket=selection.ticket, key=list(key))
            self.say("compute_end", 9, ticket=selection.ticket, key=list(key))

    def finish(self, selection: Selection) -> None:
        """Work on what was missing, combine in slot order, release."""
        done = {*selection.hits, *selection.deferred}
        kept = {*selection.hits, *selection.reads, *selection.joined, *selection.refused, *selection.bypassed}
        self.compute(selection, [key for key in selection.event.keys if key in kept and key not in done])
        order = [list(key) for key in selection.event.keys if key in kept]
        self.say("combine", 9, ticket=selection.ticket, keys=order)
        self.release(selection)

    # ------------------------------------------------------------------------------------------ the rest

    def seed(self, key: Key, priority: int = 0) -> None:
        """Install a profile's key, read and published at once."""
        done = self.machine.seed([key], [priority])
        how = "read" if done.reads else "present" if done.present else "ignored" if done.ignored else "refuse"
        self.say("seed", key=list(key), priority=priority, how=how)
        if done.reads:
            self.end_reads(self.begin_reads([key]))
            self.publish(key)

    def prefetch(
        self, key: Key, executing: Selection | None = None, may_go: Callable[[Key], bool] = lambda key: True
    ) -> list[Record]:  # fmt: skip
        """Begin a speculative read into a slot; its runs, none where there is no room or no need, as the policy hears.

        executing: the open event beside whose keys records give way, if all that are needed `may_go`; None: none do.
        """
        victims = () if executing is None else self.machine.vacate(key, executing.event, may_go)
        outcome = self.machine.prefetch(key)
        if outcome not in ("started", "refused") and self.machine.part_of(key.layer).policy.renews:
            self.say("prefetch", key=list(key), state="present")
        if outcome != "started":
            return []
        beside = {"ticket": executing.ticket} if executing is not None and victims else {}
        self.say("prefetch", key=list(key), state="reading", **beside)
        self.evicted(victims)
        return self.begin_reads([key])

    def resize(self, budget: Budget) -> None:
        """Take a new budget."""
        victims = self.machine.resize(budget)
        limits = {name: size for name, size in attrs.asdict(budget).items() if size is not None}
        self.say("resize", **limits)
        self.evicted(victims)

    def reset(self, scope: ResetScope) -> None:
        """Start a scope again."""
        self.machine.reset(scope)
        self.say("reset", scope=scope)
        if scope == "contents":
            self.slots.clear()
            self._free.clear()

    def end(self) -> None:
        """Say that the log is complete."""
        self.say("end", records=self._count)
