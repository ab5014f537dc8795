"""The reference implementation: one straightforward way to do what the specification states."""

from expertcache_reference.cache import PROFILE, ExpertCache, open_cache

__all__ = ["PROFILE", "ExpertCache", "open_cache"]
