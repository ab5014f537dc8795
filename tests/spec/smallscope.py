"""All small traces, replayed in both forms of every policy; run as a module, without contracts for speed.

`python -m tests.spec.smallscope single KEYS EVENTS CAPACITY` takes every sequence of that many one-key events;
`... sets KEYS EVENTS CAPACITY ROW` every sequence of events that each ask for up to ROW keys, in every router order,
under every room and touch order. Prints how many cases, steps and victims were compared, and the first differences.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import permutations, product

from expertcache_spec.eviction import POLICIES, Form, make
from expertcache_spec.model import Budget, Geometry
from expertcache_spec.replay import run_event
from expertcache_spec.residency import Residency, Settings, Step
from expertcache_spec.trace import Event

Row = tuple[int, ...]


def replay(
    geometry: Geometry, policy: str, events: Sequence[Event], slots: int, chosen: Settings, form: Form
) -> list[Step]:
    """The steps of one form."""
    machine = Residency(geometry, Budget(slots=slots), make(policy, form, events), chosen)
    return [run_event(machine, event) for event in events]


def traces(rows: Sequence[Row], events: int) -> Iterator[tuple[Event, ...]]:
    """Every sequence of exactly `events` of the rows; their beginnings are all the shorter ones."""
    made = [[Event(0, (row,), pass_index=number) for row in rows] for number in range(events)]
    return product(*made)


def settings(policy: str, sets: bool) -> list[Settings]:
    """What to run a policy under: everything that tells whole events apart, and refusal where it is defined."""
    chosen = [
        Settings(room=room, touch=touch, overflow="waves")
        for room in (("reserve", "trim", "retain") if sets else ("reserve",))
        for touch in (("router", "hits_first") if sets and policy in ("lru", "lfu", "lfu-reset") else ("router",))
    ]
    return chosen + ([Settings(admission="refusable", overflow="waves")] if POLICIES[policy].can_refuse else [])


def compare(rows: Sequence[Row], keys: int, events: int, capacity: int, *, sets: bool) -> dict[str, object]:
    """Both forms of every policy over every trace at every capacity."""
    geometry = Geometry(1, keys, max(map(len, rows)))
    cases = steps = victims = 0
    differences: list[str] = []
    for policy, card in POLICIES.items():
        # A shorter trace is the beginning of a longer one, except to a policy that knows the future.
        for length in range(1 if card.offline else events, events + 1):
            for trace, slots, chosen in product(traces(rows, length), range(1, capacity + 1), settings(policy, sets)):
                indexed, declarative = (
                    replay(geometry, policy, trace, slots, chosen, form) for form in ("indexed", "declarative")
                )
                cases, steps = cases + 1, steps + length
                victims += sum(len(step.victims) for step in indexed)
                if indexed != declarative and len(differences) < 5:
                    differences.append(f"{policy} {slots} {chosen} {[event.rows[0] for event in trace]}")
    return {"cases": cases, "steps": steps, "victims": victims, "differences": differences}


if __name__ == "__main__":
    kind, keys, events, capacity, *row = sys.argv[1:]
    widest = int(row[0]) if row else 1
    every = [ids for size in range(1, widest + 1) for ids in permutations(range(int(keys)), size)]
    print(json.dumps(compare(every, int(keys), int(events), int(capacity), sets=kind == "sets")))
