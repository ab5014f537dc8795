"""What the generic tests run over: every policy with its defaults, and every setting of its parameters that matters."""

from __future__ import annotations

from expertcache_spec.eviction import POLICIES, Card, Value

VARIATIONS: dict[str, tuple[str, dict[str, Value]]] = {
    "route-hotness-early": ("route-hotness", {"early_load": True, "halve_every": 2, "reset_at": "stream"}),
    "least-stale-rnb": ("least-stale", {"order": "line", "left_first": True, "prefetch_stamps": False}),
    "least-stale-overdue": ("least-stale", {"order": "overdue", "prefetch_marks_current": False, "keeps_unused": True}),
    "score-all": ("score", {"counts": "all", "accumulate": "mean", "halve_every": 2}),
    "probability-visits-finemoe": ("probability-visits", {"truncate": True, "ties": "scan", "visits": "resident"}),
}
"""Name of the setting to the policy and the parameters that differ from its defaults; one line each."""

SUBJECTS: dict[str, Card] = {
    **POLICIES,
    **{name: POLICIES[policy].setting(name, **values) for name, (policy, values) in VARIATIONS.items()},
}
"""Name to card: the policies first, then the variations."""
