"""Readings: what seven public implementations understand by Least-Stale, as parameters of the one policy.

Each is called after its project: `least-stale:reading=rnb`. They disagree on everything but the name: generations,
position, or intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs

from expertcache_spec.eviction.cards import Parameter, Value


@attrs.frozen(slots=False)
class Reading:
    """One reading: the parameters that differ from the defaults, where it comes from, and what was decided for it.

    scope: the scope of the cache that it is for. decided: what its source leaves open, or does and is not modelled.
    """

    parameters: Mapping[str, Value]
    source: str
    decided: str
    scope: str = "global"


_INTERVALS = "an interval is counted in passes, and kept while the key is away"

READINGS: Mapping[str, Reading] = MappingProxyType(
    {
        "tinyserve": Reading(
            {},
            "tinyserve, two ordered dicts",
            "its caller says when a pass begins, with begin_pass: here an event of the lowest layer does, or under "
            "boundary=explicit a caller; the running event is protected here",
        ),
        "zhang": Reading(
            {"requeue": True, "boundary": "pass"},
            "moe-cache-eval b8c702f (arXiv 2608.07911), simulation.py",
            "a cycle is a pass of one stream; prefetch is not modelled there",
        ),
        "rnb": Reading(
            {"order": "line", "left_first": True, "requeue": True},
            "rnb, classes stale left, stale right, current left, current right, the farther layer first",
            "left is strictly before the running layer; distance is linear",
        ),
        "spice": Reading(
            {"order": "ring", "generations": False, "requeue": True, "first": "newest"},
            "SPICE, maximum of ((layer - running layer) mod layers, last use)",
            "read as it stands: of one layer the most recent goes first",
        ),
        "hipfire": Reading(
            {"order": "overdue", "generations": False, "requeue": True, "weight": 0.5},
            "hipfire, maximum of time since last use less mean interval, never reused first",
            _INTERVALS + "; one cache a layer and role there",
            scope="layer",
        ),
        "join-3": Reading(
            {"order": "next", "generations": False, "requeue": True, "first": "newest", "weight": 0.25},
            "phase5e/JOIN-3, maximum of last use + max(mean interval, 1), ties to the most recent",
            _INTERVALS + "; the published .75 is the weight of the past",
        ),
        "rustane": Reading(
            {"order": "layer", "generations": False},
            "rustane plan, lowest layer first",
            "within a layer the lowest expert first, which the plan leaves open",
        ),
    }
)
"""Project to its reading."""

PARAMETER = Parameter(
    "reading", "tinyserve", "the project whose reading the parameters that are not given follow", tuple(READINGS)
)
