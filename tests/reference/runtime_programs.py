"""Small programs that serve events from stores of pattern bytes, and look at everything that comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from expertcache_reference.reader import ReadFailed
from expertcache_reference.runtime import Runtime, RuntimeClosed, Work
from expertcache_reference.system.seam import Machine
from expertcache_spec.errors import ExpertCacheError, InvalidBudget, MustWait, StillInUse, WrongState
from expertcache_spec.history import Verdict, check, decode_log_header, numbered
from expertcache_spec.model import Budget, Key
from expertcache_spec.residency import Residency, Settings, audit
from expertcache_spec.trace import Event

from .runtime_stores import PatternStore, event, pattern, simulation, store

__all__ = [
    "PatternStore", "Program", "assert_clean", "assert_legal", "assert_sound", "consume", "event", "pattern",
    "residency_of", "simulation", "store", "verdict",
]  # fmt: skip


def verdict(lines: list[dict[str, Any]]) -> Verdict:
    """What the checker says of a log."""
    return check(decode_log_header(lines[0], "line 1"), numbered(lines[1:]))


def assert_legal(lines: list[dict[str, Any]]) -> None:
    """The log passes, every rule judged; one of a runtime that was closed before anything was asked proves nothing."""
    found = verdict(lines)
    assert found.answer == "legal" or (found.answer == "unknown" and len(lines) == 2), found
    assert found.records == len(lines) - 2


def residency_of(runtime: Runtime) -> Residency:
    """The machine that decides."""
    return runtime._core.residency


def consume(work: Work, results: dict[Key, bytes], spend: Callable[[int], None] | None = None) -> None:
    """Look at every record of the event twice, with time in between; raises what `batches` raises."""
    for batch in work.batches():
        views = {key: work.record(key) for key in batch.keys}
        first = {key: bytes(view) for key, view in views.items()}
        if spend is not None:
            spend(1000)
        for key, view in views.items():
            assert bytes(view) == first[key] == pattern(key, len(view)), f"wrong bytes of {key}"
            assert key not in results, f"{key} is handed out twice"
            results[key] = first[key]
    assert set(results) == set(work.event.keys), "some record was never handed out"


def assert_sound(runtime: Runtime, budget: Budget | None = None, *, loose: bool = False) -> None:
    """The books add up, memory is where the machine says, and nothing ever exceeded the budget; call it when quiet.

    loose: budget and counters have changed meanwhile.
    """
    core, machine = runtime._core, residency_of(runtime)
    assert audit(machine) == []
    assert set(core.slots) == set(machine.residents()) | set(machine.flights)
    assert core.arena.used == len(core.slots)
    assert all(slot.uses == 0 for slot in core.slots.values()) or machine.leases or machine.flights
    assert not core.scratch.used or machine.leases
    counts = core.reader.counts
    assert min(attrs.astuple(counts)) >= 0
    row = machine.counters.total()
    if not (loose or counts.failed or counts.cancelled or machine.counters.failed):
        assert counts.bytes == row.bytes_read + machine.counters.seed_bytes + machine.counters.prefetch_bytes
    if not loose and budget is not None and budget.slots is not None:
        largest = max(machine.sizes.values())
        page = core.machine.page
        assert core.arena.peak <= budget.slots * -(-largest // page) * page


REFUSALS = (MustWait, RuntimeClosed, StillInUse, InvalidBudget, WrongState, ReadFailed)

Act = Callable[[Runtime], object]


@attrs.frozen
class Program:
    """Streams that serve events side by side, and what else happens meanwhile.

    Every stream tries an event until its reads succeed, at most `tries` times. `others` are threads of their own,
    `before` happens before any of them runs. lines: where the log goes, to be read even after a run that failed.
    """

    found: PatternStore
    budget: Budget
    settings: Settings = attrs.field(factory=Settings)
    discipline: str = "split:1"
    streams: tuple[tuple[Event, ...], ...] = ()
    others: tuple[tuple[Act, ...], ...] = ()
    before: tuple[Act, ...] = ()
    options: Mapping[str, Any] = attrs.field(factory=dict)
    tries: int = 3
    loose: bool = False
    make: Callable[..., Runtime] = Runtime
    lines: list[dict[str, Any]] | None = None

    def __call__(self, machine: Machine) -> dict[str, Any]:
        lines: list[dict[str, Any]] = [] if self.lines is None else self.lines
        seen: list[BaseException] = []
        try:
            runtime = self.make(
                self.found, self.budget, "lru", self.settings, self.discipline, machine=machine, log=lines.append,
                **{"workers": 2, "chunks": 2, **self.options},
            )  # fmt: skip
        except (OSError, RuntimeError) as error:
            return {"lines": [], "seen": [error], "opened": False, "served": 0}
        try:
            for act in self.before:
                act(runtime)
            served: list[Event] = []
            runs = [self._stream(runtime, machine, events, seen, served) for events in self.streams]
            runs += [self._other(runtime, acts, seen) for acts in self.others]
            threads = [machine.spawn(f"stream-{number}", run) for number, run in enumerate(runs[1:], 1)]
            runs[0]()
            for thread in threads:
                thread.join()
            if not runtime._core.closed:
                runtime.settle()
                assert_sound(
                    runtime, self.budget if self.settings.room == "reserve" else None, loose=self.loose or bool(seen)
                )
        finally:
            runtime.close()
        core = runtime._core
        assert core.finished
        assert not core.works
        assert not core.arena.bytes
        waits = sum(line.waits for line in core.lines.values())
        return {"lines": lines, "seen": seen, "opened": True, "waits": waits, "served": len(served)}

    def _stream(
        self, runtime: Runtime, machine: Machine, events: tuple[Event, ...], seen: list[BaseException],
        served: list[Event],
    ) -> Callable[[], None]:  # fmt: skip
        spend = getattr(machine, "spend", None)

        def run() -> None:
            for each in events:
                if not _served(runtime, each, spend, self.tries, seen):
                    return
                served.append(each)

        return _kept(run, seen)

    def _other(self, runtime: Runtime, acts: tuple[Act, ...], seen: list[BaseException]) -> Callable[[], None]:
        def run() -> None:
            for act in acts:
                try:
                    act(runtime)
                except REFUSALS as error:
                    seen.append(error)

        return _kept(run, seen)


def _served(runtime: Runtime, each: Event, spend: Any, tries: int, seen: list[BaseException]) -> bool:
    for _ in range(tries):
        try:
            with runtime.serve(each) as work:
                consume(work, {}, spend)
            return True
        except ExpertCacheError as error:
            seen.append(error)
            if isinstance(error, RuntimeClosed) or runtime._core.closed:
                return False
    return False


def _kept(run: Callable[[], None], seen: list[BaseException]) -> Callable[[], None]:
    """An assertion that fails in a thread of its own is found by `assert_clean`."""

    def kept() -> None:
        try:
            run()
        except AssertionError as error:
            seen.append(error)

    return kept


def assert_clean(value: dict[str, Any], *, errors: bool = False) -> None:
    """Nobody saw a wrong byte, nobody an error unless `errors`, and the log is legal."""
    for error in value["seen"]:
        if isinstance(error, AssertionError) or not errors:
            raise error
    if value["opened"]:
        assert_legal(value["lines"])
