"""Cases for the tests of the specification: hypothesis strategies that shrink, and a seeded generator for volume.

Both draw the same things: small geometries with unequal records, passes that walk the layers in order, rows that
repeat earlier rows (locality), batches whose rows share experts, streams that interleave, verify passes that reject
rows, and every setting of the machine.
"""

from __future__ import annotations

from random import Random
from typing import Any

import attrs
from hypothesis import strategies as st

from expertcache_spec.model import Budget, Geometry
from expertcache_spec.residency import SETTINGS, Settings
from expertcache_spec.trace import PHASES, Event, Trace

from .settings_of_policies import SUBJECTS

Row = tuple[int, ...]


@attrs.frozen
class Case:
    """One replay to run: everything but the policy's name and form."""

    trace: Trace
    budget: Budget
    settings: Settings


def defined(policy: str, settings: Settings) -> bool:
    """Whether the specification defines `settings` for `policy`."""
    refusable = settings.admission == "refusable" and SUBJECTS[policy].can_refuse and settings.room != "trim"
    return settings.admission == "always" or refusable  # the other admissions: test_admission


# ---------------------------------------------------------------------------------------------- hypothesis


@st.composite
def geometries(draw: st.DrawFn, *, layers: int = 3, experts: int = 6, sized: bool | None = None) -> Geometry:
    """A model of up to `layers` layers, some perhaps dense; `sized`: whether record sizes are known (None: either)."""
    count = draw(st.integers(1, layers))
    routed = draw(st.sets(st.integers(0, count - 1), min_size=1).map(sorted)) if draw(st.booleans()) else range(count)
    width = draw(st.integers(1, experts))
    known = draw(st.booleans()) if sized is None else sized
    sizes = draw(st.lists(st.integers(1, 5), min_size=count, max_size=count)) if known else None
    top_k = draw(st.integers(1, width))
    return Geometry(count, width, top_k, None if sizes is None else tuple(sizes), tuple(routed))


def rows(geometry: Geometry) -> st.SearchStrategy[Row]:
    """What one token asks one layer for, in router order."""
    ids = st.integers(0, geometry.experts - 1)
    return st.lists(ids, min_size=1, max_size=geometry.top_k, unique=True).map(tuple)


@st.composite
def events(draw: st.DrawFn, geometry: Geometry, layer: int, phase: str, before: list[Row], **where: int) -> Event:
    """An event of that layer; its rows are fresh or taken from `before`, to which they are added."""
    fresh = rows(geometry)
    anew = st.one_of(fresh, st.sampled_from(before)) if before else fresh
    batch = (draw(anew),) if phase == "decode" else tuple(draw(st.lists(anew, min_size=1, max_size=3)))
    before.extend(batch)
    accepted = draw(st.integers(0, len(batch))) if phase == "verify" and draw(st.booleans()) else None
    return Event(layer, batch, phase=phase, accepted=accepted, **where)  # type: ignore[arg-type]


@st.composite
def traces(
    draw: st.DrawFn,
    geometry: Geometry | None = None,
    *,
    passes: int = 4,
    streams: int = 2,
    phases: tuple[str, ...] = PHASES,
    **shape: Any,
) -> Trace:
    """A trace of up to `streams` interleaved streams of up to `passes` passes each."""
    model = geometry or draw(geometries(**shape))
    seen: dict[int, list[Row]] = {layer: [] for layer in model.routed}
    queues = [
        [
            draw(events(model, layer, phase, seen[layer], stream=stream, pass_index=number))
            for number, phase in enumerate(draw(st.lists(st.sampled_from(phases), min_size=1, max_size=passes)))
            for layer in model.routed
        ]
        for stream in range(draw(st.integers(1, streams)))
    ]
    order: list[Event] = []
    while queues:
        queue = queues[draw(st.integers(0, len(queues) - 1)) if len(queues) > 1 else 0]
        order.append(queue.pop(0))
        queues = [left for left in queues if left]
    return Trace(model, tuple(order))


def total_bytes(geometry: Geometry) -> int:
    """The bytes of every record of the model."""
    return geometry.experts * sum(geometry.size(layer) for layer in geometry.routed)


