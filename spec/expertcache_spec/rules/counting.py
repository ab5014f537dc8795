"""Rules of the counting part of the specification."""

from expertcache_spec.rules import Rule

RULES: tuple[Rule, ...] = ()
