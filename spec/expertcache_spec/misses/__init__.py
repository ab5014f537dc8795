"""Misses: what is done about a record that is not there. Fetching it is the rule; everything else loses something.

Read `decisions`, small functions of one token's row, then `lossy`, which applies them in a replay and counts.
"""

from expertcache_spec.misses.lossy import ChangesTrace, Losses, Lossy, Misses

__all__ = ["ChangesTrace", "Losses", "Lossy", "Misses"]