def budgets(geometry: Geometry) -> st.SearchStrategy[Budget]:
    """Zero to a little more than the whole model, in slots, in bytes or in both."""
    slots = st.integers(0, geometry.experts * len(geometry.routed) + 1)
    by_slots = st.builds(Budget, slots=slots)
    if geometry.record_bytes is None:
        return by_slots
    size = st.integers(0, total_bytes(geometry) + 1)
    return st.one_of(by_slots, st.builds(Budget, bytes=size), st.builds(Budget, slots=slots, bytes=size))


def settings(policy: str = "belady", **fixed: str) -> st.SearchStrategy[Settings]:
    """Every combination of settings that the specification defines for `policy`; `fixed` ones stay."""
    choices = {name: st.just(fixed[name]) if name in fixed else st.sampled_from(SETTINGS[name]) for name in SETTINGS}
    return st.builds(Settings, **choices).filter(lambda chosen: defined(policy, chosen))


@st.composite
def cases(draw: st.DrawFn, policy: str = "belady", *, fixed: dict[str, str] | None = None, **shape: Any) -> Case:
    """A trace with a budget and settings; `fixed` settings stay, `shape` is for `traces`."""
    trace = draw(traces(**shape))
    return Case(trace, draw(budgets(trace.geometry)), draw(settings(policy, **(fixed or {}))))


# ---------------------------------------------------------------------------------------------- seeded volume


def random_case(seed: int, policy: str = "belady", *, sized: bool | None = None, **fixed: str) -> Case:
    """The case of that seed: larger than hypothesis draws, and about a thousand times cheaper."""
    random = Random(seed)
    geometry = random_geometry(random, sized)
    trace = random_trace(random, geometry, streams=random.randint(1, 3), passes=random.randint(1, 8))
    while True:
        chosen = Settings(**{name: fixed.get(name, random.choice(SETTINGS[name])) for name in SETTINGS})  # type: ignore[arg-type]
        if defined(policy, chosen):
            return Case(trace, random_budget(random, geometry), chosen)


def random_geometry(random: Random, sized: bool | None = None) -> Geometry:
    """A model of one to four layers and up to twelve experts."""
    layers, experts = random.randint(1, 4), random.randint(2, 12)
    routed = tuple(range(layers)) if random.random() < 0.7 else (layers - 1,)
    known = random.random() < 0.7 if sized is None else sized
    sizes = tuple(random.randint(1, 4) for _ in range(layers)) if known else None
    return Geometry(layers, experts, random.randint(1, min(4, experts)), sizes, routed)


def random_trace(
    random: Random, geometry: Geometry, *, streams: int = 1, passes: int = 8, phases: tuple[str, ...] = PHASES
) -> Trace:
    """Interleaved streams of exactly `passes` passes; about half of the rows repeat an earlier one."""
    seen: dict[int, list[Row]] = {layer: [] for layer in geometry.routed}
    phase_of = {(stream, number): random.choice(phases) for stream in range(streams) for number in range(passes)}
    queues = [
        [(stream, number, layer) for number in range(passes) for layer in geometry.routed] for stream in range(streams)
    ]
    order = []
    while queues:
        stream, number, layer = random.choice(queues).pop(0)
        phase = phase_of[stream, number]
        batch = tuple(
            random_row(random, geometry, seen[layer]) for _ in range(1 if phase == "decode" else random.randint(1, 4))
        )
        accepted = random.randint(0, len(batch)) if phase == "verify" else None
        order.append(Event(layer, batch, stream, number, phase, accepted=accepted))  # type: ignore[arg-type]
        queues = [left for left in queues if left]
    return Trace(geometry, tuple(order))


def random_row(random: Random, geometry: Geometry, seen: list[Row]) -> Row:
    """A row of that layer, new or seen before."""
    if seen and random.random() < 0.5:
        return random.choice(seen)
    row = tuple(random.sample(range(geometry.experts), random.randint(1, geometry.top_k)))
    seen.append(row)
    return row


def random_budget(random: Random, geometry: Geometry) -> Budget:
    """Mostly room for an event and not for the model; sometimes nothing, sometimes everything."""
    slots = random.randint(0, geometry.experts * len(geometry.routed) + 1)
    if geometry.record_bytes is None or random.random() < 0.5:
        return Budget(slots=slots)
    size = random.randint(0, total_bytes(geometry) + 1)
    return Budget(bytes=size) if random.random() < 0.5 else Budget(slots, size)
