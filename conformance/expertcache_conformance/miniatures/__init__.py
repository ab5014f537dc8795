"""The suite's own test subjects: tiny wrong implementations, a sentence each, and odd ones that are right.

`MINIATURES` lists the wrong ones with exactly the rules that must be found broken, `ODDITIES` the legal ones;
`PLANNERS` and `ODD_PLANNERS` are the same of planners. Each is an implementation:
`--impl expertcache_conformance.miniatures:fifo_sold_as_lru`.
"""

from __future__ import annotations

from typing import Any

from expertcache_conformance.miniatures import (  # noqa: F401 - MINIATURES
    speculating,
    wrong_admissions,
    wrong_bytes,
    wrong_estimates,
    wrong_orders,
    wrong_policies,
    wrong_protection,
    wrong_queues,
    wrong_room,
    wrong_standings,
)
from expertcache_conformance.miniatures.odd import ODDITIES
from expertcache_conformance.miniatures.planners import ODD_PLANNERS, PLANNERS, Planner
from expertcache_conformance.miniatures.subject import Miniature
from expertcache_conformance.miniatures.wrong import MINIATURES

__all__ = ["MINIATURES", "ODDITIES", "ODD_PLANNERS", "PLANNERS", "Miniature", "Planner"]


def __getattr__(name: str) -> Any:
    """A miniature, an oddity or a planner by name."""
    subjects: list[Miniature | Planner] = [*MINIATURES, *ODDITIES, *PLANNERS, *ODD_PLANNERS]
    for subject in subjects:
        if subject.name == name:
            return subject
    raise AttributeError(name)
