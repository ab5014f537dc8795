"""Engine profiles: named bundles of the parameters that explain a real engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import attrs

from expertcache_spec.errors import InvalidTrace, UnknownName
from expertcache_spec.eviction.spelling import Spelled, parse
from expertcache_spec.model import Key
from expertcache_spec.residency import Settings, Step
from expertcache_spec.trace import Event


@attrs.frozen(slots=False)
class Profile:
    """One engine: its policy and settings, what it reproduces, the evidence, and what is only read from code.

    `policy` is in words, with the parameters that differ from their defaults (`route-hotness:clock_layer=0`).
    """

    name: str
    engine: str
    policy: str
    settings: Settings
    reproduces: str
    evidence: str
    read_only: str

    @property
    def spelled(self) -> Spelled:
        """The card of the policy and the parameters that the words give it."""
        return parse(self.policy)


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

_DS4 = Settings(scope="global", room="reserve", touch="hits_first", repeats="ignore", overflow="bypass")
_DS4_REPRODUCES = (
    "the choice of victims: hotness before recency, hits stamped before victims are chosen, every victim of a layer "
    "gone before its first read, loads installed in slot order; the reset at a new prompt; seeds as decaying hotness"
)
_DS4_READ_ONLY = (
    "everything: no public recording carries residency. The engine grows past its budget where all is in use (here the "
    "machine waits or bypasses), seeds evict there (here they take free room), a record of a rare size bypasses the "
    "cache, and its counters differ: see the chapter on ds4"
)

DS4_A = Profile(
    "ds4-a",
    "antirez/ds4 b0309611, August 2026, Metal, DeepSeek V4",
    "route-hotness:clock_layer=0:clock_phases=decode:early_load=true",
    _DS4,
    _DS4_REPRODUCES,
    "a survey of the code and its issues; the executable model in it, which every step of the tests follows",
    _DS4_READ_ONLY + ". GLM counts its tokens at layer 3 (clock_layer=3)",
)
"""ds4's cache of August 2026 ([A]); hotlists are seeded by rank."""

DS4_B = Profile(
    "ds4-b",
    "antirez/ds4 30ac654f, September 2026, Metal, DeepSeek V4.1 and GLM 5.3",
    "route-hotness:clock_phases=decode:early_load=true",
    _DS4,
    _DS4_REPRODUCES,
    DS4_A.evidence,
    _DS4_READ_ONLY,
)
"""ds4's cache of September 2026 ([B]): the clock runs whichever layer is first, and seeds are scaled to 1..32."""

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {profile.name: profile for profile in (BIGMOE_ON_EDGE, DS4_A, DS4_B)}
)
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
