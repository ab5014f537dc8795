"""The reference implementation: one straightforward way to do what the specification states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from expertcache_reference.cache import PROFILE, ExpertCache, open_cache
    from expertcache_reference.planning import (
        accepts,
        extents,
        files,
        plan_chunks,
        plan_reads,
        plan_schedule,
        read_window,
        table_row,
    )

__all__ = [
    "PROFILE", "ExpertCache", "accepts", "extents", "files", "open_cache", "plan_chunks", "plan_reads", "plan_schedule",
    "read_window", "table_row",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import the cache when it is asked for: the command line must be able to end well before it is there."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from expertcache_reference import cache

    return getattr(cache, name)
