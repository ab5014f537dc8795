"""What the generic tests run over: every policy with its defaults, and every setting of its parameters that matters."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

from expertcache_spec.eviction import POLICIES, Card, Value

VARIATIONS: dict[str, tuple[str, dict[str, Value]]] = {
    "route-hotness-early": ("route-hotness", {"early_load": True, "halve_every": 2, "reset_at": "stream"}),
    "clock-lru-k-fast": ("clock-lru-k", {"adapt_every": 1, "window": 1, "decay_every": 1, "ceiling": 4, "ghosts": 0.5}),
    "s3-fifo-libcachesim": ("s3-fifo", {"fill": "main", "promotion": "go-on", "small": 0.4, "threshold": 1}),
    "least-stale-rnb": ("least-stale", {"order": "line", "left_first": True, "prefetch_stamps": False}),
    "least-stale-overdue": ("least-stale", {"order": "overdue", "prefetch_marks_current": False, "keeps_unused": True}),
    "lfu-aged-tokens": ("lfu-aged", {"every": 2, "places": 3, "clock": "tokens"}),
    "lfu-aged-lookups": ("lfu-aged", {"every": 5, "clock": "lookups"}),
    "lfru-by-key": ("lfru", {"clock": "passes", "ties": "key"}),
    "lfru-heat-fast": ("lfru-heat", {"every": 3, "oldest": 3, "clock": "events"}),
    "lfru-heat-by-key": ("lfru-heat", {"every": 0, "oldest": 2, "ties": "key"}),
    "heat-lru-one": ("heat-lru", {"hot": 1}),
    "heat-lru-literal": ("heat-lru", {"hot": 0, "zero": "literal"}),
    "class-lru-fast": ("class-lru", {"half_life": 3, "classes": 3, "clock": "events", "ties": "high"}),
    "window-passes": ("window", {"window": 2, "clock": "passes"}),
    "window-recency": ("window", {"window": 2, "inside": "recency"}),
    "static-keys": ("static", {"keys": "0.0-1+*.3"}),
    "static-by-key": ("static", {"keys": "*.1-2", "rest": "key"}),
    "random-seven": ("random", {"seed": 7}),
    "score-all": ("score", {"counts": "all", "accumulate": "mean", "halve_every": 2}),
    "probability-visits-finemoe": ("probability-visits", {"truncate": True, "ties": "scan", "visits": "resident"}),
    "hazard-latest": ("hazard", {"ages": 3, "limit": 4, "ties": "latest"}),
    "popularity-events": ("popularity", {"count": "events", "limit": 4}),
    "recent-frequency-two": ("recent-frequency", {"window": 2}),
    "ewma-interval-soon": ("ewma-interval", {"overdue": "soon", "weight": 2}),
    "ewma-interval-gone": ("ewma-interval", {"overdue": "gone", "first": 3}),
    "semi-markov-shuffled": ("semi-markov", {"intervals": 3, "ages": 3, "control": "shuffled", "seed": 3}),
}
"""Name of the setting to the policy and the parameters that differ from its defaults; one line each."""

SUBJECTS: dict[str, Card] = {
    **POLICIES,
    **{name: POLICIES[policy].setting(name, **values) for name, (policy, values) in VARIATIONS.items()},
}
"""Name to card: the policies first, then the variations."""

CORE = ("fifo", "lru", "lfu", "lfu-reset", "belady")
"""The policies that every generic test takes daily. The others are in daily volume, and in everything else at night."""


def nightly_but(daily: Collection[str], names: Iterable[str]) -> list[Any]:
    """Parameters for all names, those that are not daily marked for the night."""
    return [name if name in daily else pytest.param(name, marks=pytest.mark.nightly) for name in names]
