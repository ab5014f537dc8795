"""Opening: from a store, a budget and a policy's name to the parts of a runtime, checked before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from expertcache_reference.runtime.records import Records
from expertcache_reference.slots import Arena
from expertcache_reference.system.seam import Machine
from expertcache_spec.errors import InvalidBudget, InvalidModel
from expertcache_spec.eviction import Card, Value, make
from expertcache_spec.eviction.spelling import Spelled, parse
from expertcache_spec.history.header import Header
from expertcache_spec.layout.extents import round_up
from expertcache_spec.layout.placing import Layout
from expertcache_spec.model import Budget, Geometry
from expertcache_spec.residency import Residency, Settings
from expertcache_spec.trace import Event


class Source(Protocol):
    """What a runtime needs of a store: where records lie, in files of which folder, and whose they are."""

    @property
    def layout(self) -> Layout: ...  # noqa: D102
    @property
    def geometry(self) -> Geometry: ...  # noqa: D102
    @property
    def fingerprint(self) -> str: ...  # noqa: D102
    @property
    def folder(self) -> Path: ...  # noqa: D102


def check_given(store: object, budget: object, chunks: object, log: object) -> None:
    """Raise `InvalidModel` or `InvalidBudget` for what is not of its kind, as None for a store."""
    check_source(store)
    check_budget(budget)
    if type(chunks) is not int or chunks < 1:
        raise InvalidModel(f"{chunks!r} chunks a record", where="runtime", cure="give a whole number from 1")
    if not (log is None or isinstance(log, str | Path) or callable(log)):
        raise InvalidModel(f"{log!r} takes no log", where="runtime", cure="give a path, or a function of one line")


def check_source(store: object) -> None:
    """Raise `InvalidModel` for what is no store, or has something else where one has its layout, geometry or folder."""
    for name, kind in (("layout", Layout), ("geometry", Geometry), ("fingerprint", str), ("folder", Path)):
        found = getattr(store, name, None)
        if not isinstance(found, kind):
            raise InvalidModel(
                f"{store!r:.200} is no store: its {name} is {found!r:.100}", where="runtime",
                cure=f"give what `open_store` returns, or one's own with a {name} of type {kind.__name__}",
            )  # fmt: skip


def check_event(event: object, geometry: Geometry) -> None:
    """Raise `InvalidModel` for no event, and for a row of more experts than a token can ask for (XC-TRACE-003)."""
    if not isinstance(event, Event):
        raise InvalidModel(f"{event!r} is no Event", where="serve", cure="give an Event of the trace")
    widest = max(map(len, event.rows), default=0)
    if widest > geometry.top_k:
        raise InvalidModel(
            f"{widest} experts in one row, top_k is {geometry.top_k}", where="serve",
            cure="give each token a row of its own, or the store the model's top_k",
        )  # fmt: skip


def check_budget(budget: object) -> None:
    """Raise `InvalidBudget` for what is no budget."""
    if not isinstance(budget, Budget):
        raise InvalidBudget(
            f"{budget!r} is no Budget", where="runtime", cure="give Budget(slots=...) or Budget(bytes=...)"
        )


def residency_of(
    store: Source, budget: Budget, policy: str | Card, parameters: Mapping[str, Value], future: Sequence[Event] | None,
    settings: Settings,
) -> tuple[Residency, Header]:  # fmt: skip
    """The machine that decides, and the header of its log. Raises `UnknownName`, `InvalidBudget`, `NeedsFuture`."""
    spelled = Spelled(policy, {}) if isinstance(policy, Card) else parse(policy)
    complete = spelled.card.complete({**spelled.parameters, **parameters})
    factory = make(spelled.card, future=future, parameters=complete)
    residency = Residency(store.geometry, budget, factory, settings, store.fingerprint)
    header = Header(store.geometry, budget, settings, spelled.card.name, dict(complete), name="runtime")
    return residency, header


def arenas_of(machine: Machine, residency: Residency, records: Records) -> tuple[Arena, Arena]:
    """The arena of the cache, and that of what is read and not kept, which keeps memory for one token."""
    sizes = sorted(set(records.sizes.values()))
    uniform = sizes[0] if len(sizes) == 1 else 0
    kept = Arena(machine, limit_of(machine, residency, records), uniform, most_records(residency, records))
    return kept, Arena(machine, residency.geometry.top_k * round_up(sizes[-1], machine.page))


def most_records(residency: Residency, records: Records) -> int:
    """The most records that the budget can hold."""
    return sum(_most(residency, records, layer) for layer in residency.parts)


def _most(residency: Residency, records: Records, layer: int) -> int:
    part = residency.parts[layer]
    sizes = list(records.sizes.values()) if layer < 0 else [records.sizes[layer]]
    limits = [residency.geometry.experts * len(sizes)]
    limits += [] if part.slots is None else [part.slots]
    limits += [] if part.bytes is None else [part.bytes // min(sizes)]
    return min(limits)


def limit_of(machine: Machine, residency: Residency, records: Records) -> int:
    """The bytes that slots may take: the budget, each record rounded up to pages, and no more than all records."""
    total = 0
    for layer, part in residency.parts.items():
        count = _most(residency, records, layer)
        largest = max(records.sizes.values()) if layer < 0 else records.sizes[layer]
        whole = count * round_up(largest, machine.page)
        total += whole if part.bytes is None else min(whole, part.bytes + count * (machine.page - 1))
    return total
