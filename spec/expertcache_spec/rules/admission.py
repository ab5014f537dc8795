"""Rules of the admission part of the specification."""

from expertcache_spec.rules import Rule

RULES: tuple[Rule, ...] = ()
