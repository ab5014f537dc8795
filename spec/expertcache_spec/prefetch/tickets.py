r"""Tickets: the life of a prediction, from the queue to its end, and what becomes of each, counted.

    queued -> reading -> ready -> adopted      useful: it was there when demand came
       |         |         \-> discarded       wasted: nobody came
       |         |-> late                      demand came first and joined the read
       |         \-> failed
       |-> overtaken                           demand came before the read had begun and does it itself
       \-> cancelled                           no room, resident by then, or its target has passed: nothing was read

Time is counted in events. A tick is the time of one event; in it at most `width` reads are in service: the event's own
first, then tickets in the order they were taken. A ticket is ready when it has been in service for `latency` ticks;
with latency 0 as soon as it is taken, without a lane: so it is in simulators.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal

import attrs

from expertcache_spec.errors import WrongState
from expertcache_spec.model import Key
from expertcache_spec.prefetch.predictors import Target

State = Literal["queued", "reading", "ready", "adopted", "late", "overtaken", "cancelled", "discarded", "failed"]


@attrs.define
class PrefetchCounts:
    """What the predictions came to; all integers, bytes where they say so.

    predictions: keys named for targets, repeats included. duplicate: resident or under way already. refused: no room in
    the queue or the staging cap. cancelled, overtaken: ended before a read began, the latter by demand. queued: tickets
    whose read has not begun. issued: reads begun. useful, late, wasted, failed: how those ended. outstanding: issued,
    and not ended. bytes: read or being read. bytes_wasted: of the wasted. evicted: residents that prefetches
    displaced. waits: events that waited for a speculative read to make room. targets: events that something was
    predicted for. predicted: keys expected of them. routes: keys that they asked for. routes_recalled: of those,
    predicted. missing: keys that would not have been there without prefetch. missing_recalled: of those, predicted.
    peak_slots, peak_bytes: the most that staging was charged.
    """

    predictions: int = 0
    duplicate: int = 0
    refused: int = 0
    cancelled: int = 0
    overtaken: int = 0
    issued: int = 0
    useful: int = 0
    late: int = 0
    wasted: int = 0
    failed: int = 0
    bytes: int = 0
    bytes_wasted: int = 0
    evicted: int = 0
    waits: int = 0
    targets: int = 0
    predicted: int = 0
    routes: int = 0
    routes_recalled: int = 0
    missing: int = 0
    missing_recalled: int = 0
    peak_slots: int = 0
    peak_bytes: int = 0
    outstanding: int = 0
    queued: int = 0

    def recall(self, expected: Collection[Key], routes: Collection[Key], missing: Collection[Key]) -> None:
        """Book a target that has come: what was expected of it, what it asked for, what of that was not resident.

        Recall of routes is not recall of misses, so both are kept (XC-PREFETCH-013).
        """
        self.targets += 1
        self.predicted += len(expected)
        self.routes += len(routes)
        self.routes_recalled += sum(key in expected for key in routes)
        self.missing += len(missing)
        self.missing_recalled += sum(key in expected for key in missing)

    def broken(self) -> list[str]:
        """The ids of the identities that do not hold; empty after any run (XC-PREFETCH-012)."""
        ended = self.useful + self.late + self.wasted + self.failed
        before = self.duplicate + self.refused + self.cancelled + self.overtaken + self.queued
        return (
            [] if self.issued == ended + self.outstanding and self.predictions == before + self.issued
            else ["XC-PREFETCH-012"]
        )  # fmt: skip


@attrs.define
class Ticket:
    """One prediction under way: its key and bytes, the events that it is for, and how long it has been in service."""

    key: Key
    size: int
    targets: set[Target]
    state: State = "queued"
    served: int = 0


END: dict[State, tuple[State, ...]] = {
    "queued": ("overtaken", "cancelled"),
    "reading": ("late", "failed", "discarded"),
    "ready": ("adopted", "discarded"),
}
"""From each state that a ticket may end in, how."""


def _unheard(ticket: Ticket) -> None:
    """Nobody waits for it."""


@attrs.define
class Tickets:
    """Every open ticket, oldest first, and the service of their reads (XC-PREFETCH-011)."""

    latency: int
    width: int
    counts: PrefetchCounts = attrs.field(factory=PrefetchCounts)
    open: dict[Key, Ticket] = attrs.field(factory=dict)

    def submit(self, key: Key, size: int, target: Target) -> Ticket:
        """A ticket joins the end of the queue. Raises `WrongState` for a key that has one."""
        if key in self.open:
            raise WrongState(f"{key} has a ticket", where="prefetch", cure="a key is read once: add a target to it")
        ticket = self.open[key] = Ticket(key, size, {target})
        self.counts.queued += 1
        return ticket

    def tick(
        self, demand: int, start: Callable[[Ticket], State | None], landed: Callable[[Ticket], None] = _unheard
    ) -> None:
        """The time of one event with that many reads on demand.

        `start` finds a home for a ticket whose read is to begin; it answers None, or how the ticket ends instead.
        `landed` hears of the tickets that have become ready: at the end of the time, in order; without latency at once.
        """
        lanes, ready = max(0, self.width - demand), list[Ticket]()
        for ticket in list(self.open.values()):
            if not lanes and self.latency:
                break
            if ticket.key not in self.open:
                continue
            if ticket.state == "queued" and not self._begin(ticket, start):
                continue
            if not self.latency and ticket.state == "reading":
                self.land(ticket.key)
                landed(ticket)
            elif ticket.state == "reading":
                lanes -= 1
                ticket.served += 1
                if ticket.served >= self.latency:
                    self.land(ticket.key)
                    ready.append(ticket)
        for ticket in ready:
            landed(ticket)

    def _begin(self, ticket: Ticket, start: Callable[[Ticket], State | None]) -> bool:
        if start(ticket) is not None:
            self.end(ticket.key, "cancelled")
            return False
        ticket.state = "reading"
        self.counts.queued -= 1
        self.counts.issued += 1
        self.counts.outstanding += 1
        self.counts.bytes += ticket.size
        return True

    def land(self, key: Key) -> None:
        """The read has ended well: the bytes are there. Raises `WrongState` unless it was under way."""
        self._in(key, "reading").state = "ready"

    def end(self, key: Key, how: State) -> Ticket:
        """Close the ticket. Raises `WrongState` for an end that its state does not have."""
        ticket = self.open.get(key)
        if ticket is None or how not in END.get(ticket.state, ()):
            found = "no ticket" if ticket is None else ticket.state
            raise WrongState(f"{key}: {found} cannot end {how}", where="prefetch", cure="see the states of a ticket")
        counts = self.counts
        if ticket.state == "queued":
            counts.queued -= 1
            counts.cancelled += how == "cancelled"
            counts.overtaken += how == "overtaken"
        else:
            counts.outstanding -= 1
            counts.useful += how == "adopted"
            counts.late += how == "late"
            counts.failed += how == "failed"
            counts.wasted += how == "discarded"
            counts.bytes_wasted += ticket.size if how == "discarded" else 0
        ticket.state = how
        return self.open.pop(key)

    def _in(self, key: Key, state: State) -> Ticket:
        ticket = self.open.get(key)
        if ticket is None or ticket.state != state:
            raise WrongState(f"{key} is not {state}", where="prefetch", cure="see the states of a ticket")
        return ticket
