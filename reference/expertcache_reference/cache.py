"""A straightforward expert cache on the specification, and the implementation that the suite examines by default.

`ExpertCache` is what an engine would write around the residency machine: it keeps one machine, serves events whole or
taken apart, and never decides anything by itself. `PROFILE` and `open_cache` make it an `--impl`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from expertcache_reference.planning import (
    LAYOUTS,
    accepts,
    extents,
    files,
    plan_chunks,
    plan_reads,
    plan_schedule,
    read_window,
    table_row,
)
from expertcache_spec import SPEC_VERSION
from expertcache_spec.eviction import POLICIES, Value, make
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import run_event
from expertcache_spec.residency import SETTINGS, Ended, Progress, Residency, Selection, Settings, Step
from expertcache_spec.schedule.disciplines import NAMES as DISCIPLINES
from expertcache_spec.trace import Event

__all__ = [
    "PROFILE", "Config", "ExpertCache", "accepts", "extents", "files", "open_cache", "plan_chunks", "plan_reads",
    "plan_schedule", "read_window", "table_row",
]  # fmt: skip

PROFILE = {
    "name": "expertcache_reference",
    "version": "0.1",
    "spec": SPEC_VERSION,
    "replay": "event",
    "policies": list(POLICIES),
    "settings": {
        **{name: list(values) for name, values in SETTINGS.items()},
        "admission": [
            *SETTINGS["admission"], "sightings:n=3:again=2", "hysteresis:margin=1:halve=8", "cold-slots:idle=2",
        ],
    },
    "budgets": ["slots", "bytes"],
    "capabilities": [
        "leases", "faults", "pins", "resize", "reset", "rebind", "seeds", "priorities", "prefetch",
        "prefetch-counts", "chunks", "layout", "reads", "windows", "tables", "opening", "schedule", "evaluator",
    ],
    "layouts": [*LAYOUTS, "own"],
    "disciplines": list(DISCIPLINES),
}  # fmt: skip
"""What the reference claims: everything that the specification states."""


class Config(Protocol):
    """What `open_cache` needs of a configuration; `future` is every event to come, for offline policies."""

    @property
    def policy(self) -> str: ...  # noqa: D102
    @property
    def budget(self) -> Budget: ...  # noqa: D102
    @property
    def geometry(self) -> Geometry: ...  # noqa: D102
    @property
    def settings(self) -> Settings: ...  # noqa: D102
    @property
    def parameters(self) -> Mapping[str, Value]: ...  # noqa: D102
    @property
    def future(self) -> Sequence[Event] | None: ...  # noqa: D102
    @property
    def fingerprint(self) -> str: ...  # noqa: D102


class ExpertCache:
    """One cache. Errors are the specification's own; after any of them the cache is as it was."""

    def __init__(self, config: Config) -> None:
        factory = make(config.policy, future=config.future, parameters=config.parameters)
        self.machine = Residency(config.geometry, config.budget, factory, config.settings, config.fingerprint)
        self._open: dict[int, Selection] = {}

    def step(self, event: Event) -> Step:
        """Serve one event whole: select, read, execute, release."""
        return run_event(self.machine, event)

    def select(self, event: Event) -> Selection:
        """Lease the event's records and decide what to read; the caller reads, completes, executes and releases."""
        selection = self.machine.select(event)
        self._open[selection.ticket] = selection
        return selection

    def resume(self, ticket: int) -> Selection:
        """The next wave of an event that is served in waves, after the release of `ticket`."""
        selection = self.machine.resume(self._open.pop(ticket))
        self._open[selection.ticket] = selection
        return selection

    def complete(self, key: Key) -> Progress:
        """The record's bytes are all there."""
        return self.machine.complete(key)

    def fail(self, key: Key) -> Progress:
        """The record could not be read."""
        return self.machine.fail(key)

    def release(self, ticket: int) -> Ended:
        """The work that reads the event's bytes has executed."""
        ended = self.machine.release(ticket)
        if not self._open[ticket].deferred:
            del self._open[ticket]
        return ended

    def pin(self, key: Key) -> None:
        """Keep a resident record."""
        self.machine.pin(key)

    def unpin(self, key: Key) -> None:
        """Let it go again."""
        self.machine.unpin(key)

    def resize(self, slots: int | None, bytes: int | None) -> dict[str, Any]:  # noqa: A002
        """Take a new budget."""
        return {"victims": self.machine.resize(Budget(slots, bytes))}

    def reset(self, scope: str) -> None:
        """Start again, within the scope."""
        self.machine.reset(scope)  # type: ignore[arg-type]

    def rebind(self, fingerprint: str) -> None:
        """Serve another model."""
        self.machine.rebind(fingerprint)

    def seed(self, keys: Sequence[Key], priorities: Sequence[int] = ()) -> dict[str, Any]:
        """Install profile keys and read them."""
        seeded = self.machine.seed(keys, priorities)
        for key in seeded.reads:
            self.machine.complete(key)
        return {**seeded._asdict(), "installed": seeded.reads}

    def prefetch(self, key: Key) -> dict[str, str]:
        """Start a speculative read; the caller completes or fails it."""
        return {"outcome": self.machine.prefetch(key)}

    def prefetch_counts(self) -> dict[str, int]:
        """What became of the prefetches so far."""
        names = ("issued", "useful", "late", "wasted", "failed", "duplicate", "refused")
        return {name: getattr(self.machine.counters, f"prefetch_{name}") for name in names}


def open_cache(config: Config) -> ExpertCache:
    """A fresh, empty cache."""
    return ExpertCache(config)
