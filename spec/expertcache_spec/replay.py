"""Replay: a trace through the machine, step by step, into integers that name where they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

import attrs

from expertcache_spec import SPEC_VERSION
from expertcache_spec.contracts import ENABLED as CHECKED
from expertcache_spec.errors import NeedsFuture, UnknownName, WrongState
from expertcache_spec.eviction import Card, Form, Value, card, make
from expertcache_spec.metrics import Counters, Row
from expertcache_spec.misses import Losses, Lossy, Misses
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.prefetch import Prefetch, PrefetchCounts
from expertcache_spec.prefetch.driver import Driver
from expertcache_spec.prefetch.unstamped import Unstamped
from expertcache_spec.residency import Ended, Progress, Residency, Selection, Settings, Step
from expertcache_spec.starting import Start
from expertcache_spec.trace import Event, Trace, sequential

Mode = Literal["event", "sequential"]
MODES: tuple[Mode, ...] = ("event", "sequential")


def run_event(machine: Residency, event: Event) -> Step:
    """Serve the event whole: the short way where the machine offers it, else part by part."""
    return machine.serve(event) or run_by_parts(machine, event)


class Parts(Protocol):
    """What serves an event part by part, as a `Residency` does."""

    def select(self, event: Event, /) -> Selection:
        """Lease and decide."""
        ...

    def complete(self, key: Key, /) -> Progress:
        """The record's read has ended well."""
        ...

    def release(self, ticket: int, /) -> Ended:
        """The wave has executed."""
        ...

    def resume(self, selection: Selection, /) -> Selection:
        """The next wave, after the release of the one before."""
        ...


def run_by_parts(machine: Parts, event: Event) -> Step:
    """Select, complete every read, those that prefetches began included, release; wave after wave where served so."""
    selection = first = machine.select(event)
    victims: list[Key] = list(first.victims)
    refused: list[Key] = list(first.refused)
    while True:
        for key in (*selection.joined, *selection.reads):
            victims += machine.complete(key).victims
        ended = machine.release(selection.ticket)
        victims += ended.victims
        refused += ended.refused
        if not selection.deferred:
            return Step(first.hits, first.misses, tuple(victims), first.bypassed, tuple(refused))
        selection = machine.resume(selection)
        victims += selection.victims
        refused += selection.refused


@attrs.frozen(slots=False)
class Manifest:
    """Where a result comes from (XC-REPLAY-002): enough to run it again and to refuse an unlike comparison."""

    trace: str
    trace_sha256: str
    spec_version: str
    policy: str
    parameters: dict[str, Value]
    form: str
    replay: str
    slots: int | None
    bytes: int | None
    settings: Settings
    tie_rule: str = "(layer, expert), after the policy's own order"
    optimum: str | None = None
    prefetch: dict[str, Any] | None = None
    misses: dict[str, Any] | None = None
    start: dict[str, Any] | None = None


@attrs.frozen(slots=False)
class Result:
    """Counters, manifest and warnings of one replay; ratios are for the reader to derive (XC-REPLAY-004)."""

    counters: Counters
    manifest: Manifest
    warnings: tuple[str, ...] = ()
    prefetch: PrefetchCounts | None = None
    losses: Losses | None = None

    @property
    def total(self) -> Row:
        """All counts in one row."""
        return self.counters.total()


