"""The runtime as an `--impl`: every read of the examination is a read of a file, every record's bytes are looked at.

Most models of the examination are a few records of a few bytes. Their files are written, full of a pattern, into a
temporary folder, one for each shape and model, and go with the process. Of a large record the files hold the first
bytes only, and the rest is charged for and not read. Each is read in two chunks.

Its plans are what it does: the chunks and extents of its reader, and the schedule of a run in virtual time.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any

from expertcache_reference import cache as plain
from expertcache_reference.planning import LAYOUTS
from expertcache_reference.runtime.batches import Batch
from expertcache_reference.runtime.executed import plan_schedule
from expertcache_reference.runtime.held import HeldRuntime
from expertcache_reference.runtime.patterns import store_of
from expertcache_reference.runtime.planned import extents, plan_chunks
from expertcache_reference.runtime.work import Work
from expertcache_spec.content import pattern
from expertcache_spec.errors import WrongState
from expertcache_spec.model import Budget, Key
from expertcache_spec.replay import run_by_parts
from expertcache_spec.residency import Ended, Progress, Selection, Step
from expertcache_spec.residency.settings import ResetScope
from expertcache_spec.trace import Event

__all__ = ["PROFILE", "RuntimeCache", "extents", "open_cache", "plan_chunks", "plan_schedule"]

PROFILE = {
    **{name: plain.PROFILE[name] for name in ("version", "spec", "replay", "policies", "settings", "budgets")},
    "name": "expertcache_reference.runtime",
    "capabilities": [
        "leases", "faults", "pins", "resize", "reset", "rebind", "seeds", "priorities", "prefetch",
        "prefetch-counts", "bytes", "chunks", "layout", "schedule",
    ],
    "layouts": list(LAYOUTS),
    "disciplines": ["sync", "split", "staged", "pipelined"],
}  # fmt: skip


class RuntimeCache:
    """One cache of the examination. Every answer is the residency machine's, every byte comes through the reader."""

    def __init__(self, config: plain.Config) -> None:
        self._runtime = HeldRuntime(
            store_of(config.geometry, config.fingerprint), config.budget, config.policy, config.settings, "sync",
            workers=1, chunks=1, parameters=config.parameters, future=config.future,
        )  # fmt: skip
        self._core, self._geometry = self._runtime.core, config.geometry
        self._open: dict[int, Work] = {}
        weakref.finalize(self, self._runtime.close)  # nobody closes a cache of the examination

    def select(self, event: Event) -> Selection:
        """Lease and decide; reads wait until `complete` or `fail`."""
        self._core.reader.holding = True
        try:
            work = self._runtime.serve(event, wait=False, ahead=True)
        finally:
            self._core.reader.holding = False
        return self._kept(work)

    def resume(self, ticket: int) -> Selection:
        """The next wave, after the release of `ticket`."""
        work = self._open[ticket]
        self._core.reader.holding = True
        try:
            work.resume()
        finally:
            self._core.reader.holding = False
        del self._open[ticket]
        return self._kept(work)

    def _kept(self, work: Work) -> Selection:
        self._open[work.wave.ticket] = work
        return work.wave.selection

    def complete(self, key: Key) -> Progress:
        """Read the record, to its end."""
        with self._core.lock:
            return self._core.end_read(Key(*key), whole=True)

    def fail(self, key: Key) -> Progress:
        """Read the first half of the record, and beyond the end of its file."""
        with self._core.lock:
            return self._core.end_read(Key(*key), whole=False)

    def release(self, ticket: int) -> Ended:
        """End the lease."""
        work = self._open.get(ticket)
        lease = self._core.residency.leases.get(ticket)
        if work is None or lease is None or lease.pending:
            self._core.residency.release(ticket)  # raises
            raise WrongState("no lease that can end", where=f"ticket {ticket}", cure="release each ticket once")
        ended = work.end_wave()
        if not work.wave.selection.deferred:
            del self._open[ticket]
        return ended

    def read(self, ticket: int, key: Key) -> bytes:
        """What the event computes with; of what is not kept, once its read has ended."""
        key, work = Key(*key), self._open.get(ticket)
        if work is None or (key in work.wave.pending and key in self._core.residency.flights):
            raise WrongState(
                f"{key} is not there", where=f"ticket {ticket}", cure="complete its read, and look in time"
            )
        wave = work.wave
        wave.wait(lambda: key not in wave.pending)
        wave.hand_out(Batch((key,), (), ()))
        return bytes(work.record(key))

    def look(self, ticket: int) -> None:
        """At every byte that the event computes with; raises `AssertionError` for a wrong one."""
        fingerprint = self._core.residency.fingerprint
        for key in self._open[ticket].wave.keys:
            if self.read(ticket, key) != pattern(fingerprint, key, self._core.records.sizes[key.layer]):
                raise AssertionError(f"wrong bytes of {key}")

    def step(self, event: Event) -> Step:
        """Serve the event whole."""
        return run_by_parts(Looking(self), event)

    def pin(self, key: Key) -> None:
        """Keep a resident record."""
        self._runtime.pin(key)

    def unpin(self, key: Key) -> None:
        """Let it go again."""
        self._runtime.unpin(key)

    def resize(self, slots: int | None, bytes: int | None) -> dict[str, Any]:  # noqa: A002
        """Take a new budget."""
        return {"victims": self._runtime.resize(Budget(slots, bytes))}

    def reset(self, scope: ResetScope) -> None:
        """Start again, within the scope."""
        self._runtime.reset(scope)

    def rebind(self, fingerprint: str) -> None:
        """Serve the model of that fingerprint."""
        self._runtime.rebind(store_of(self._geometry, fingerprint))

    def seed(self, keys: Iterable[Key], priorities: Sequence[int] = ()) -> dict[str, Any]:
        """Install profile keys and read them."""
        seeded = self._runtime.seed(keys, priorities)
        with self._core.lock:
            while any(key in self._core.residency.flights for key in seeded.reads):
                self._core.idle.wait()
        return {**seeded._asdict(), "installed": seeded.reads}

    def prefetch(self, key: Key) -> dict[str, str]:
        """Have room for a speculative read, which waits until `complete` or `fail`."""
        self._core.reader.holding = True
        try:
            return {"outcome": self._runtime.prefetch(key)}
        finally:
            self._core.reader.holding = False

    def prefetch_counts(self) -> dict[str, int]:
        """What became of the prefetches so far."""
        names = ("issued", "useful", "late", "wasted", "failed", "duplicate", "refused")
        with self._core.lock:
            return {name: getattr(self._core.residency.counters, f"prefetch_{name}") for name in names}


class Looking:
    """A cache part by part, looked at before each release: of a whole step nobody else sees the bytes."""

    def __init__(self, cache: RuntimeCache) -> None:
        self._cache = cache
        self.select, self.complete = cache.select, cache.complete

    def release(self, ticket: int) -> Ended:
        """Look, then let go."""
        self._cache.look(ticket)
        return self._cache.release(ticket)

    def resume(self, selection: Selection) -> Selection:
        """The wave after that of the selection."""
        return self._cache.resume(selection.ticket)


def open_cache(config: plain.Config) -> RuntimeCache:
    """A fresh, empty cache."""
    return RuntimeCache(config)
