"""Contracts whose description is a rule: one switch, one spelling.

`EXPERTCACHE_CONTRACTS=off` in the environment, read once when this package is imported, is the one documented way to
run without contracts (a checked step costs about 25 times an unchecked one). `python -O` removes them too, which is
why the conformance suite refuses to run under it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import icontract

from expertcache_spec.rules import RULES

ENABLED = __debug__ and os.environ.get("EXPERTCACHE_CONTRACTS", "on").lower() not in {"off", "0", "no", "false"}


def _described(rule_id: str) -> str:
    return f"{rule_id}: {RULES[rule_id].text}"


# The condition comes first, as icontract requires of the decorators whose source it quotes in a violation.


def require(condition: Callable[..., Any], rule_id: str) -> icontract.require:
    """A precondition that states `rule_id`."""
    return icontract.require(condition, description=_described(rule_id), enabled=ENABLED)


def ensure(condition: Callable[..., Any], rule_id: str) -> icontract.ensure:
    """A postcondition that states `rule_id`."""
    return icontract.ensure(condition, description=_described(rule_id), enabled=ENABLED)


def invariant(condition: Callable[..., Any], rule_id: str) -> icontract.invariant:
    """A class invariant that states `rule_id`; put it above `@attrs.define(slots=False)`."""
    return icontract.invariant(condition, description=_described(rule_id), enabled=ENABLED)
