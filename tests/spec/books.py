"""A second residency machine, written with sets and no policy: what must happen, short of who is the victim.

`Watched` drives the real machine in both forms of its policy through one transition at a time, and holds each answer
against these books: who is resident, who is protected, what is in use, which refusal is due. The victims it takes as
told, after checking that each was evictable and that no fewer would have done.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Any

import attrs
import pytest
from sortedcontainers import SortedDict, SortedList

from expertcache_spec import errors
from expertcache_spec.eviction import make
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.residency import Residency, Selection, Settings, audit
from expertcache_spec.trace import Event

from .settings_of_policies import SUBJECTS

Keys = frozenset[Key]


@attrs.define
class Expected:
    """What a selection must answer, or the error it must raise."""

    hits: list[Key]
    joined: list[Key]
    wanted: list[Key]
    reads: int = 0
    deferred: bool = False
    refusal: type[errors.ExpertCacheError] | None = None


@attrs.define
class Books:
    """Who is resident, in flight, leased and pinned, and what is allowed; recomputed from sets whenever asked."""

    geometry: Geometry
    settings: Settings
    budget: Budget
    resident: set[Key] = attrs.field(factory=set)
    flying: dict[Key, list[int]] = attrs.field(factory=dict)
    leases: dict[int, tuple[int, set[Key]]] = attrs.field(factory=dict)
    pins: set[Key] = attrs.field(factory=set)

    def part(self, layer: int) -> int:
        return -1 if self.settings.scope == "global" else layer

    def among(self, keys: Iterable[Key], part: int) -> Keys:
        return frozenset(key for key in keys if self.part(key.layer) == part)

    def used(self, part: int) -> Keys:
        return self.among([*self.resident, *self.flying], part)

    def protected(self, part: int) -> Keys:
        leased = [key for _, keys in self.leases.values() for key in keys]
        return self.among([*leased, *self.flying, *self.pins], part)

    def evictable(self, part: int) -> Keys:
        return self.among(self.resident, part) - self.protected(part)

    def pending(self, ticket: int) -> int:
        return sum(ticket in waiters for waiters in self.flying.values())

    def bytes_of(self, keys: Iterable[Key]) -> int:
        sizes = self.geometry.record_bytes
        return 0 if sizes is None else sum(sizes[key.layer] for key in keys)

    def limits(self, part: int, budget: Budget | None = None) -> Budget:
        return (budget or self.budget).split(self.settings.scope, self.geometry)[part]

    def fits(self, keys: Iterable[Key], part: int, budget: Budget | None = None) -> bool:
        """Whether these records fit into the partition together."""
        keys, limits = list(keys), self.limits(part, budget)
        return (limits.slots is None or len(keys) <= limits.slots) and (
            limits.bytes is None or self.bytes_of(keys) <= limits.bytes
        )

    def over(self, part: int) -> bool:
        return not self.fits(self.used(part), part)

    def room(self, beside: Iterable[Key], wanted: list[Key], part: int) -> int:
        """How many of `wanted`, which are of one layer, fit beside those keys."""
        beside = list(beside)
        return max((n for n in range(len(wanted) + 1) if self.fits([*beside, *wanted[:n]], part)), default=0)

    def expect(self, layer: int, keys: Iterable[Key]) -> Expected:
        """What selecting these keys must do: XC-RES-001, 012, 013, 014, 024 and 027, from the sets alone."""
        part, chosen = self.part(layer), self.settings
        hits = [key for key in keys if key in self.resident]
        joined = [key for key in keys if key in self.flying]
        wanted = [key for key in keys if key not in self.resident and key not in self.flying]
        answer, limits = Expected(hits, joined, wanted), self.limits(part)
        if not wanted or limits.slots == 0 or limits.bytes == 0:
            return answer
        pins, own = self.among(self.pins, part), {*hits, *joined}
        now = self.room(self.protected(part) | own, wanted, part)
        alone = self.room(pins | own, wanted, part)
        if chosen.room == "retain":
            now = alone = len(wanted)
        if chosen.room != "reserve" and self.over(part):
            now = 0
        answer.reads = now
        if len(wanted) <= now:
            return answer
        if len(wanted) > alone:
            hopeless = chosen.overflow == "waves" and not self.room(pins, wanted, part)
            if chosen.overflow == "error" or hopeless:
                answer.refusal = errors.EventTooLarge
                return answer
            if chosen.overflow == "waves" and (now or own):
                answer.deferred = True
                return answer
        if min(len(wanted), alone) > now and chosen.no_victim != "bypass":
            answer.refusal = errors.MustWait if chosen.no_victim == "wait" else errors.NoVictim
        return answer


UNCHANGING = (Event, Geometry, Budget, Settings, Selection)


def frozen(value: Any) -> Any:
    """A deep copy of the state that compares by content and order; functions by identity."""
    kind = type(value)
    if kind in UNCHANGING:
        return value
    if kind in (dict, OrderedDict, SortedDict):
        return tuple([(key, frozen(item)) for key, item in value.items()])
    if kind in (list, deque, tuple, SortedList):
        return tuple(map(frozen, value))
    if kind is set:
        return frozenset(value)
    if attrs.has(kind):
        return kind.__name__, tuple([frozen(getattr(value, field.name)) for field in attrs.fields(kind)])
    return value


@attrs.define(slots=False)
class Watched:
    """The machine in both forms, and the books; every method is one transition of all three."""

    geometry: Geometry
    budget: Budget
    policy: str
    settings: Settings
    events: list[Event]
    books: Books = attrs.field(init=False)
    machine: Residency = attrs.field(init=False)
    twin: Residency = attrs.field(init=False)
    coming: dict[int, deque[Event]] = attrs.field(init=False)
    selections: dict[int, Selection] = attrs.field(factory=dict, init=False)
    unfinished: list[Selection] = attrs.field(factory=list, init=False)
    peak: tuple[int, int] = attrs.field(default=(0, 0), init=False)
    fingerprint: str = attrs.field(default="", init=False)

    def __attrs_post_init__(self) -> None:
        self.machine, self.twin = (
            Residency(self.geometry, self.budget, make(SUBJECTS[self.policy], form, self.events), self.settings)
            for form in ("indexed", "declarative")
        )
        self.books = Books(self.geometry, self.settings, self.budget)
        self.coming = {layer: deque() for layer in self.geometry.routed}
        for event in self.events:
            self.coming[event.layer].append(event)

    # ------------------------------------------------------------------------------------------ checking

    def both(self, act: Callable[[Residency], Any], refusal: type[errors.ExpertCacheError] | None = None) -> Any:
        """Do it on both machines, which must answer alike; with a refusal due, both refuse and nothing changes."""
        answers = []
        for machine in (self.machine, self.twin):
            if refusal is None:
                answers.append(act(machine))
                continue
            before = frozen(machine)
            with pytest.raises(refusal) as refused:
                act(machine)
            assert refused.type is refusal
            assert frozen(machine) == before, f"changed by {refused.value!r}"
            answers.append(str(refused.value))
        assert answers[0] == answers[1]
        return answers[0]

    def check(self) -> None:
        """Everything that holds between transitions."""
        books, used = self.books, {*self.books.resident, *self.books.flying}
        slots, size = len(used), books.bytes_of(used)
        self.peak = max(self.peak[0], slots), max(self.peak[1], size)
        for machine in (self.machine, self.twin):
            assert audit(machine) == []
            assert machine.residents() == books.resident
            assert set(machine.flights) == set(books.flying)
            assert machine.pinned() == books.pins
            assert machine.leased() == {key for _, keys in books.leases.values() for key in keys}
            assert (machine.usage.slots, machine.usage.bytes) == (slots, size)
            assert (machine.counters.peak_slots, machine.counters.peak_bytes) == self.peak
            assert all(n >= 0 for row in machine.counters.rows.values() for n in attrs.astuple(row))
        for number, part in self.twin.parts.items():
            present = getattr(part.policy, "present", None)  # kept by rules that are an order over the recorded past
            assert present is None or set(present) == books.used(number)
            assert books.fits(books.among(books.pins, number), number)
            idle = not books.flying and not books.leases
            assert not (idle and books.over(number)), "idle and over budget"

    def evicted(self, part: int, victims: Iterable[Key], *, due: bool) -> None:
        """Each was evictable, each was needed, and where eviction is due it went on as long as it could."""
        books, gone = self.books, set(victims)
        assert not gone or due
        assert gone <= books.evictable(part)
        books.resident -= gone
        assert not gone or any(not books.fits(books.used(part) | {last}, part) for last in gone), "needless victim"
        assert not (due and books.over(part) and books.evictable(part))

    # ------------------------------------------------------------------------------------------ transitions

    def select(self, layer: int) -> None:
        """Select the next event of that layer; one that cannot ever fit is given up, unless its policy must see it."""
        event = self.coming[layer][0]
        expected = self.books.expect(layer, event.keys)
        self.alive(expected)
        selection = self.both(lambda machine: machine.select(event), expected.refusal)
        if expected.refusal is None:
            self.coming[layer].popleft()
            self.selected(selection, event.keys, expected, first=True)
        elif expected.refusal is errors.EventTooLarge and self.policy != "belady":
            self.coming[layer].popleft()

    def resume(self, selection: Selection) -> None:
        """Select the next wave."""
        layer, ready = selection.event.layer, selection in self.unfinished and selection.ticket not in self.books.leases
        expected = self.books.expect(layer, selection.deferred) if ready else Expected([], [], [])
        self.alive(expected)
        refusal = expected.refusal if ready else errors.WrongState
        wave = self.both(lambda machine: machine.resume(selection), refusal)
        if refusal is None:
            self.unfinished.remove(selection)
            self.selected(wave, selection.deferred, expected, first=False)

    def alive(self, expected: Expected) -> None:
        """Nobody waits for a release that will not come, and every wave serves something (XC-RES-024, XC-RES-013)."""
        if not self.books.leases and not self.books.flying:
            assert expected.refusal not in (errors.MustWait, errors.NoVictim)
        assert not expected.deferred or expected.hits or expected.joined or expected.reads

    def selected(self, selection: Selection, keys: tuple[Key, ...], expected: Expected, *, first: bool) -> None:
        """Hold a selection against what was expected of it, and book it."""
        books, part = self.books, self.books.part(selection.event.layer)
        taken, rest = expected.wanted[: expected.reads], tuple(expected.wanted[expected.reads :])
        assert (list(selection.hits), list(selection.joined)) == (expected.hits, expected.joined)
        assert [key for key in taken if key not in selection.refused] == list(selection.reads)
        assert set(selection.refused) <= set(taken)
        assert not selection.refused or self.settings.admission == "refusable"
        assert (selection.bypassed, selection.deferred) == (((), rest) if expected.deferred else (rest, ()))
        assert selection.misses == tuple(k for k in keys if k not in books.resident and k not in selection.bypassed)
        kept = {*expected.hits, *expected.joined, *selection.reads}
        assert not selection.victims or self.settings.room == "reserve"
        for number, victim in enumerate(selection.victims):
            assert victim in books.evictable(part)
            assert victim not in kept
            going = set(selection.victims[:number])
            assert not books.fits((books.used(part) - going) | set(selection.reads), part), "needless victim"
        books.resident.difference_update(selection.victims)
        if selection.reads and self.settings.room == "reserve":
            assert books.fits(books.used(part) | set(selection.reads), part), "over budget"
        for key in selection.reads:
            books.flying[key] = [selection.ticket]
        for key in selection.joined:
            books.flying[key].append(selection.ticket)
        books.leases[selection.ticket] = part, kept
        self.selections[selection.ticket] = selection
        if selection.deferred:
            self.unfinished.append(selection)

    def land(self, key: Key, *, well: bool) -> None:
        """Complete or fail a read, perhaps one that was never started."""
        books, part = self.books, self.books.part(key.layer)
        refusal = None if key in books.flying else errors.WrongState
        act = (lambda machine: machine.complete(key)) if well else (lambda machine: machine.fail(key))
        progress = self.both(act, refusal)
        if refusal:
            return
        waiters = books.flying.pop(key)
        assert progress.tickets == tuple(waiters)
        if well:
            books.resident.add(key)
        else:
            for ticket in waiters:
                books.leases[ticket][1].remove(key)
        if waiters:
            due = self.settings.room == "trim" and any(not books.pending(ticket) for ticket in waiters)
        else:
            open_here = any(where == part for where, _ in books.leases.values())
            due = well and (self.settings.room == "reserve" or not open_here)
        self.evicted(part, progress.victims, due=due)

    def release(self, ticket: int) -> None:
        """End a lease, perhaps one that may not end."""
        books = self.books
        legal = ticket in books.leases and not books.pending(ticket)
        ended = self.both(lambda machine: machine.release(ticket), None if legal else errors.WrongState)
        if legal:
            part, _ = books.leases.pop(ticket)
            assert not ended.refused or self.settings.room == "retain"
            assert set(ended.refused) <= set(self.selections[ticket].reads)
            self.evicted(part, [*ended.refused, *ended.victims], due=True)

    def pin(self, key: Key) -> None:
        """Pin any key."""
        books, part = self.books, self.books.part(key.layer)
        refusal: type[errors.ExpertCacheError] | None = None
        if key not in books.resident:
            refusal = errors.WrongState
        elif not books.fits(books.among({*books.pins, key}, part), part):
            refusal = errors.InvalidBudget
        self.both(lambda machine: machine.pin(key), refusal)
        if refusal is None:
            books.pins.add(key)

    def unpin(self, key: Key) -> None:
        """Unpin any key."""
        refusal = None if key in self.books.pins else errors.WrongState
        self.both(lambda machine: machine.unpin(key), refusal)
        self.books.pins.discard(key)

    def is_key(self, key: Key) -> bool:
        return key.layer in self.geometry.routed and 0 <= key.expert < self.geometry.experts

    def seed(self, keys: list[Key]) -> None:
        """Seed any list of keys, those that no model has included."""
        books, reads, present, ignored = self.books, [], 0, 0
        for key in keys:
            part = books.part(key.layer)
            if not self.is_key(key):
                ignored += 1
            elif key in books.resident or key in books.flying:
                present += 1
            elif books.fits({*books.used(part), key}, part):
                books.flying[key] = []
                reads.append(key)
        seeded = self.both(lambda machine: machine.seed(iter(keys)))
        refused = len(keys) - len(reads) - present - ignored
        assert seeded == (tuple(reads), present, ignored, refused)

    def prefetch(self, key: Key) -> None:
        """Prefetch any key."""
        books, part = self.books, self.books.part(key.layer)
        refusal = None if self.is_key(key) else errors.InvalidModel
        outcome = self.both(lambda machine: machine.prefetch(key), refusal)
        if refusal:
            return
        if key in books.resident or key in books.flying:
            assert outcome == ("resident" if key in books.resident else "in-flight")
        elif books.fits({*books.used(part), key}, part):
            assert outcome == "started"
            books.flying[key] = []
        else:
            assert outcome == "refused"

    def resize(self, budget: Budget) -> None:
        """Take another budget, perhaps one that cannot be."""
        books = self.books
        fits = budget.bytes is None or self.geometry.record_bytes is not None
        for part in budget.split(self.settings.scope, self.geometry):
            fits = fits and books.fits(books.among(books.pins, part), part, budget)
        victims = self.both(lambda machine: machine.resize(budget), None if fits else errors.InvalidBudget)
        if fits:
            books.budget = budget
            for part in self.machine.parts:
                self.evicted(part, [key for key in victims if books.part(key.layer) == part], due=True)

    def reset(self, scope: Any) -> None:
        """Reset counters, history or contents."""
        busy = scope == "contents" and (self.books.leases or self.books.flying)
        self.both(lambda machine: machine.reset(scope), errors.StillInUse if busy else None)
        if scope == "counters":
            self.peak = 0, 0
        elif scope == "contents" and not busy:
            self.cleared()

    def rebind(self, fingerprint: str) -> None:
        """Bind to that model."""
        other = fingerprint != self.fingerprint
        busy = other and (self.books.leases or self.books.flying)
        self.both(lambda machine: machine.rebind(fingerprint), errors.StillInUse if busy else None)
        if other and not busy:
            self.fingerprint = fingerprint
            self.cleared()

    def cleared(self) -> None:
        """Everything is gone, and so is every wave that was to come."""
        self.books.resident.clear()
        self.books.pins.clear()
        self.unfinished.clear()
