"""How fast the specification's replay should be: floors to hold a measurement against, never assertions.

They are speeds of one core of the machine that the project was begun on, where libCacheSim's Python plugin with an LRU
does about 1.5 M lookups/s. On another machine, or a busy one, compare the ratios to the plugin of the same run.
"""

from __future__ import annotations

PLUGIN = {"lru": "libcachesim_plugin_lru", "fifo": "libcachesim_plugin_fifo"}
"""Policies whose floor is a share of what libCacheSim's plugin does with the same policy in the same run."""
OF_PLUGIN = 0.5
BY_TOUCHES = frozenset(
    {
        *("fifo", "lru", "lfu", "lfu-reset", "heat-lru", "static"),
        *("clock", "slru", "arc", "two-q", "s3-fifo", "sieve"),
    }
)
"""Policies under which nothing but touches (hits, inserts, evictions) changes the order of two resident keys."""
OF_TOUCHES, OF_ALL = 0.3, 0.1
"""Floors in M lookups/s: of those, and of every policy."""


def floor(policy: str, plugin: float | None) -> float:
    """The floor of a policy in M lookups/s, where the plugin has done `plugin` M lookups/s (None: not installed)."""
    if policy in PLUGIN and plugin is not None:
        return OF_PLUGIN * plugin
    return OF_TOUCHES if policy in BY_TOUCHES else OF_ALL
