"""Engine profiles: named bundles of the parameters that explain a real engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import attrs

from expertcache_spec.errors import InvalidTrace, UnknownName
from expertcache_spec.model import Key
from expertcache_spec.residency import Settings, Step
from expertcache_spec.trace import Event


@attrs.frozen(slots=False)
class Profile:
    """One engine: its policy and settings, what it reproduces, the evidence, and what is only read from code."""

    name: str
    engine: str
    policy: str
    settings: Settings
    reproduces: str
    evidence: str
    read_only: str


BIGMOE_ON_EDGE = Profile(
    "bigmoe-on-edge",
    "Helldez/BigMoeOnEdge 2d4f2b1",
    "lru",
    Settings(scope="global", room="trim", touch="router", repeats="promote"),
    "residency and bytes of every recorded row: one call is one layer of one forward pass, each distinct expert is "
    "looked up once, repeats only promote, the call may overshoot a byte budget and is trimmed after it",
    "route traces of Qwen3-30B-A3B and Gemma-4-26B-A4B at 4000 MiB, recorded by the engine",
    "what happens when one call alone exceeds the budget: the engine stays over it, this profile refuses the event",
)
"""BigMoeOnEdge's cache, exact to the row (XC-ENGINE-001)."""

PROFILES: Mapping[str, Profile] = MappingProxyType({profile.name: profile for profile in (BIGMOE_ON_EDGE,)})
"""Profile name to profile."""


def profile(name: str) -> Profile:
    """The profile of that name; raises `UnknownName`, listing the known ones."""
    if name not in PROFILES:
        raise UnknownName(f"engine profile {name!r}", where="profile", cure=f"one of {', '.join(PROFILES)}")
    return PROFILES[name]


class Mismatch(NamedTuple):
    """One key whose replayed residency or bytes are not what the engine recorded."""

    event: int
    key: Key
    expected_hit: bool
    got_hit: bool
    expected_bytes: int
    got_bytes: int


def mismatches(index: int, event: Event, step: Step, sizes: Sequence[int]) -> list[Mismatch]:
    """The keys of an event where the step differs from the engine's recording; sizes are record bytes by layer.

    Raises `InvalidTrace` for an event without a recording.
    """
    if event.recorded is None:
        raise InvalidTrace(
            "no recording to compare with", where=f"event {index}", cure="use a trace that an engine recorded"
        )
    found, hits = [], set(step.hits)
    for key, hit, read in zip(event.keys, event.recorded.hits, event.recorded.bytes, strict=True):
        got = 0 if key in hits else sizes[key.layer]
        if (hit, read) != (key in hits, got):
            found.append(Mismatch(index, key, hit, key in hits, read, got))
    return found
