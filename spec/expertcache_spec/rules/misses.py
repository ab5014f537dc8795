"""Rules of the misses part of the specification."""

from expertcache_spec.rules import Rule

RULES: tuple[Rule, ...] = ()
