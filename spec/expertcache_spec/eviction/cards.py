"""Cards: what a policy is called, what it takes, and its two forms."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs

from expertcache_spec.errors import ExpertCacheError, InvalidPolicy, UnknownName
from expertcache_spec.eviction.base import Policy
from expertcache_spec.model import Geometry, Key
from expertcache_spec.rules import RULES
from expertcache_spec.trace import Event

Value = int | float | str | bool


@attrs.frozen(slots=False)
class Parameter:
    """One parameter of a policy: its default, what it means, and what it may be.

    A value has the type of the default (a whole number will do for a fraction); `choices` lists the legal names,
    `least` and `most` bound a number.
    """

    name: str
    default: Value
    meaning: str
    choices: tuple[str, ...] = ()
    least: float = -math.inf
    most: float = math.inf

    @property
    def legal(self) -> str:
        """What a value may be, in words."""
        if self.choices:
            return " | ".join(self.choices)
        kinds = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
        bounds = [(word, bound) for word, bound in (("from", self.least), ("to", self.most)) if math.isfinite(bound)]
        said = [f"{word} {int(bound) if bound == int(bound) else bound}" for word, bound in bounds]
        return " ".join([kinds[type(self.default)], *said])

    def check(self, value: Value, where: str) -> Value:
        """The value, a fraction where the default is one; raises `UnknownName` saying what is legal (XC-EVICT-001)."""
        if isinstance(self.default, float) and type(value) is int:
            value = float(value)
        wrong = type(value) is not type(self.default) or (self.choices and value not in self.choices)
        usual = str(self.default).lower() if isinstance(self.default, bool) else repr(self.default)
        if wrong or (isinstance(value, int | float) and not self.least <= value <= self.most):
            raise UnknownName(f"{self.name} = {value!r}", where=where, cure=f"{self.legal}; default {usual}")
        return value


def completed(parameters: Iterable[Parameter], given: Mapping[str, Value], where: str) -> dict[str, Value]:
    """Every parameter with its value, given or default; raises `UnknownName`, naming `where`, for one that is none."""
    known = {parameter.name: parameter for parameter in parameters}
    for name in given:
        if name not in known:
            raise UnknownName(
                f"parameter {name!r}", where=where, cure=f"one of {', '.join(known)}" if known else "it takes none"
            )
    return {name: p.check(given[name], where) if name in given else p.default for name, p in known.items()}


def above(lower: str, upper: str) -> Callable[[Mapping[str, Value], Geometry | None], Iterator[tuple[str, str]]]:
    """The objection that parameter `lower` exceeds parameter `upper`, for `Card.objections`."""

    def objections(values: Mapping[str, Value], model: Geometry | None) -> Iterator[tuple[str, str]]:
        if values[lower] > values[upper]:  # type: ignore[operator]
            yield f"{lower} {values[lower]} is above {upper} {values[upper]}", f"give {lower} at most {upper}"

    return objections


class Future:
    """The events to come, shared by the partitions of one machine: offline policies consume it as they go."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = list(events)

    @cached_property
    def uses(self) -> dict[Key, deque[int]]:
        """For every key, the indices of the events that ask for it, in order."""
        uses: dict[Key, deque[int]] = {}
        for index, event in enumerate(self.events):
            for key in event.keys:
                uses.setdefault(key, deque()).append(index)
        return uses

    @cached_property
    def by_layer(self) -> dict[int, deque[Event]]:
        """The events of every layer, in order."""
        found: dict[int, deque[Event]] = {}
        for event in self.events:
            found.setdefault(event.layer, deque()).append(event)
        return found


