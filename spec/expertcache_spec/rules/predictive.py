"""Rules of the predictive part of the specification."""

from expertcache_spec.rules import Rule

RULES: tuple[Rule, ...] = ()
