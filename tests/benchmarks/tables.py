"""The tables that `make bench` prints."""

from __future__ import annotations

from collections.abc import Mapping

from rich.box import SIMPLE
from rich.table import Table
from tests.benchmarks.floors import PLUGIN, floor
from tests.benchmarks.growth import Growth, logarithm
from tests.benchmarks.traces import CAPACITY

from expertcache_spec.eviction import POLICIES


def speed_table(lookups: int, speed: Mapping[str, Mapping[str, float]]) -> Table:
    """One row a contender: its speed, beside the plugin of the same run, LRU of the same run, and its floor."""
    millions = {name: lookups / found["seconds"] / 1e6 for name, found in speed.items()}
    plugin, lru = millions.get(PLUGIN["lru"]), millions.get("lru")
    table = Table(title=f"{lookups:,} lookups, {CAPACITY:,} slots, CPU time of one thread", box=SIMPLE)
    table.add_column("contender", no_wrap=True)
    for name in ("M/s", "x plugin", "x LRU", "floor", "x floor", "misses"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, each in millions.items():
        least = floor(name, millions.get(PLUGIN.get(name, ""))) if name in POLICIES else None
        table.add_row(
            name,
            f"{each:.3f}",
            *(f"{each / other:.2f}" if other else "" for other in (plugin, lru)),
            f"{least:.2f}" if least else "",
            _judged(each / least, each >= least) if least else "",
            f"{speed[name]['misses']:,.0f}",
        )
    return table


def growth_table(found: Mapping[str, Growth]) -> Table:
    """One row a policy: microseconds a lookup at each capacity, and how they grow."""
    capacities = next(iter(found.values())).costs
    limit = logarithm(capacities)
    table = Table(title=f"microseconds a lookup by slots; log(slots) grows {limit:.2f} times", box=SIMPLE)
    table.add_column("policy", no_wrap=True)
    for name in (*(f"{capacity:,}" for capacity in capacities), "grows", "by LRU", "power"):
        table.add_column(name, justify="right", no_wrap=True)
    for policy, each in found.items():
        beside = each.beside_baseline
        table.add_row(
            policy,
            *(f"{cost:.1f}" for cost in each.costs.values()),
            f"{each.factor:.2f}",
            "" if beside is None else _judged(beside, beside <= limit),
            f"{each.exponent:.2f}",
        )
    return table


def _judged(value: float, good: bool) -> str:
    return f"{value:.2f}" if good else f"[bold red]{value:.2f} ![/]"
