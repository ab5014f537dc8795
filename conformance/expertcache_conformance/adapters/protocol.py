"""The adapter protocol: what an implementation offers to be judged.

An implementation is a module (or any object) with two names:

`PROFILE`
    a mapping that declares what is claimed; see `Profile` for its fields.
`open_cache(config)`
    a fresh, empty cache for one `Config`. The suite opens many.

A cache that declares replay `event` has `step(event)`; one that declares `sequential` has `access(key)`. Everything
else is needed only for the capability that names it. The planning capabilities (`planning.PLANNING`) are about no
cache: their methods belong to the implementation itself, beside `open_cache`. One that claims nothing but them has
`"policies": []`, needs no `open_cache`, and is judged by what it plans and nothing else.

Keys are pairs (layer, expert); any tuple or list of two will do in an answer. Answers are mappings or objects with
attributes; what is left out is empty.

A declared refusal is an exception with a `code` of `expertcache_spec.errors` (the specification's own exceptions have
one), or the answer `{"error": code}`; it must leave the cache as it was. Any other exception is a crash.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import attrs

from expertcache_conformance.adapters.claims import Parameters, split
from expertcache_conformance.adapters.planning import DISCIPLINES, LAYOUTS, PLANNING
from expertcache_spec.admission.naming import spelled
from expertcache_spec.content import pattern
from expertcache_spec.errors import UnknownName
from expertcache_spec.eviction import Value
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.residency.settings import SETTINGS, Settings
from expertcache_spec.trace import Event

CAPABILITIES: Mapping[str, tuple[str, ...]] = {
    "leases": ("select", "complete", "release"),
    "faults": ("select", "complete", "release", "fail"),
    "pins": ("pin", "unpin"),
    "resize": ("resize",),
    "reset": ("reset",),
    "rebind": ("rebind",),
    "seeds": ("seed",),
    "priorities": ("seed",),
    "prefetch": ("select", "complete", "release", "prefetch"),
    "prefetch-counts": ("select", "complete", "release", "prefetch", "prefetch_counts"),
    "bytes": ("select", "complete", "release", "read"),
    **PLANNING,
}
"""Capability to the methods it needs: of the cache beside `step` or `access`, or of the planner."""

BUDGETS = ("slots", "bytes")
LISTS = ("policies", "budgets", "capabilities", "layouts", "disciplines")
LIMITS = ("max_layers", "max_experts", "max_top_k", "min_slots", "max_slots")


@attrs.frozen
class Config:
    """One cache to open.

    `policy` is a name, or `module:ATTRIBUTE`; `parameters` are the policy's, all of them, by name. `future` is every
    event to come, for offline policies that are claimed, else None.
    """

    policy: str
    budget: Budget
    geometry: Geometry
    settings: Settings = attrs.field(factory=Settings)
    parameters: Mapping[str, Value] = attrs.field(factory=dict)
    future: tuple[Event, ...] | None = None
    fingerprint: str = "model-a"

    @property
    def slots(self) -> int | None:
        """The budget's slots, None when it has none."""
        return self.budget.slots

    @property
    def bytes(self) -> int | None:
        """The budget's bytes, None when it has none."""
        return self.budget.bytes

    def content(self, key: Key, fingerprint: str | None = None) -> builtins.bytes:
        """The bytes of a record, in the model of that fingerprint, this one's unless given (capability `bytes`)."""
        return pattern(self.fingerprint if fingerprint is None else fingerprint, key, self.geometry.size(key.layer))


class EventCache(Protocol):
    """A cache that takes one event at a time (replay `event`)."""

    def step(self, event: Event) -> Any:
        """Serve the event: hits, misses, victims, and where they occur bypassed and refused, as collections of keys.

        `event.rows` is what the router selected, row by row; `event.keys` the distinct keys in router order.
        """


class SequentialCache(Protocol):
    """A cache that takes one key at a time (replay `sequential`)."""

    def access(self, key: Key) -> Any:
        """Serve the key: `hit` (bool), `victims`, and where they occur `bypassed` or `refused` (bools)."""


class LeasingCache(EventCache, Protocol):
    """The optional methods, by capability (`CAPABILITIES`). Several selected events may be outstanding."""

    def select(self, event: Event) -> Any:
        """As `step`, but stop before any read: also `ticket` (hashable), `reads` and `joined` (keys).

        `reads` are those whose records are kept; a bypassed key is read for the event alone, and is not among them.
        """

    def complete(self, key: Key) -> Any:
        """The read of `key` has ended well; `victims` of a trim, if any."""

    def fail(self, key: Key) -> Any:
        """The read of `key` has failed; `victims` of a trim, if any."""

    def release(self, ticket: Any) -> Any:
        """The event has executed; `victims` and `refused`, if any."""

    def pin(self, key: Key) -> Any:
        """Pin a resident key."""

    def unpin(self, key: Key) -> Any:
        """End a pin."""

    def resize(self, slots: int | None, bytes: int | None) -> Any:  # noqa: A002
        """Take a new budget; `victims`."""

    def reset(self, scope: str) -> Any:
        """Reset `history` or `contents`."""

    def rebind(self, fingerprint: str) -> Any:
        """Serve the model of that fingerprint."""

    def seed(self, keys: list[Key], priorities: Sequence[int] = ()) -> Any:
        """Install profile keys and read them: `installed` (keys), `present`, `ignored`, `refused` (numbers).

        `priorities`, one a key, are given only where the capability `priorities` is claimed; without them all are 0.
        """

    def prefetch(self, key: Key) -> Any:
        """Start a speculative read: `outcome`, one of started, resident, in-flight, refused."""

    def read(self, ticket: Any, key: Key) -> Any:
        """The bytes that the event computes with, as any object that has them: `bytes`, a memoryview, an array.

        Asked for records that it holds and that are not being read. What it is served without keeping has no
        `complete`: the cache reads that for itself, at the latest now.
        """

    def prefetch_counts(self) -> Any:
        """What became of the prefetches so far: the numbers named in `program.PREFETCH_COUNTS`."""


