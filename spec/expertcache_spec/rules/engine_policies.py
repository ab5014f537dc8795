"""Rules of the engine_policies part of the specification."""

from expertcache_spec.rules import Rule

RULES: tuple[Rule, ...] = ()
