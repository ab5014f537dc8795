"""`expertcache study`: one policy on real traces beside LRU, LFRU and Belady, before anybody ports it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any

import attrs
import typer

from expertcache_reference.cli import options
from expertcache_reference.cli.console import load, print_json, print_table, rate, tracked
from expertcache_reference.traces import builtin
from expertcache_spec.eviction.spelling import Spelled
from expertcache_spec.model import Budget
from expertcache_spec.replay import Replay, Result
from expertcache_spec.residency import Settings
from expertcache_spec.trace import Trace
from expertcache_spec.wording import fraction

PEERS = ("lru", "lfru", "belady")
"""The usual policy, the best of the engines', and the bound."""
BUILTINS = ",".join([builtin.PREFIX + name for name in builtin.of_engines()])
CYCLES = "0.5,0.9,1,1.5,2,4"
"""Budgets in token cycles: below the cliff, at it, and where engines live."""


@attrs.frozen
class Entry:
    """One replay of a study: token cycles of its budget, its result, and the CPU seconds that it took."""

    policy: str
    cycles: float
    result: Result
    seconds: float

    @property
    def absent(self) -> int:
        """Lookups that found no record."""
        return self.result.total.misses + self.result.total.bypassed

    @property
    def decode_hits(self) -> int:
        """Hits in the decode phase."""
        return sum(row.hits for phase, row in self.result.counters.per_phase().items() if phase == "decode")


def study(
    policy: Annotated[str, typer.Argument(metavar="POLICY", help="The policy, as --policy of replay takes it.")],
    traces: Annotated[
        str, typer.Option("--traces", metavar="FILE[,FILE...]", help="Trace files, or builtin:NAME; all of engines.")
    ] = BUILTINS,
    against: Annotated[str, typer.Option("--against", metavar="P[,P...]", help="Beside it.")] = ",".join(PEERS),
    cycles: Annotated[str, typer.Option("--cycles", metavar="X[,X...]", help="Budgets in token cycles.")] = CYCLES,
    scope: options.Scope = None,
    touch: options.Touch = None,
    repeats: options.Repeats = None,
    admission: options.Admission = None,
    as_json: options.Json = False,
) -> None:
    """Compare a policy on real traces: hits, the cliff, collisions, the gap to Belady, and the cost of a lookup."""
    chosen = options.settings(None, scope=scope, touch=touch, repeats=repeats, admission=admission, overflow="bypass")
    names = dict.fromkeys([policy, *options.listed(against, "--against")])
    spelled = [options.policy(name, None) for name in names]
    labels = options.labels(spelled)
    budgets = [_cycles(text) for text in options.listed(cycles, "--cycles")]
    found = []
    for source in options.listed(traces, "--traces"):
        trace, _ = load(source)
        entries = [
            _replay(trace, options.for_model(each, trace.geometry), label, chosen, share)
            for share in budgets
            for each, label in zip(spelled, labels, strict=True)
        ]
        found.append((trace, entries))
    if as_json:
        print_json({"traces": [_as_data(trace, entries) for trace, entries in found]})
        return
    for trace, entries in found:
        _print(trace, entries, labels[0])


def _cycles(text: str) -> float:
    share = fraction(text)
    if share is None or not 0 < share <= 1000:
        raise typer.BadParameter(f"--cycles {text}: token cycles above 0 and up to 1000, as 0.5 or 2")
    return share


def _replay(trace: Trace, spelled: Spelled, label: str, settings: Settings, cycles: float) -> Entry:
    slots = max(1, round(trace.geometry.token_cycle_slots * cycles))
    run = Replay(trace, spelled.card, Budget(slots), settings, parameters=spelled.parameters)
    began = time.process_time()
    with tracked(run, len(run.events), f"{trace.name}, {cycles:g} cycles, {label}") as steps:
        for _ in steps:
            pass
    return Entry(label, cycles, run.result(), time.process_time() - began)


def _at(entries: Sequence[Entry], policy: str, cycles: float) -> Entry | None:
    return next((entry for entry in entries if (entry.policy, entry.cycles) == (policy, cycles)), None)


def recovered(entry: Entry, entries: Sequence[Entry]) -> tuple[int, int] | None:
    """Of the lookups by which LRU exceeds Belady at this budget, how many the policy saves; None without both."""
    lru, belady = (_at(entries, name, entry.cycles) for name in ("lru", "belady"))
    return None if lru is None or belady is None else (lru.absent - entry.absent, lru.absent - belady.absent)


def cliff(entries: Sequence[Entry], policy: str) -> float | None:
    """The largest budget of the study, in token cycles, at which the policy hits nothing on decode; None at none."""
    return max((e.cycles for e in entries if e.policy == policy and not e.decode_hits), default=None)


def _as_data(trace: Trace, entries: Sequence[Entry]) -> dict[str, Any]:
    rows = []
    for entry in entries:
        saved, total = entry.result.total, recovered(entry, entries)
        rows.append({
            "policy": entry.policy, "cycles": entry.cycles, "slots": entry.result.manifest.slots,
            "lookups": saved.lookups, "hits": saved.hits, "absent": entry.absent, "collisions": saved.collisions,
            "evictions": saved.evictions, "decode_hits": entry.decode_hits,
            "saved_of_lru": None if total is None else total[0], "lru_over_belady": None if total is None else total[1],
        })  # fmt: skip
    names = dict.fromkeys(entry.policy for entry in entries)
    return {
        "trace": trace.name,
        "trace_sha256": trace.fingerprint,
        "token_cycle_slots": trace.geometry.token_cycle_slots,
        "cliff": {name: cliff(entries, name) for name in names},
        "rows": rows,
    }


def _print(trace: Trace, entries: Sequence[Entry], policy: str) -> None:
    rows = []
    for entry in entries:
        total, gap, lru = entry.result.total, recovered(entry, entries), _at(entries, "lru", entry.cycles)
        decode = sum(row.lookups for phase, row in entry.result.counters.per_phase().items() if phase == "decode")
        cost = "-" if lru is None or not lru.seconds else f"{entry.seconds / lru.seconds:.1f} x lru"
        share = "-" if gap is None or gap[1] <= 0 else f"{100 * gap[0] / gap[1]:.1f} %"
        cells = [entry.policy, f"{entry.cycles:g}", str(entry.result.manifest.slots), rate(total.hits, total.lookups)]
        rows.append([*cells, rate(entry.decode_hits, decode), str(total.collisions), str(entry.absent), share, cost])
    columns = ("policy", "cycles", "slots", "hits", "decode hits", "collisions", "misses+bypassed", "gap recovered",
               "cost")  # fmt: skip
    print_table(f"{trace.name}, token cycle {trace.geometry.token_cycle_slots} records", columns, rows)
    edge = cliff(entries, policy)
    where = "hits something at every budget" if edge is None else f"hits nothing on decode up to {edge:g} token cycles"
    typer.echo(f"{policy} {where}; gap recovered: of the lookups that LRU misses and Belady does not")
