"""The benchmark's tables, from what one stated run of `make bench` has kept in docs/bench.json."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import nodekit as kit
from factseries import ROOT
from sphinx.util.docutils import SphinxDirective
from tests.benchmarks.floors import PLUGIN, floor
from tests.benchmarks.growth import growth

from expertcache_spec.eviction import POLICIES

if TYPE_CHECKING:
    from docutils.nodes import Node
    from sphinx.application import Sphinx

KEPT = ROOT / "docs" / "bench.json"
HEADER = ("Contender", "M lookups/s", "by plugin", "floor", "µs at 64 slots", "at 15,360", "grows", "by LRU")


def rows(kept: dict[str, Any]) -> list[tuple[str, ...]]:
    """A row a contender, the peers first as they were measured: what `tests.benchmarks` prints as two tables."""
    millions = {name: kept["lookups"] / found["seconds"] / 1e6 for name, found in kept["speed"].items()}
    grown = growth({name: {int(slots): cost for slots, cost in by.items()} for name, by in kept["growth"].items()})
    found = []
    for name, speed in millions.items():
        least = f"{floor(name, millions.get(PLUGIN.get(name, ''))):.2f}" if name in POLICIES else ""
        each = grown.get(name)
        costs = ("", "", "", "")
        if each is not None:
            small, large = each.costs[min(each.costs)], each.costs[max(each.costs)]
            costs = (f"{small:.1f}", f"{large:.1f}", f"{each.factor:.2f}", f"{each.beside_baseline or 0:.2f}")
        found.append((name, f"{speed:.2f}", f"{speed / millions[PLUGIN['lru']]:.2f}", least, *costs))
    return found


class BenchTable(SphinxDirective):
    """`bench-table`: speed and growth of every contender of the kept run."""

    def run(self) -> list[Node]:
        self.env.note_dependency(str(KEPT))
        return [kit.table(HEADER, rows(json.loads(KEPT.read_text(encoding="utf-8"))))]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("bench-table", BenchTable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
