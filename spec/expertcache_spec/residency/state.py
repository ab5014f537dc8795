"""The state of the machine, and what may be looked at."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cached_property
from typing import Literal

import attrs

from expertcache_spec.admission import Admission
from expertcache_spec.admission import admission as admission_of
from expertcache_spec.admission import make as make_admission
from expertcache_spec.errors import InvalidBudget, UnknownName
from expertcache_spec.eviction import POLICIES
from expertcache_spec.eviction.base import Policy
from expertcache_spec.metrics import Counters
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.residency.ledger import Ledger
from expertcache_spec.residency.room import Partition, Usage
from expertcache_spec.residency.settings import Selection, Settings

Origin = Literal["demand", "seed", "prefetch"]


@attrs.define
class Lease:
    """One selected event until its release: the keys held for it and how many of their reads are pending.

    own: the keys that its own reads have published, as far as the present counters know of it.
    """

    selection: Selection
    part: Partition
    held: list[Key]
    pending: int
    own: set[Key] = attrs.field(factory=set)


@attrs.define
class Flight:
    """One read under way: the tickets that wait for it, and what started it."""

    tickets: list[int]
    origin: Origin


@attrs.define(slots=False)
class State:
    """Everything the machine knows; the transitions are in the subclasses.

    `policy` is a factory of fresh policies (`eviction.make`); `fingerprint` names the model whose records are held;
    `epoch` counts the times the contents became invalid. Raises `InvalidBudget` for a byte budget over records of
    unknown size, `UnknownName` for an admission under a room, or with a policy, for which it is undefined.
    """

    geometry: Geometry
    budget: Budget
    policy: Callable[[], Policy]
    settings: Settings = attrs.field(factory=Settings)
    fingerprint: str = ""
    epoch: int = attrs.field(default=0, init=False)
    admission: Admission = attrs.field(init=False)
    ledger: Ledger = attrs.field(init=False)
    usage: Usage = attrs.field(init=False)
    parts: dict[int, Partition] = attrs.field(factory=dict, init=False)
    flights: dict[Key, Flight] = attrs.field(factory=dict, init=False)
    leases: dict[int, Lease] = attrs.field(factory=dict, init=False)
    unfinished: set[int] = attrs.field(factory=set, init=False)
    """The tickets of waves whose event still has keys deferred."""
    recent: tuple[Partition, ...] = attrs.field(default=(), init=False)
    """The partitions that the latest transition touched: what the O(1) invariants look at."""
    _clock: int = attrs.field(default=0, init=False)
    _tickets: int = attrs.field(default=0, init=False)
    _occupancy_then: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.admission = make_admission(self.settings.admission)
        self.ledger = Ledger(Counters())
        self.usage = Usage(self.ledger.counters)
        for layer, share in self._shares(self.budget).items():
            self.parts[layer] = Partition(self.policy(), self.usage, share.slots, share.bytes)
            self._tell_capacity(layer)
        self._check_admission()

    def _tell_capacity(self, layer: int) -> None:
        """Tell a partition's policy how many records fit; bytes count as records of average size."""
        part, sizes = self.parts[layer], self.geometry.record_bytes
        layers = self.geometry.routed if layer < 0 else (layer,)
        limits = [] if part.slots is None else [part.slots]
        if part.bytes is not None and sizes is not None:
            limits.append(part.bytes * len(layers) // sum(sizes[each] for each in layers))
        part.policy.set_capacity(min(limits))

    def _check_admission(self) -> None:
        card, _ = admission_of(self.settings.admission)
        room, reason, cure = self.settings.room, "", ""
        if card.needs and not next(iter(self.parts.values())).policy.can_refuse:
            reason = "a policy that cannot refuse"
            able = ", ".join(name for name, each in POLICIES.items() if each.can_refuse)
            cure = f"a policy that can: {able}; or admission always"
        if room not in card.rooms:
            serves = {"trim": "has loaded the event before it looks for room", "retain": "serves every event first"}
            reason = f"room {room}, which {serves[room]}"
            cure = f"room {' or '.join(card.rooms)}, or admission always"
        if reason:
            raise UnknownName(f"admission {card.name!r} with {reason}", where="settings", cure=cure)

    def _shares(self, budget: Budget) -> dict[int, Budget]:
        if budget.bytes is not None and self.geometry.record_bytes is None:
            raise InvalidBudget(
                "a byte budget, but the record size of this model is unknown",
                where="budget",
                cure="state the bytes of one record, or budget in slots",
            )
        return budget.split(self.settings.scope, self.geometry)

    @cached_property
    def sizes(self) -> dict[int, int]:
        """Bytes of one record by routed layer; 0 where the model's sizes are unknown."""
        return {layer: self.size(layer) for layer in self.geometry.routed}

    @cached_property
    def is_global(self) -> bool:
        """Whether all layers share one partition."""
        return self.settings.scope == "global"

    @cached_property
    def in_order(self) -> bool:
        """Whether recency follows the router's order."""
        return self.settings.touch == "router"

    @cached_property
    def plain(self) -> bool:
        """Whether room is reserved and all that fits is admitted, so that an event may be served the short way."""
        return self.settings.room == "reserve" and self.settings.admission in ("always", "whole-events")

    @property
    def counters(self) -> Counters:
        """Everything counted since the last reset of counters."""
        return self.ledger.counters

    def part_of(self, layer: int) -> Partition:
        """The partition that holds the records of `layer`."""
        return self.parts[-1] if self.settings.scope == "global" else self.parts[layer]

    def size(self, layer: int) -> int:
        """Bytes of one record of `layer`; 0 where the model's sizes are unknown."""
        sizes = self.geometry.record_bytes
        return 0 if sizes is None else sizes[layer]

    def residents(self) -> frozenset[Key]:
        """Every published key: complete, and legal to compute with."""
        return frozenset(key for part in self.parts.values() for key in part.resident)

    def pinned(self) -> frozenset[Key]:
        """Every pinned key."""
        return frozenset(key for part in self.parts.values() for key in part.pins)

    def leased(self) -> frozenset[Key]:
        """Every key that some unreleased event holds."""
        return frozenset(key for lease in self.leases.values() for key in lease.held)

    def occupancy_change(self) -> int:
        """Published records now minus those at the last reset of counters, as `metrics` needs it."""
        return sum(len(part.resident) for part in self.parts.values()) - self._occupancy_then

    def stamp(self, count: int) -> int:
        """The first of `count` fresh stamps."""
        first = self._clock
        self._clock += count
        return first

    @cached_property
    def asking_changes(self) -> bool:
        """Whether to ask the policy for a victim is to take it out, as the queue policies do: tried on a fresh one."""
        policy, key = self.policy(), Key(self.geometry.routed[0], 0)
        policy.set_capacity(1)
        policy.insert(key, 0)
        return policy.victim((), None) != policy.victim((), None)

    def before_asking(self, policy: Policy, *, may_decline: bool = False) -> Policy:
        """The policy to go back to when the victim it is about to name may stay after all (XC-ADMIT-001).

        Itself, unless asking changes it; then a copy, at a cost in proportion to its state.
        """
        declines = may_decline or self.admission.compares
        return deepcopy(policy) if declines and self.asking_changes else policy

    def drop(self, part: Partition, key: Key) -> None:
        """Take the record out of the partition and its policy."""
        if key in part.resident:
            self.admission.left(key)
        part.give(key)
        part.policy.evict(key)
