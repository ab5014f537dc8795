"""Select: the one atomic step that judges, leases, touches and makes room for an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from types import MappingProxyType

import attrs

from expertcache_spec.contracts import ensure
from expertcache_spec.errors import EventTooLarge, InvalidModel, MustWait, NoVictim, WrongState
from expertcache_spec.model import Key
from expertcache_spec.residency.room import UNLIMITED, Partition
from expertcache_spec.residency.settings import Selection
from expertcache_spec.residency.state import Flight, Lease, State
from expertcache_spec.trace import Event

NO_STAMPS: Mapping[Key, int] = MappingProxyType({})
"""For a policy that keeps an order instead."""


@attrs.define(slots=False)
class Selecting(State):
    """The machine's selecting half."""

    @ensure(
        lambda event, result: sorted(result.hits + result.misses + result.bypassed) == sorted(event.keys), "XC-RES-002"
    )
    @ensure(lambda event, result: set(event.keys).isdisjoint(result.victims), "XC-RES-005")
    @ensure(lambda self, result: self.leases[result.ticket].selection is result, "XC-RES-004")
    def select(self, event: Event) -> Selection:
        """Judge, lease, touch and make room for one event (XC-RES-001).

        Raises `InvalidModel` for a key that the model does not have, `EventTooLarge` under overflow `error`,
        `MustWait` or `NoVictim` when others hold the room: all before anything has changed. Raises `InvalidPolicy`
        where the policy names a victim that may not leave; the machine is of no use after that.
        """
        routed, experts = self.geometry.routed, self.geometry.experts
        if event.layer not in routed or max(map(max, event.rows)) >= experts:
            raise InvalidModel(
                f"layer {event.layer} experts {[key.expert for key in event.keys]}",
                where="event",
                cure=f"the model routes layers {routed[0]} to {routed[-1]}, experts 0 to {experts - 1}",
            )
        return self._admit(event, event.keys, first=True)

    def resume(self, selection: Selection) -> Selection:
        """Select the next wave of an event, after the release of its earlier wave (XC-RES-013).

        Hits and misses were judged and counted by `select`; a wave reads what is still absent of the deferred keys,
        and its `hits` are those that somebody else has brought in meanwhile. Raises `WrongState` when nothing is
        deferred, the earlier wave is leased or resumed already, or the contents were reset; and what `select` raises.
        """
        if selection.ticket in self.leases or selection.ticket not in self.unfinished:
            raise WrongState(
                "no wave to resume",
                where=f"ticket {selection.ticket}",
                cure="release the earlier wave first; resume each wave once and only while keys are deferred",
            )
        wave = self._admit(selection.event, selection.deferred, first=False)
        self.unfinished.discard(selection.ticket)
        return wave

    def _admit(self, event: Event, keys: tuple[Key, ...], *, first: bool) -> Selection:
        """One wave: all that a select does, for `keys` of the event."""
        part, flights = self.part_of(event.layer), self.flights
        resident = part.resident
        hits = [key for key in keys if key in resident]
        absent = [key for key in keys if key not in resident] if len(hits) < len(keys) else []
        joined = [key for key in absent if key in flights] if flights else []
        wanted = [key for key in absent if key not in flights] if joined else absent
        declined: list[Key] = []
        if first and wanted and not part.is_zero:
            chosen = self.admission.wants(wanted)
            if len(chosen) < len(wanted):
                declined, wanted = [key for key in wanted if key not in chosen], chosen
        take, rule = self._plan(part, event, hits + joined, len(wanted)) if wanted else (0, "")
        rest = tuple(wanted[take:])
        bypassed, deferred = ((), rest) if rule == "waves" else (rest, ())
        misses = [key for key in absent if key not in bypassed] if bypassed else absent
        if first:
            part.policy.begin(event)
            self.admission.begin(event)
        selection = self._serve(part, event, keys, hits, joined, wanted[:take], misses, bypassed, deferred, declined)
        if first:
            self.ledger.selected(selection)
        if self.ledger.speculative:
            self.ledger.used(selection)
        for key in selection.victims:
            self.ledger.evicted(key, event)
        for key in bypassed:  # in a later wave the key has been counted as a miss already: one that is not kept
            self.ledger.read(event, key, self.size(event.layer), refused=not first)
        for key in selection.refused:
            self.ledger.read(event, key, self.size(event.layer), refused=True)
        return selection

    def _plan(self, part: Partition, event: Event, keep: list[Key], wanted: int) -> tuple[int, str]:
        """How many of the `wanted` records this wave may load, and the rule that takes the rest."""
        settings, size = self.settings, self.size(event.layer)
        retain = settings.room == "retain"
        if part.is_zero:
            return 0, "bypass"
        free = UNLIMITED if retain else part.room_beside_held(size, keep)
        if settings.room != "reserve" and part.over():
            free = 0
        if wanted <= free:
            return wanted, ""
        where = f"stream {event.stream} pass {event.pass_index} layer {event.layer}"
        alone = UNLIMITED if retain else part.room_beside_pins(size, keep) - len(keep)
        if wanted > alone and self.admission.whole:
            return 0, "bypass"
        if wanted > alone:
            # A later wave need not hold this one's hits, but every wave finds the pins.
            servable = settings.overflow == "bypass" or (
                settings.overflow == "waves" and part.room_beside_pins(size) > 0
            )
            if not servable:
                raise EventTooLarge(
                    f"{len(keep) + wanted} distinct experts, room for {len(keep) + max(0, alone)}",
                    where=where,
                    cure="raise the budget, unpin, or choose overflow bypass or waves",
                )
            if settings.overflow == "waves" and (free or keep):
                return free, "waves"
            wanted = max(0, alone)
        if wanted > free and settings.no_victim != "bypass":
            raise (MustWait if settings.no_victim == "wait" else NoVictim)(
                f"room for {free} of {wanted} records: the rest is leased, in flight or pinned",
                where=where,
                cure="release an executed event, then select again",
            )
        return min(wanted, free), "bypass"

    def _serve(
        self, part: Partition, event: Event, keys: Sequence[Key], hits: list[Key], joined: list[Key],
        wanted: list[Key], misses: list[Key], bypassed: tuple[Key, ...], deferred: tuple[Key, ...],
        declined: list[Key],
    ) -> Selection:  # fmt: skip
        """Lease, touch, choose every victim, reserve, insert. Nothing here can fail but a broken policy."""
        policy, keep = part.policy, hits + joined if joined else hits
        order = self._touch_order(event, keys, hits)
        stamps = self._stamps(order) if policy.stamped else NO_STAMPS
        for key in keep:
            part.hold(key)
        policy.hits(keep, stamps)
        policy.misses(wanted)
        admitted, refused, victims = self._make_room(part, wanted)
        policy = part.policy  # another object where a question that came to nothing was taken back
        if declined:
            refused = [key for key in misses if key in declined or key in refused]
        self.usage.keep_peak()
        self._tickets = ticket = self._tickets + 1
        policy.inserts(admitted, stamps)
        for key in admitted:
            part.hold(key)  # by the lease
            part.hold(key)  # by the read in flight
            self.flights[key] = Flight([ticket], "demand")
        for key in joined:
            self.flights[key].tickets.append(ticket)
        held = keep + admitted
        policy.settle(order if len(held) == len(order) else [key for key in order if key in held])
        selection = Selection(
            ticket,
            event,
            tuple(hits),
            tuple(misses),
            tuple(admitted),
            tuple(victims),
            tuple(joined),
            tuple(refused),
            bypassed,
            deferred,
        )
        if deferred:
            self.unfinished.add(ticket)
        self.leases[ticket] = Lease(selection, part, held, len(joined) + len(admitted))
        self.recent = (part,)
        return selection

    def _touch_order(self, event: Event, keys: Sequence[Key], hits: Sequence[Key]) -> Sequence[Key]:
        """The wave's keys, the one to be the most recent last (XC-RES-006, XC-RES-007)."""
        order = keys
        if event.has_repeats and self.settings.repeats == "promote":
            wave = set(keys)
            order = [key for key in dict.fromkeys(reversed(event.selections())) if key in wave][::-1]
        if self.settings.touch == "hits_first" and hits and len(hits) < len(keys):
            order = sorted(order, key=lambda key: key not in hits)
        return order

    def _stamps(self, order: Sequence[Key]) -> dict[Key, int]:
        """A fresh stamp for each key, rising in that order."""
        return dict(zip(order, count(self.stamp(len(order)))))

    def _make_room(self, part: Partition, wanted: Sequence[Key]) -> tuple[list[Key], list[Key], list[Key]]:
        """Admitted, refused and victims for `wanted`, in router order; admitted keys have their room reserved."""
        admitted: list[Key] = []
        refused: list[Key] = []
        victims: list[Key] = []
        for key in wanted:
            size = self.size(key.layer)
            going = self._going(part, key, size) if self.settings.room == "reserve" else []
            if going is None:
                refused.append(key)
                continue
            for victim in going:
                self.drop(part, victim)
            victims += going
            part.take(key, size)
            admitted.append(key)
        return admitted, refused, victims

    def _going(self, part: Partition, key: Key, size: int) -> list[Key] | None:
        """The victims that make room for `key`; None when admission would rather keep one of them (XC-ADMIT-002)."""
        going: list[Key] = []
        freed = 0
        if not part.over(1, size):
            return going
        if not self.admission.evicts:
            return None
        before = self.before_asking(part.policy)
        while part.over(1 - len(going), size - freed):
            held = part.holds if not going else {*part.holds, *going}
            victim = part.ask(held, key)
            assert victim is not None, "the plan has counted the evictable records"
            if not self.admission.takes(part.policy, key, victim):
                part.policy = before
                return None
            going.append(victim)
            freed += part.size_of(victim)
        return going
