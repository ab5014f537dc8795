"""Clauses: when a victim is legal but not the policy's, which sentence of the policy was not kept.

The evidence is the history of two keys: the victim that the specification chose and the one that the implementation
chose instead. It is asked for only when no suspect of `suspects` explains every answer of the implementation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from expertcache_conformance.answers import Answer, Oracle
from expertcache_conformance.program import Operation, Program
from expertcache_spec.model import Key


@attrs.frozen
class Life:
    """What happened to one key before the difference.

    inserted, touched: index of the operation that inserted it last, touched it last. hits: touches since the insert.
    requests: operations that asked for it, ever. evicted: whether it was evicted before its latest insert.
    unpinned: whether it was unpinned after its last touch.
    """

    inserted: int
    touched: int
    hits: int
    requests: int
    evicted: bool
    unpinned: bool


def life(program: Program, key: Key) -> Life:
    """The key's history, as the specification's machine saw it."""
    oracle = Oracle(program.config)
    inserted = touched = -1
    hits = requests = 0
    evicted = unpinned = False
    for index, operation in enumerate(program.operations[:-1]):
        answer = oracle.apply(operation)
        asked = operation.event is not None and key in operation.event.keys
        requests += asked
        if key in answer.hits:
            touched, hits, unpinned = index, hits + 1, False
        elif (asked and key in answer.misses) or key in answer.installed or _starts(operation, answer, key):
            inserted = touched = index
            hits, unpinned = 0, False
        evicted = evicted or key in answer.victims
        unpinned = unpinned or (operation.op == "unpin" and operation.key == key)
    return Life(inserted, touched, hits, requests, evicted, unpinned)


def _starts(operation: Operation, answer: Answer, key: Key) -> bool:
    return operation.op in ("prefetch", "displace") and operation.key == key and answer.outcome == "started"


def broken(program: Program, wanted: Sequence[Key], found: Sequence[Key]) -> str | None:
    """The id of the clause that the choice of `found` over `wanted` breaks; None when only the policy as such."""
    if not wanted or not found:
        return None
    right, wrong = life(program, wanted[0]), life(program, found[0])
    return next(_clauses(program, right, wrong), None)


def _clauses(program: Program, right: Life, wrong: Life) -> Iterator[str]:
    """Candidate clauses, most particular first. `right` is the victim's life, `wrong` that of the key taken instead."""
    policy, operations = program.config.policy, program.operations
    if right.unpinned:
        yield "XC-RES-019"
    if any(operation.op == "reset" and operation.text == "history" for operation in operations):
        yield "XC-RES-022"
    ordered_by_touch = policy == "lru" or (
        policy in ("lfu", "lfu-reset") and _uses(policy, right) == _uses(policy, wrong)
    )
    if ordered_by_touch and right.touched == wrong.touched:
        event = operations[right.touched].event
        yield "XC-RES-007" if event is not None and event.has_repeats else "XC-RES-006"
    if policy == "lru":
        if wrong.hits:
            yield "XC-EVICT-021"
        yield "XC-EVICT-022" if wrong.touched > right.touched else "XC-EVICT-020"
    if policy == "lfu":
        if 15 <= right.requests < wrong.requests:
            yield "XC-EVICT-033"
        if right.requests == wrong.requests:
            yield "XC-EVICT-032"
        if wrong.evicted:
            yield "XC-EVICT-031"
        yield "XC-EVICT-033"
    if policy == "lfu-reset":
        if right.hits == wrong.hits:
            yield "XC-EVICT-042"
        if right.evicted or wrong.evicted:
            yield "XC-EVICT-041"


def _uses(policy: str, key: Life) -> int:
    return key.requests if policy == "lfu" else key.hits
