"""The runtime: what an engine calls. Everything that it does under its lock is in `core`, `wave` and `contents`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar

from expertcache_reference.reader import Files, Way, check_ways
from expertcache_reference.runtime.batches import discipline_of
from expertcache_reference.runtime.contents import Contents
from expertcache_reference.runtime.core import Core
from expertcache_reference.runtime.journal import Journal, Sink
from expertcache_reference.runtime.opening import (
    Source,
    arenas_of,
    check_budget,
    check_event,
    check_given,
    check_source,
    residency_of,
)
from expertcache_reference.runtime.records import Records
from expertcache_reference.runtime.report import Report, report_of
from expertcache_reference.runtime.speculation import Speculation
from expertcache_reference.runtime.wave import Wave
from expertcache_reference.runtime.work import Work
from expertcache_reference.system import this_machine
from expertcache_reference.system.seam import Machine
from expertcache_spec.eviction import Card, Value
from expertcache_spec.model import Budget, Key
from expertcache_spec.residency import Seeded, Settings
from expertcache_spec.residency.machine import PrefetchOutcome
from expertcache_spec.residency.settings import ResetScope
from expertcache_spec.schedule.disciplines import Discipline
from expertcache_spec.trace import Event


class Runtime:
    """An expert cache with real bytes. Calls may come from several threads, one a stream.

    with Runtime(store, Budget(slots=1889)) as runtime:
        with runtime.serve(event) as work:
            for batch in work.batches():
                for key in batch.keys:
                    results[key] = compute(work.record(key))

    policy (in words, or a card), parameters, settings, budget: of the residency machine. discipline: how reads and work
    overlap. workers, chunks, way: of the reader. log: takes the lines of the event log, or the path of the file to
    write, under that name from the first line on and in the place of one that exists. clock: of the log, the machine's
    nanoseconds unless given. future: every event to come, for offline policies.

    Raises, before anything is opened, `InvalidModel`, `InvalidBudget`, `UnknownName`, `NeedsFuture`; and what memory,
    threads and the log's file raise, with nothing left open.
    """

    inside: ClassVar[type[Core]] = Core
    """What it is made of; one's own is a subclass."""

    def __init__(
        self, store: Source, budget: Budget, policy: str | Card = "lru", settings: Settings | None = None,
        discipline: str | Discipline = "split:1", *, workers: int = 8, chunks: int = 4, way: Way = "pread",
        machine: Machine | None = None, log: Sink | Path | str | None = None, clock: Callable[[], int] | None = None,
        parameters: Mapping[str, Value] | None = None, future: Sequence[Event] | None = None,
    ) -> None:  # fmt: skip
        machine = this_machine() if machine is None else machine
        check_ways(workers, way)
        check_given(store, budget, chunks, log)
        self._discipline = discipline_of(discipline)
        residency, header = residency_of(store, budget, policy, parameters or {}, future, settings or Settings())
        self._chunks, self._geometry = chunks, store.geometry
        records = self._records(store)
        arenas = arenas_of(machine, residency, records)
        journal = None if log is None else Journal(log, header, clock or machine.now, workers)
        self._tokens: dict[int, tuple[int, int]] = {}
        """Decode passes of each stream so far, and the latest."""
        self._since = machine.usage()
        try:
            core = self.inside(machine, residency, records, Files(machine, store.folder), arenas, journal, workers, way)
        except BaseException:
            if journal is not None:
                journal.close_file()
            raise
        self._core, self._contents = core, Contents(core)
        self.speculation = Speculation(core, self._contents)

    def _records(self, store: Source) -> Records:
        return Records(store.layout, store.geometry, self._chunks, staged=self._discipline.reads == "stage")

    # ------------------------------------------------------------------------------------------ events

    def serve(self, event: Event, *, wait: bool = True, ahead: bool = False) -> Work:
        """Select the event, begin its reads, and give the work; the lease ends with the work's block or its `release`.

        Where room is held by others it waits in line for it, under no-victim rule `wait`; but not if `wait` is false,
        nor if the event's stream has another event open, which it might be waiting for: then it raises `MustWait`.
        ahead: the work is only queued when `batches` asks for more, and has executed when `release` is called.

        Raises `RuntimeClosed`, `InvalidModel` for no event or a row beyond top-k, and what `Residency.select` raises,
        with nothing changed.
        """
        check_event(event, self._geometry)
        core = self._core
        with core.lock:
            core.check_open("serve")
            may_wait = wait and not core.holds(event.stream)
            # A layer that the model does not have stands in no line; the machine says what is wrong with it.
            line = core.line(event.layer if event.layer in self._geometry.routed else self._geometry.routed[0])
            wave = line.enter(lambda: Wave.select(core, event), may_wait=may_wait)
            return Work(core, self._discipline, wave, self._count(event), ahead=ahead)

    def _count(self, event: Event) -> int:
        """Decode passes of the event's stream so far, this one included; 0 outside decode."""
        if event.phase != "decode":
            return 0
        count, latest = self._tokens.get(event.stream, (0, -1))
        if event.pass_index != latest:
            count += 1
            self._tokens[event.stream] = count, event.pass_index
        return count

    # ------------------------------------------------------------------------------------------ contents

    def prefetch(self, key: Key) -> PrefetchOutcome:
        """Read a record on speculation, into free room only and behind all demand; what was done."""
        with self._core.lock, self._core.page:
            return self._contents.prefetch(key)

    def seed(self, keys: Iterable[Key], priorities: Iterable[int] = ()) -> Seeded:
        """Read profile records into free room, in list order, behind all demand; `settle` waits for them."""
        with self._core.lock, self._core.page:
            return self._contents.seed(list(keys), list(priorities))

    def settle(self) -> None:
        """Sleep until no read is under way."""
        with self._core.lock:
            while self._core.residency.flights:
                self._core.idle.wait()

    def pin(self, key: Key) -> None:
        """Keep a resident record until `unpin`; raises as `Residency.pin`."""
        with self._core.lock, self._core.page:
            self._contents.pin(key)

    def unpin(self, key: Key) -> None:
        """End a pin; raises as `Residency.unpin`."""
        with self._core.lock, self._core.page:
            self._contents.unpin(key)

    def resize(self, budget: Budget) -> tuple[Key, ...]:
        """Take a new budget, at any time; what was evicted. What is leased or in flight leaves when that ends."""
        check_budget(budget)
        with self._core.lock, self._core.page:
            return self._contents.resize(budget)

    def reset(self, scope: ResetScope) -> None:
        """Start `counters`, `history` or `contents` again; raises `StillInUse` for contents that are leased or read."""
        with self._core.lock, self._core.page:
            self._contents.reset(scope)

    def rebind(self, store: Source) -> None:
        """Serve another model of the same geometry; one of equal fingerprint changes nothing: the old files stay.

        Raises `StillInUse`, and `InvalidModel` for another geometry.
        """
        check_source(store)
        records = self._records(store)
        with self._core.lock, self._core.page:
            self._contents.rebind(store, self._geometry, records)

    def resident(self) -> frozenset[Key]:
        """The records that are published now."""
        with self._core.lock:
            return self._core.residency.residents()

    def report(self) -> Report:
        """What was done so far."""
        with self._core.lock:
            return report_of(self._core, self._since)

    # ------------------------------------------------------------------------------------------ the end

    def close(self) -> None:
        """End the runtime, at any time. Reads under way are cancelled, and who waits is told.

        Work that is open keeps its bytes; memory and log are complete when the last of it is released. Raises what the
        log's sink had raised. A second time it does nothing.
        """
        core = self._core
        with core.lock, core.page:
            if core.closed:
                return
            core.closed = True
            core.reader.stop()
            for line in core.lines.values():
                line.close()
        core.reader.join()
        core.files.close()
        with core.lock, core.page:
            core.stopped = True
            core.finish()

    def __enter__(self) -> Runtime:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:  # fmt: skip
        self.close()