class InvalidProfile(ValueError):
    """A profile that claims what does not exist, or claims nothing."""


@attrs.frozen(slots=False)
class Profile:
    """What an implementation claims.

    name, version: its own. spec: the specification version it follows. replay: `event` or `sequential`. policies:
    names of `expertcache_spec.eviction.POLICIES`, with parameters that are not the defaults as `lfu-aged:every=64`, or
    cards of one's own as `module:ATTRIBUTE`; a policy with several sets of parameters is named once for each; none for
    a planner alone. settings:
    for each setting the values supported, an admission with parameters that are not the defaults as `sightings:n=3`; a
    setting left out means its first value in `expertcache_spec.residency.SETTINGS`. budgets: slots, bytes.
    capabilities: names of `CAPABILITIES`. victims: False for a cache that cannot say what it evicted; only hits are
    compared then. limits: numbers named in `LIMITS`.
    layouts, disciplines: the kinds that the capabilities `layout`, `schedule` and `evaluator` are claimed for.
    """

    name: str
    version: str = "0"
    spec: str = "0.1"
    replay: str = "event"
    policies: tuple[str, ...] = ()
    settings: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    budgets: tuple[str, ...] = ("slots",)
    capabilities: tuple[str, ...] = ()
    victims: bool = True
    limits: Mapping[str, int] = attrs.field(factory=dict)
    layouts: tuple[str, ...] = LAYOUTS[:1]
    disciplines: tuple[str, ...] = DISCIPLINES[:1]

    @cached_property
    def claims(self) -> Mapping[str, tuple[Parameters, ...]]:
        """Each claimed policy with every set of parameters that is claimed for it."""
        return split(self.policies)[0]

    def values(self, setting: str) -> tuple[str, ...]:
        """The values of a setting that are claimed."""
        return self.settings.get(setting, SETTINGS[setting][:1])

    def settings_like(self, **wanted: str) -> Settings:
        """Settings with the wanted values and, for the rest, the first value claimed."""
        return Settings(**{name: wanted.get(name, self.values(name)[0]) for name in SETTINGS})  # type: ignore[arg-type]


def parse_profile(raw: Any) -> Profile:
    """The profile of a mapping; raises `InvalidProfile` naming every field that is off."""
    if not isinstance(raw, Mapping):
        raise InvalidProfile(f"PROFILE is {type(raw).__name__}, not a mapping")
    known = {field.name for field in attrs.fields(Profile)}
    wrong = [f"unknown field {name!r}" for name in raw if name not in known]
    fields = {name: value for name, value in raw.items() if name in known}
    for name in LISTS:
        if isinstance(fields.get(name, ()), str):
            wrong.append(f"{name} must be a list of names, not one string")
            fields[name] = ()
    try:
        settings = {name: tuple(values) for name, values in dict(fields.get("settings", {})).items()}
        settings["admission"], unread = _admissions(settings.get("admission", SETTINGS["admission"][:1]))
        wrong += unread
        lists = {name: tuple(fields[name]) for name in LISTS if name in fields}
        profile = Profile(**{**fields, **lists, "settings": settings})
    except (TypeError, ValueError) as error:
        raise InvalidProfile("; ".join([*wrong, str(error)])) from error
    wrong += split(profile.policies)[1]
    wrong += _unknown("budget", profile.budgets, BUDGETS)
    wrong += _unknown("capability", profile.capabilities, CAPABILITIES)
    wrong += _unknown("layout", profile.layouts, LAYOUTS)
    wrong += _unknown("discipline", profile.disciplines, DISCIPLINES)
    wrong += _wrong_limits(profile.limits)
    wrong += _unknown("setting", profile.settings, SETTINGS)
    for name, values in profile.settings.items():
        wrong += [] if name == "admission" else _unknown(name, values, SETTINGS.get(name, values))
        wrong += [] if values else [f"setting {name} lists no value"]
    if profile.replay not in ("event", "sequential"):
        wrong.append(f"replay {profile.replay!r} is neither event nor sequential")
    plans = set(PLANNING) & set(profile.capabilities)
    if not (plans or profile.policies) or not profile.budgets or not profile.layouts or not profile.disciplines:
        wrong.append("no policy, budget, layout or discipline is claimed: there is nothing to judge")
    if not profile.policies and set(profile.capabilities) - set(PLANNING):
        wrong.append("a capability of caches is claimed, and no policy")
    if wrong:
        raise InvalidProfile("; ".join(wrong))
    return profile


def _admissions(values: Iterable[Any]) -> tuple[tuple[str, ...], list[str]]:
    """Each claimed admission in its one spelling, as `Settings` has it; and what cannot be read."""
    found, wrong = [], []
    for value in values:
        try:
            found.append(spelled(value))
        except UnknownName as error:
            wrong.append(str(error))
    return tuple(found), wrong


def _wrong_limits(limits: Any) -> list[str]:
    if not isinstance(limits, Mapping):
        return [f"limits is {limits!r}, not a mapping"]
    numbers = [(name, value) for name, value in limits.items() if name in LIMITS]
    off = [f"limit {name} is {value!r}" for name, value in numbers if type(value) is not int or value < 0]
    return _unknown("limit", limits, LIMITS) + [f"{text}, not a whole number from 0" for text in off]


def _unknown(kind: str, names: Iterable[str], known: Iterable[str]) -> list[str]:
    known = list(known)
    return [f"unknown {kind} {name!r} (known: {', '.join(known)})" for name in names if name not in known]
