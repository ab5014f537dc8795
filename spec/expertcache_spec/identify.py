"""Identification: which policies, parameters and settings explain what a cache did.

A log of events with the hits, and the victims where they were written down, is replayed under every candidate until
the first difference. What explains everything is an explanation; where several do, the log does not tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import attrs

from expertcache_spec.errors import ExpertCacheError, InvalidTrace
from expertcache_spec.eviction import POLICIES, Card, Parameter, Value, make
from expertcache_spec.eviction.spelling import spell
from expertcache_spec.eviction.variants import VARIANTS
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import run_event
from expertcache_spec.residency import SETTINGS, Residency, Settings, Step
from expertcache_spec.trace import Event, Trace


class Observed(NamedTuple):
    """One event as a cache served it: its hits, and the victims; None where the log does not say."""

    event: Event
    hits: frozenset[Key]
    victims: frozenset[Key] | None = None


@attrs.frozen
class Candidate:
    """A policy under parameters and settings; `words` is how people call it."""

    card: Card
    parameters: Mapping[str, Value]
    settings: Settings

    @property
    def words(self) -> str:
        """The policy, with parameters and settings that are not the defaults."""
        default = Settings()
        chosen = [
            f"{name} {value}" for name, value in attrs.asdict(self.settings).items() if value != getattr(default, name)
        ]
        return ", ".join([spell(self.card.name, self.parameters), *chosen])


@attrs.frozen
class Finding:
    """How far a candidate explains a log.

    agreed: events that it explains from the start. difference: None when it explains all, else what it would have
    done at the first event that it does not explain: the hits or victims of its own and those of the log alone, or the
    error it raises.
    """

    candidate: Candidate
    agreed: int
    difference: str | None

    @property
    def explains_all(self) -> bool:
        """Whether nothing in the log speaks against the candidate."""
        return self.difference is None


def observed(trace: Trace) -> list[Observed]:
    """What the engine that recorded the trace did: hits only; raises `InvalidTrace` where nothing is recorded."""
    found = []
    for index, event in enumerate(trace.events):
        if event.recorded is None:
            raise InvalidTrace(
                "nothing is recorded", where=f"event {index}", cure="use a trace that an engine recorded"
            )
        found.append(
            Observed(event, frozenset(k for k, hit in zip(event.keys, event.recorded.hits, strict=True) if hit))
        )
    return found


def values_to_try(parameter: Parameter) -> Iterator[Value]:
    """Legal values beside the default: every name, the other truth; for a number a quarter to four times as much."""
    default = parameter.default
    if parameter.choices:
        yield from (choice for choice in parameter.choices if choice != default)
    elif isinstance(default, bool):
        yield not default
    elif isinstance(default, int):
        ladder = dict.fromkeys((default // 4, default // 2, default * 2, default * 4))
        yield from (n for n in ladder if n != default and parameter.least <= n <= parameter.most)
    elif isinstance(default, float):
        yield from (n for n in (default / 2, default * 2) if parameter.least <= n <= parameter.most and n != default)


def turns(found: Card, values: Mapping[str, Value]) -> Iterator[tuple[str, Value]]:
    """Each parameter with each value to try, as far as the other `values` go with it (`Card.turned`)."""
    for parameter in found.parameters:
        for value in values_to_try(parameter):
            if not any(found.objections(found.turned(values, parameter.name, value), None)):
                yield parameter.name, value


def settings_to_try(geometry: Geometry, fixed: Mapping[str, str]) -> list[Settings]:
    """Every combination of scope, touch and repeats; the `fixed` settings stay."""
    open_choices = {
        "scope": ("global", "layer") if len(geometry.routed) > 1 else ("global",),
        "touch": ("router", "hits_first"),
        "repeats": ("promote", "ignore"),
    }
    names = [name for name in open_choices if name not in fixed]
    return [
        Settings(**{"overflow": "bypass", **fixed, **dict(zip(names, chosen, strict=True))})  # type: ignore[arg-type]
        for chosen in product(*(open_choices[name] for name in names))
    ]


def plain(geometry: Geometry, cards: Iterable[Card] | None = None, **fixed: str) -> list[Candidate]:
    """What to try first: every policy with its defaults and every known variant, under every setting."""
    known = list(POLICIES.values()) if cards is None else list(cards)
    names = {card.name for card in known}
    known += [variant.card for variant in VARIANTS if variant.policy in names and not variant.is_known]
    return [Candidate(card, {}, each) for card in known for each in settings_to_try(geometry, fixed)]


def turned(candidates: Iterable[Candidate]) -> list[Candidate]:
    """What to try when nothing plain explains all: the same, with one parameter changed."""
    return [attrs.evolve(each, parameters={name: value}) for each in candidates for name, value in turns(each.card, {})]


def other_rooms(explanation: Candidate, fixed: Mapping[str, str]) -> list[Candidate]:
    """An explanation under the other rooms, which the log may or may not tell apart."""
    if "room" in fixed:
        return []
    return [
        attrs.evolve(explanation, settings=attrs.evolve(explanation.settings, room=room))  # type: ignore[arg-type]
        for room in SETTINGS["room"]
        if room != explanation.settings.room
    ]


def explain(geometry: Geometry, budget: Budget, log: Sequence[Observed], candidate: Candidate) -> Finding:
    """Replay the candidate beside the log, up to the first difference."""
    agreed = 0
    try:
        factory = make(candidate.card, future=[entry.event for entry in log], parameters=candidate.parameters)
        machine = Residency(geometry, budget, factory, candidate.settings)
        for agreed, entry in enumerate(log):
            difference = _differs(entry, run_event(machine, entry.event))
            if difference is not None:
                return Finding(candidate, agreed, difference)
    except ExpertCacheError as error:
        return Finding(candidate, agreed, str(error))
    return Finding(candidate, len(log), None)


def _differs(entry: Observed, step: Step) -> str | None:
    hits, victims = frozenset(step.hits), frozenset(step.victims)
    if hits != entry.hits:
        return f"hits {_keys(hits - entry.hits)}, not {_keys(entry.hits - hits)}"
    if entry.victims is not None and victims != entry.victims:
        return f"evicts {_keys(victims - entry.victims)}, not {_keys(entry.victims - victims)}"
    return None


def _keys(keys: Iterable[Key]) -> str:
    shown = [f"({key.layer},{key.expert})" for key in sorted(keys)]
    more = [f"and {len(shown) - _SHOWN} more"] if len(shown) > _SHOWN else []
    return "{" + " ".join([*shown[:_SHOWN], *more]) + "}"


_SHOWN = 8  # keys of a difference
Watch = Callable[[list[Candidate]], Iterable[Candidate]]


def identify(
    geometry: Geometry,
    budget: Budget,
    log: Sequence[Observed],
    cards: Iterable[Card] | None = None,
    *,
    watch: Watch = iter,
    **fixed: str,
) -> list[Finding]:
    """Findings, those that explain all first, then by how far they agree; in the order of trial where equal.

    `cards` limits the policies, `fixed` gives settings that are known; `watch` may wrap the candidates, to draw
    progress. Parameters are turned only when nothing explains all with defaults; rooms are told apart last.
    """
    first = plain(geometry, cards, **fixed)
    found = [explain(geometry, budget, log, each) for each in watch(first)]
    if not any(finding.explains_all for finding in found):
        found += [explain(geometry, budget, log, each) for each in watch(turned(first))]
    rooms = [room for finding in found if finding.explains_all for room in other_rooms(finding.candidate, fixed)]
    found += [explain(geometry, budget, log, each) for each in watch(rooms)]
    return sorted(found, key=lambda finding: (not finding.explains_all, -finding.agreed))
