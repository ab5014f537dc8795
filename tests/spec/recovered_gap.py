"""How much of the Belady gap the causal predictors recover, in domain and across, against their shuffled controls.

`python -m tests.spec.recovered_gap layer` (or `global`, or neither for both) prints the tables of the book's page on
causal predictors, each after some five minutes on two idle cores without contracts; `layer keep` writes the misses
behind the one that the book has to tests/data/predictors/recovered-gap.json, `column "qwen 614 in"` prints those of one
column. The gap is LRU's misses less
Belady's; a policy recovers (LRU's misses - its own) / gap of it. Every replay first learns from a beginning that is not
counted, and is counted from there on with whatever it has learned and holds: the same for LRU, Belady and the policy.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from fractions import Fraction
from itertools import product
from typing import NamedTuple, TypeAlias

from expertcache_spec.eviction import Value
from expertcache_spec.eviction.predictive import CARDS
from expertcache_spec.model import Budget, Scope
from expertcache_spec.replay import Replay, run_event
from expertcache_spec.residency import Settings
from expertcache_spec.trace import Event, Trace

from . import recordings

DOMAINS = ("code_cs", "math", "prose_history_law", "instruct_facts")
REQUESTS = 2
"""Requests of a domain to learn from, and as many others to be counted."""
SHUFFLED: Mapping[str, Value] = {"control": "shuffled"}


VARIANTS: dict[str, tuple[str, Mapping[str, Value]]] = {
    **{card.name: (card.name, {}) for card in CARDS},
    "hazard, ties latest": ("hazard", {"ties": "latest"}),
    "semi-markov, ties latest": ("semi-markov", {"ties": "latest"}),
    "ewma-interval, overdue soon": ("ewma-interval", {"overdue": "soon"}),
    "ewma-interval, overdue gone": ("ewma-interval", {"overdue": "gone"}),
}
"""Row of the table to the policy and its parameters."""


class Task(NamedTuple):
    """What to learn from, what to count, and with how much room."""

    learned: str
    counted: str
    slots: int
    scope: Scope


def part(name: str, first: int) -> list[Event]:
    """`REQUESTS` requests of a gpt-oss-20b domain from the one numbered `first`, their streams numbered from there."""
    whole = recordings.gpt_oss(name, first + REQUESTS)
    return [event for event in whole.events if event.stream >= first]


def joined(task: Task) -> tuple[Trace, int]:
    """The trace to replay and how many of its events are for learning only."""
    if task.counted in ("qwen", "gemma"):
        trace = recordings.bigmoe(task.counted)
        passes = trace.events[-1].pass_index
        return trace, sum(event.pass_index <= passes // 2 for event in trace.events)
    begin, end = part(task.learned, 0), part(task.counted, REQUESTS)
    return Trace(recordings.gpt_oss(task.counted, REQUESTS).geometry, (*begin, *end)), len(begin)


def misses(trace: Trace, learning: int, task: Task, policy: str, values: Mapping[str, Value]) -> int:
    """Lookups that were no hit, after the events for learning."""
    settings = Settings(scope=task.scope, overflow="bypass")
    run = Replay(trace, policy, Budget(slots=task.slots), settings, parameters=values)
    for number, event in enumerate(run.events):
        if number == learning:
            run.machine.reset("counters")
        run_event(run.machine, event)
    total = run.machine.counters.total()
    return total.lookups - total.hits


def measure(task: Task, controls: bool = True) -> dict[str, int]:
    """Misses of LRU, Belady and chance (`random`), and of every row; a * marks the row's control."""
    trace, learning = joined(task)
    found = {name: misses(trace, learning, task, name, {}) for name in ("lru", "belady", "random")}
    for name, (policy, values) in VARIANTS.items():
        found[name] = misses(trace, learning, task, policy, values)
        if controls:
            found[f"{name}*"] = misses(trace, learning, task, policy, {**values, **SHUFFLED})
    return found


def recovered(found: Sequence[Mapping[str, int]], name: str) -> Fraction:
    """The share of the gap, summed over the tasks, that the row recovers; negative where it loses to LRU."""
    lru, belady, own = (sum(each[key] for each in found) for key in ("lru", "belady", name))
    return Fraction(lru - own, lru - belady)


# ---------------------------------------------------------------------------------------------- the tables

ROOM = (("gpt-oss-20b", (115, 230)), ("qwen", (614, 1843)), ("gemma", (384, 1152)))
"""15 and 30 % of the records of gpt-oss-20b (10 % is below its token cycle), 10 and 30 % of those of the others."""


COLUMNS = tuple(
    f"{model} {slots} {kind}"
    for model, sizes in ROOM
    for slots in sizes
    for kind in (("in", "across") if model == "gpt-oss-20b" else ("in",))
)
Column: TypeAlias = Mapping[str, int]
"""Misses of LRU, Belady, chance and every row; a * marks a control."""
FILE = recordings.DATA / "predictors" / "recovered-gap.json"


def tasks(model: str, slots: int, scope: Scope) -> dict[str, list[Task]]:
    """In domain, and for gpt-oss-20b across domains."""
    if model != "gpt-oss-20b":
        return {"in": [Task(model, model, slots, scope)]}
    pairs = [(learned, counted) for learned, counted in product(DOMAINS, DOMAINS)]
    return {
        "in": [Task(a, b, slots, scope) for a, b in pairs if a == b],
        "across": [Task(a, b, slots, scope) for a, b in pairs if a != b],
    }


def column(where: str, scope: Scope, pool: ProcessPoolExecutor) -> list[Future[dict[str, int]]]:
    """The tasks of a column such as `qwen 614 in`, begun."""
    model, slots, kind = where.split()
    return [pool.submit(measure, task, kind == "in") for task in tasks(model, int(slots), scope)[kind]]


def summed(found: Sequence[Future[dict[str, int]]]) -> Column:
    """The misses of a column, its tasks summed."""
    each = [future.result() for future in found]
    return {name: sum(one[name] for one in each) for name in each[0]}


def measured(scope: Scope, pool: ProcessPoolExecutor) -> dict[str, Column]:
    """Every column of a table."""
    pending = {where: column(where, scope, pool) for where in COLUMNS}
    return {where: summed(found) for where, found in pending.items()}


def lines(results: Mapping[str, Column]) -> Iterator[str]:
    """One table in Markdown."""
    yield "| | " + " | ".join(where.replace("gpt-oss-20b", "gpt-oss") for where in results) + " |"
    yield "|---|" + "---:|" * len(results)
    for name in ("lru", "belady"):
        yield f"| {name}, misses | " + " | ".join(f"{found[name]:,}" for found in results.values()) + " |"
    for name in ("random", *VARIANTS):
        yield f"| {name} | " + " | ".join(cell(found, name) for found in results.values()) + " |"


def cell(found: Column, name: str) -> str:
    """What the row recovers, and where it was measured what its control does."""
    control = f"{name}*"
    own = percent(recovered([found], name))
    return f"{own} ({percent(recovered([found], control))})" if control in found else own


def percent(share: Fraction) -> str:
    """Whole percent, halves to even."""
    return f"{round(100 * share)} %"


def main() -> None:
    """What the command line asks for."""
    what, *more = sys.argv[1:] or [""]
    with ProcessPoolExecutor(2) as pool:
        if what == "column":
            print(json.dumps(summed(column(more[0], "layer", pool))))
            return
        scopes: tuple[Scope, ...] = ("layer", "global")
        for scope in scopes:
            if what in ("", scope):
                found = measured(scope, pool)
                print(*lines(found), sep="\n", flush=True)
                if more == ["keep"]:
                    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
