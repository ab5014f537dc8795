"""The registry of normative rules: one Python object for each normative sentence.

The book's pages, the contracts, the suite's markers, the reports and the replay files all carry the rule's id.
Ids are permanent: a rule may be withdrawn, its id is never used again.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import attrs

Level = Literal["MUST", "SHOULD", "MAY"]

CHAPTERS: Mapping[str, str] = MappingProxyType(
    {
        "MODEL": "Keys, records, budgets",
        "TRACE": "Events, passes, traces",
        "RES": "The residency machine",
        "BYTES": "Bytes",
        "EVICT": "Eviction",
        "ADMIT": "Admission",
        "PREFETCH": "Prefetch",
        "MISS": "Misses",
        "SCHED": "Schedules",
        "FANOUT": "Fan-out",
        "LAYOUT": "Layouts",
        "PAGE": "The page cache",
        "HIST": "History",
        "METRIC": "Metrics",
        "REPLAY": "Replay",
        "ENGINE": "Engine profiles",
        "CONF": "Conformance",
    }
)
"""Chapter code (the middle part of a rule id) to chapter title, in reading order."""


@attrs.frozen(slots=False)
class Rule:
    """One normative sentence.

    `subject` names the object that states or enforces it, as `module:qualified.name`; `source` the report, paper or
    engine that it comes from; `since` the specification version that introduced it.
    """

    id: str
    level: Level
    text: str
    rationale: str
    source: str
    subject: str
    since: str = "0.1"

    @property
    def chapter(self) -> str:
        """The chapter code inside the id."""
        return self.id.split("-")[1]


def _collect() -> Mapping[str, Rule]:
    from expertcache_spec.rules import (
        admission,
        classical,
        conformance,
        content,
        counting,
        engine_policies,
        engines,
        eviction,
        fanout,
        history,
        layout,
        metrics,
        misses,
        model,
        pagecache,
        predictive,
        prefetch,
        replay,
        residency,
        schedule,
        trace,
    )

    evictions = (eviction, counting, classical, engine_policies, predictive)
    below = (fanout, layout, pagecache, history)
    order = (
        model,
        trace,
        residency,
        content,
        *evictions,
        admission,
        prefetch,
        misses,
        schedule,
        *below,
        metrics,
        replay,
        engines,
        conformance,
    )
    found: dict[str, Rule] = {}
    for module in order:
        for rule in module.RULES:
            if rule.id in found or rule.chapter not in CHAPTERS:
                raise AssertionError(f"rule id {rule.id} is taken twice or names no chapter")
            found[rule.id] = rule
    return MappingProxyType(found)


RULES: Mapping[str, Rule] = _collect()
"""Rule id to rule, in reading order."""