@attrs.define(slots=False)
class Replay:
    """One replay: a fresh machine and the events to feed it; iterate for its steps, then ask for `result`.

    Raises `UnknownName`, `NeedsFuture`, `InvalidBudget` on construction, and while iterating what `select` raises.
    It runs once: `WrongState` when iterated again.
    """

    trace: Trace
    policy: str | Card
    budget: Budget
    settings: Settings = attrs.field(factory=Settings)
    mode: Mode = "event"
    form: Form = "indexed"
    parameters: Mapping[str, Value] = attrs.field(factory=dict)
    prefetch: Prefetch | None = None
    misses: Misses | None = None
    start: Start | None = None
    machine: Residency = attrs.field(init=False)
    events: Sequence[Event] = attrs.field(init=False)
    driver: Driver | None = attrs.field(default=None, init=False)
    lossy: Lossy | None = attrs.field(default=None, init=False)
    _begun: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        if self.mode not in MODES:
            raise UnknownName(f"replay mode {self.mode!r}", where="replay", cure=f"one of {', '.join(MODES)}")
        self.card.complete(self.parameters)
        self.events = self.trace.events if self.mode == "event" else tuple(sequential(self.trace.events))
        if self.misses is not None and self.misses.is_lossy:
            self._check_lossy()
            self.lossy = Lossy(self.misses, self.trace.geometry)
        policy = make(self.policy, self.form, self.events, self.parameters)
        if self.prefetch is not None and not self.prefetch.stamps:
            stamped, policy = policy, lambda: Unstamped(stamped())
        self.machine = Residency(self.trace.geometry, self.budget, policy, self.settings)
        if self.start is not None:
            self.start.apply(self.machine)
        if self.prefetch is not None:
            self.driver = Driver(self.machine, self.prefetch, self.events, run_event)

    def _check_lossy(self) -> None:
        if self.mode != "event":
            raise UnknownName("a lossy mode in sequential replay", where="misses", cure="replay whole events")
        if self.card.offline:
            raise NeedsFuture(
                f"policy {self.card.name} knows what the trace asks for, not what a lossy mode leaves of it",
                where="misses",
                cure="an online policy, or mode fetch",
            )

    @property
    def card(self) -> Card:
        """The policy's card."""
        return card(self.policy)

    def __iter__(self) -> Iterator[Step]:
        if self._begun:
            raise WrongState("this replay has run", where="replay", cure="make a new Replay; its machine starts cold")
        self._begun, machine = True, self.machine
        if self.driver is None and self.lossy is None:
            steps = map(machine.serve, self.events) if CHECKED else machine.serve_each(self.events)
            for event, step in zip(self.events, steps, strict=True):
                yield step or run_by_parts(machine, event)
        else:
            for event in self.events:
                yield self._serve(event)

    def _serve(self, event: Event) -> Step:
        """One event with its losses and prefetches."""
        driver, served, lost = self.driver, event, list[Key]()
        if self.lossy is not None:
            resident = self.machine.part_of(event.layer).resident
            served, lost = self.lossy.apply(
                event, lambda key: key in resident or (driver is not None and driver.is_ready(key))
            )
        step = run_event(self.machine, served) if driver is None else driver.serve(served)
        if lost:
            self.machine.ledger.not_served(event, lost, sum(event.multiplicity(key) for key in lost))
        return step

    def result(self) -> Result:
        """The counters as they stand, with the manifest and the warnings."""
        found = self.card
        manifest = Manifest(
            self.trace.name,
            self.trace.fingerprint,
            SPEC_VERSION,
            found.name,
            found.complete(self.parameters),
            self.form,
            self.mode,
            self.budget.slots,
            self.budget.bytes,
            self.settings,
            optimum=self._optimum() if found.offline else None,
            prefetch=None if self.prefetch is None else self.prefetch.described(),
            misses=None if self.misses is None else self.misses.described(),
            start=None if self.start is None else self.start.described(),
        )
        said = () if self.misses is None else self.misses.warnings()
        return Result(
            self.machine.counters,
            manifest,
            (*said, *warnings_for(self.trace.geometry, self.budget, self.settings)),
            None if self.driver is None else self.driver.counts,
            None if self.lossy is None else self.lossy.losses,
        )

    def _optimum(self) -> str:
        """Which of the optima that share Belady's name this is."""
        unit, refusable = "event" if self.mode == "event" else "access", self.settings.admission == "refusable"
        if not refusable and self.settings.admission != "always":
            return f"belady, admission {self.settings.admission}, per {unit}: no optimum"
        if self.settings.room == "retain" or (refusable and unit == "access"):
            return f"belady, bypass admission, per {unit}"
        if refusable:
            return "belady, refusable admission, per event: between bypass and forced, no optimum"
        return f"belady, forced admission, per {unit}"


