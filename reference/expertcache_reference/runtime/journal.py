"""The journal: what the runtime does, line by line, as `expertcache_spec.history` reads it.

Every line is written under the runtime's lock, in the order in which things happened. There is no journal where nobody
asked for a log, and then nothing is called. Threads are numbered: 0 decides, 1 to W are the readers, W + 1 + s is
whoever computes for stream s.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any

from expertcache_reference.reader import Job
from expertcache_spec.history.header import Header, encode_header
from expertcache_spec.history.recorder import lines_of
from expertcache_spec.model import Key
from expertcache_spec.residency import Ended, Selection
from expertcache_spec.trace import Event

Sink = Callable[[dict[str, Any]], object]


class Journal:
    """One log. `sink` takes each line, or a path names the file to write; `clock` gives whole numbers that only rise.

    A sink that fails ends the log and nothing else: `close` raises what it raised. As a context it holds together what
    is done and the lines that say so: where Ctrl-C comes between them the log stops there, as after a kill.
    """

    def __init__(self, sink: Sink | Path | str, header: Header, clock: Callable[[], int], workers: int) -> None:
        self._file: IO[str] | None = None
        if isinstance(sink, str):
            sink = Path(sink)
        if isinstance(sink, Path):
            self._file = sink.open("w", encoding="utf-8", newline="\n")
            sink = self._write
        self._sink, self._clock, self._since, self._workers = sink, clock, clock(), workers
        self._failure: Exception | None = None
        self._torn = False
        self._count = self._reads = 0
        self._states: dict[Key, str] = {}
        """Of each prefetch that has not come to an end."""
        try:
            sink(encode_header(header))
        except BaseException:
            self.close_file()
            raise

    def _write(self, line: dict[str, Any]) -> None:
        assert self._file is not None, "it writes to a file"
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def __enter__(self) -> object:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is not None and not issubclass(kind, Exception):
            self._torn = True

    def say(self, op: str, thread: int = 0, **fields: Any) -> None:
        """Write one line, unless a line before it is missing."""
        if self._failure is None and not self._torn:
            try:
                self._sink({"op": op, "clock": self._clock() - self._since, "thread": thread, **fields})
            except Exception as error:  # a full disk is no reason to give wrong bytes, or none
                self._failure = error
            self._count += 1

    # ------------------------------------------------------------------------------------------ events

    def selected(self, selection: Selection, after: int | None = None) -> None:
        """An event was selected, or the next wave of the one of ticket `after`."""
        for op, fields in lines_of(selection, after):
            self.say(op, **fields)
        self.evicted(selection.victims, ticket=selection.ticket)
        for key in self._among(selection.joined, "reading"):
            self._enter(key, "late")
        for key in self._among(selection.hits, "ready"):
            self._enter(key, "adopted")

    def _among(self, keys: Iterable[Key], state: str) -> list[Key]:
        return [key for key in keys if self._states.get(key) == state] if self._states else []

    def _enter(self, key: Key, state: str, **ticket: int) -> None:
        self.say("prefetch", key=list(key), state=state, **ticket)
        if state in ("adopted", "discarded", "failed"):
            del self._states[key]
        else:
            self._states[key] = state

    def evicted(self, keys: Sequence[Key], **ticket: int) -> None:
        """Records have left; a prefetch that nobody used has come to nothing."""
        for key in keys:
            self.say("evict", key=list(key), **ticket)
        for key in self._among(keys, "ready"):
            self._enter(key, "discarded")

    def began_work(self, ticket: int, event: Event, keys: Iterable[Key]) -> None:
        """The records are handed out to be computed with."""
        for key in keys:
            self.say("compute_start", self._workers + 1 + event.stream, ticket=ticket, key=list(key))

    def ended_work(self, ticket: int, event: Event, keys: Iterable[Key]) -> None:
        """The work on them has executed."""
        for key in keys:
            self.say("compute_end", self._workers + 1 + event.stream, ticket=ticket, key=list(key))

    def combined(self, ticket: int, event: Event, keys: Sequence[Key]) -> None:
        """The results can be summed, in this order."""
        self.say("combine", self._workers + 1 + event.stream, ticket=ticket, keys=[list(key) for key in keys])

    def released(self, ticket: int, ended: Ended, *, given_up: bool = False) -> None:
        """The lease has ended, with the work or without."""
        self.say("abandon" if given_up else "release", ticket=ticket)
        for key in ended.victims:
            self.say("evict", key=list(key), ticket=ticket)
        for key in ended.refused:
            self.say("refuse", ticket=ticket, key=list(key))
        for key in self._among((*ended.victims, *ended.refused), "ready"):
            self._enter(key, "discarded")

    # ------------------------------------------------------------------------------------------ reads

    def began_read(self, job: Job, worker: int, key: Key, where: dict[str, int]) -> None:
        """A worker has taken a chunk; `where` is the slot, or the ticket of the event that alone gets the record."""
        job.number, self._reads = self._reads, self._reads + 1
        self.say("read_start", worker, read=job.number, offset=job.chunk.offset, length=job.chunk.length,
                 key=list(key), **where)  # fmt: skip

    def ended_read(self, job: Job, worker: int) -> None:
        """The chunk is there."""
        self.say("read_end", worker, read=job.number, offset=job.chunk.offset, length=job.chunk.length)

    def published(self, key: Key, victims: Sequence[Key]) -> None:
        """The record is resident."""
        self.say("publish", key=list(key))
        self.evicted(victims)
        # A shrink may have taken the room back in the same step: then nothing was ever ready.
        self._step(key, {"reading": "failed" if key in victims else "ready", "late": "adopted"})

    def failed(self, key: Key, victims: Sequence[Key]) -> None:
        """Its read has failed."""
        self.say("fail", key=list(key))
        self.evicted(victims)
        self._step(key, {"reading": "failed", "late": "failed"})

    def _step(self, key: Key, after: dict[str, str]) -> None:
        if self._states.get(key) in after:
            self._enter(key, after[self._states[key]])

    # ------------------------------------------------------------------------------------------ the rest

    def prefetching(self, key: Key, victims: Sequence[Key] = (), **ticket: int) -> None:
        """A speculative read has its room and is queued; victims: who gave way, beside the event of the ticket."""
        self._enter(key, "reading", **ticket)
        self.evicted(victims)

    def cleared(self) -> None:
        """Contents are gone, and with them what prefetches had brought."""
        for key in self._among(list(self._states), "ready"):
            self._enter(key, "discarded")

    def close(self) -> None:
        """Say that the log is complete, if it is; raises what the sink had raised."""
        self.say("end", records=self._count)
        try:
            self.close_file()
        finally:
            if self._failure is not None:
                raise self._failure

    def close_file(self) -> None:
        """Close the file, if it was this journal that opened it."""
        if self._file is not None:
            self._file.close()