@attrs.frozen(slots=False)
class Card:
    """One named policy.

    rule: id of the rule that states the victim. declared, indexed: factories of its two forms; they take the
    parameters by name and, when `offline`, `future` (a `Future`). source: engine or paper. cost: of one lookup.
    can_refuse: whether admission `refusable` is defined for it. objections: what else is wrong with a whole set of
    legal values, by themselves or (where it is not None) in a model: each what it is, and the cure. readings: what each
    value of a parameter called `reading` stands for: the values of other parameters, where they are not given.

    Raises `InvalidPolicy` for no name, a rule that is none of the specification (a total order of one's own is under
    XC-EVICT-002), and a form that cannot be called.
    """

    name: str
    rule: str
    declared: Callable[..., Policy]
    indexed: Callable[..., Policy]
    summary: str
    source: str
    cost: str
    parameters: tuple[Parameter, ...] = ()
    offline: bool = False
    can_refuse: bool = False
    objections: Callable[[Mapping[str, Value], Geometry | None], Iterable[tuple[str, str]]] = lambda values, model: ()
    readings: Mapping[str, Mapping[str, Value]] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        where = f"card {self.name!r:.200}"
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidPolicy("no name", where=where, cure="give the policy one")
        if not isinstance(self.rule, str) or self.rule not in RULES:
            cure = "one of the registry; a total order of one's own is under XC-EVICT-002"
            raise InvalidPolicy(f"rule {self.rule!r:.200} is none", where=where, cure=cure)
        for form in ("declared", "indexed"):
            if not callable(getattr(self, form)):
                cure = (
                    "a factory of fresh policies: a class, or what by_order returns; where there is no index, the rule"
                )
                raise InvalidPolicy(f"{form} is {getattr(self, form)!r:.200}", where=where, cure=cure)

    def complete(self, given: Mapping[str, Value] | None = None, model: Geometry | None = None) -> dict[str, Value]:
        """Every parameter with its value: given, else what a given reading stands for, else the default.

        Raises `UnknownName` for one that does not exist or is out of bounds, for values that cannot go together, and
        for those that are beyond the `model`, where it is given.
        """
        values = self._filled(given or {})
        for what, cure in self.objections(values, model):
            raise UnknownName(what, where=f"policy {self.name}", cure=cure)
        return values

    def setting(self, name: str, **values: Value) -> Card:
        """The same policy under a name of its own, with these values as its defaults; raises as `complete` does.

        Another reading of it still stands for the same, but for these values.
        """
        chosen, usual = self.complete(values), {parameter.name: parameter.default for parameter in self.parameters}
        own = tuple(attrs.evolve(parameter, default=chosen[parameter.name]) for parameter in self.parameters)
        readings = {reading: {**usual, **meant, **values} for reading, meant in self.readings.items()}
        return attrs.evolve(self, name=name, parameters=own, readings=readings)

    def turned(self, values: Mapping[str, Value], name: str, value: Value) -> dict[str, Value]:
        """The complete `values` with one of them changed, and with another reading all that it stands for.

        Raises `UnknownName` as `complete` does, but not where the changed values cannot go together.
        """
        is_reading = name == "reading" and bool(self.readings)
        return self._filled({name: value} if is_reading else {**self.complete(values), name: value})

    def _filled(self, given: Mapping[str, Value]) -> dict[str, Value]:
        meant = self.readings.get(str(given.get("reading")), {})
        return completed(self.parameters, {**meant, **given}, f"policy {self.name}")


PolicyFactory = Callable[[], Policy]


def factory(
    card: Card, form: Callable[..., Policy], values: Mapping[str, Value], events: Sequence[Event]
) -> PolicyFactory:
    """Fresh policies of one form, one for each partition of one machine."""
    given: dict[str, Any] = {**values, "future": Future(events)} if card.offline else dict(values)

    def fresh() -> Policy:
        where, cure = f"card {card.name!r}", "a form takes the card's parameters by name and returns a Policy"
        try:
            policy = form(**given)
        except ExpertCacheError:
            raise
        except Exception as error:
            raise InvalidPolicy(f"its form raised {type(error).__name__}: {error}", where=where, cure=cure) from error
        if not isinstance(policy, Policy):
            raise InvalidPolicy(f"its form returned {policy!r:.200}", where=where, cure=cure)
        return policy

    return fresh