def replay(
    trace: Trace,
    policy: str | Card,
    budget: Budget,
    settings: Settings | None = None,
    *,
    mode: Mode = "event",
    form: Form = "indexed",
    parameters: Mapping[str, Value] | None = None,
    prefetch: Prefetch | None = None,
    misses: Misses | None = None,
    start: Start | None = None,
    watch: Callable[[Iterable[Step]], Iterable[Step]] = iter,
) -> Result:
    """Replay the whole trace and return its result; `watch` may wrap the steps, to draw progress or to stop."""
    run = Replay(trace, policy, budget, settings or Settings(), mode, form, parameters or {}, prefetch, misses, start)
    for _ in watch(run):
        pass
    return run.result()


def warnings_for(geometry: Geometry, budget: Budget, settings: Settings) -> tuple[str, ...]:
    """What the user must hear before trusting a hit rate at this budget (XC-MODEL-007)."""
    found = []
    if budget.is_zero:
        return ("capacity 0: every lookup is bypassed and nothing is kept",)
    if geometry.record_bytes is None:
        found.append("record size unknown: bytes are not counted; state the bytes of one record")
    if settings.scope == "layer":
        low = [
            layer
            for layer, share in budget.split("layer", geometry).items()
            if _slots(share, geometry, layer) < geometry.top_k
        ]
        if low:
            found.append(
                f"quota below top_k = {geometry.top_k} in {len(low)} of {len(geometry.routed)} layers: they thrash"
            )
    else:
        found += _cliff(geometry, budget)
    return tuple(found)


def _cliff(geometry: Geometry, budget: Budget) -> list[str]:
    """The warning about a budget below one token cycle; whether hits are exactly 0 there says XC-EVICT-004."""
    limits = [(budget.slots, geometry.token_cycle_slots, geometry.top_k)]
    cycle = f"{geometry.token_cycle_slots} records"
    if geometry.record_bytes is not None:
        event = geometry.top_k * max(map(geometry.size, geometry.routed))
        limits.append((budget.bytes, geometry.token_cycle_bytes, event))
        cycle += f", {geometry.token_cycle_bytes} bytes"
    lacking = [(whole - have, event) for have, whole, event in limits if have is not None and have < whole]
    if not lacking:
        return []
    hits = "exactly 0" if any(lack >= event for lack, event in lacking) else "next to nothing"
    return [f"budget below one token cycle ({cycle}): a global LRU or FIFO hits {hits} on decode of full rows"]


def _slots(share: Budget, geometry: Geometry, layer: int) -> int:
    slots = share.slots if share.slots is not None else geometry.experts
    return slots if share.bytes is None else min(slots, share.bytes // geometry.size(layer))


def as_dict(result: Result) -> dict[str, Any]:
    """The result as plain data, in the order and under the names that `expertcache replay --json` prints."""
    total = result.total
    known = result.manifest.bytes is not None or max(total.bytes_read, result.counters.peak_bytes) > 0
    head = {name: getattr(total, name) for name in ("lookups", "hits", "misses", "evictions")}
    head["bytes_read"] = total.bytes_read if known else None
    head["peak_bytes"] = result.counters.peak_bytes if known else None
    head |= {name: getattr(total, name) for name in ("collisions", "reloads")}
    return {
        **head,
        "peak_slots": result.counters.peak_slots,
        **{name: value for name, value in attrs.asdict(total).items() if name not in head},
        "per_layer": {str(layer): attrs.asdict(row) for layer, row in result.counters.per_layer().items()},
        "per_phase": {str(phase): attrs.asdict(row) for phase, row in result.counters.per_phase().items()},
        **({} if result.prefetch is None else {"prefetch": attrs.asdict(result.prefetch)}),
        **({} if result.losses is None else {"losses": attrs.asdict(result.losses)}),
        "warnings": list(result.warnings),
        "manifest": attrs.asdict(result.manifest),
    }
