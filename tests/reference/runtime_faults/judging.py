"""Judging a runtime by what it did: its bytes, its log, its end. Named by rule where the specification has one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import attrs

from expertcache_reference.system.simulated import Simulation
from expertcache_reference.system.simulated import run as run_once
from expertcache_reference.system.simulated.schedules import Chance, Replay
from expertcache_spec.model import Key

from ..runtime_programs import Program, verdict

BYTES = "wrong bytes"
"""No rule of a log: bytes are seen by who looks at them."""


@attrs.frozen
class Found:
    """What a run showed: rule ids, or `BYTES`, or the kind of a simulated run's finding; and a line about each."""

    rules: frozenset[str]
    said: tuple[str, ...]


def judged(found: Program, simulation: Simulation, patches: Sequence[Any] = (), seeds: int = 8) -> Found:
    """Everything that is wrong in so many runs of the program under the patches; the judge is never patched."""
    rules, said = set[str](), list[str]()
    for seed in range(seeds):
        lines: list[dict[str, Any]] = []
        with ExitStack() as stack:
            for each in patches:
                stack.enter_context(each)
            strategy = Chance(f"fault/{seed}") if seed else Replay(())
            outcome = run_once(attrs.evolve(found, lines=lines), strategy, simulation)
        seen = [] if outcome.finding is None else [(str(outcome.kind), outcome.finding.what)]
        for error in [] if outcome.value is None else outcome.value["seen"]:
            assert getattr(error, "cure", "") != "report this", f"the fault breaks down: {error}"
            if isinstance(error, AssertionError):
                seen.append((BYTES if "wrong bytes" in str(error) else "assertion", str(error)[:200]))
        seen += _of_log(lines, found, simulation.faults.errors or None)
        rules.update(rule for rule, _ in seen)
        said += [what for _, what in seen]
    return Found(frozenset(rules), tuple(said))


def _of_log(lines: list[dict[str, Any]], found: Program, faults: Any) -> list[tuple[str, str]]:
    if not lines:
        return []
    answer = verdict(lines)
    broken = [(str(answer.rule), f"line {answer.line}: {answer.what}")] if answer.answer == "illegal" else []
    if faults is None and any(line.get("op") == "fail" for line in lines):
        broken.append(("fails without an error", "a read fails where the system showed no error"))
    sizes = found.found.geometry.record_bytes
    assert sizes is not None
    return broken + [("XC-SCHED-014", what) for what in speculation_before_demand(lines, sizes)]


def speculation_before_demand(lines: list[dict[str, Any]], sizes: tuple[int, ...]) -> list[str]:
    """Reads that nobody waits for and that begin while a chunk that somebody waits for is queued (XC-SCHED-014)."""
    waiting: dict[tuple[Any, Key], int] = {}
    started: dict[Key, int] = {}
    broken: list[str] = []
    for line in lines[1:]:
        op, key = line["op"], Key(*line["key"]) if "key" in line else Key(0, 0)
        if op == "bypass" or (op == "miss" and line["how"] == "refuse"):
            waiting[line["ticket"], key] = sizes[key.layer]
        elif op == "miss" and line["how"] in ("read", "join"):
            waiting[None, key] = sizes[key.layer] - started.get(key, 0)
        elif op == "read_start":
            name = (line.get("ticket"), key)
            if name[0] is None:
                started[key] = started.get(key, 0) + line["length"]
            if name in waiting:
                waiting[name] -= line["length"]
            elif any(left > 0 for left in waiting.values()):
                broken.append(f"{key} is read on speculation while {[k for k, left in waiting.items() if left]} wait")
        elif op in ("publish", "fail"):
            started.pop(key, None)
            waiting.pop((None, key), None)
        elif op == "release":
            for name in [name for name in waiting if name[0] == line["ticket"]]:
                del waiting[name]
    return broken
