"""`expertcache compare`: policies, budgets and scopes side by side on one trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated, Any

import attrs
import typer

from expertcache_reference.cli import options
from expertcache_reference.cli.console import count, load, print_json, print_table, rate, tracked, warn
from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.model import Budget
from expertcache_spec.replay import Manifest, Replay, Result, as_dict
from expertcache_spec.trace import Trace

_VARIED = ("policy", "parameters", "slots", "bytes", "optimum")
"""What may differ between the rows of one comparison, beside the scope."""


class Unlike(ExpertCacheError):
    """Results that must not stand side by side: another trace, replay mode, specification or setting."""

    code = "unlike"


def compare(
    source: options.Source,
    policies: Annotated[
        str, typer.Option("--policies", metavar="P[,P...]", help="Policies, as --policy of replay takes them.")
    ],
    slots: Annotated[str | None, typer.Option("--slots", metavar="N[,N...]", help="Budgets in records.")] = None,
    budget: Annotated[str | None, typer.Option("--budget", metavar="SIZE[,SIZE...]", help="Budgets in bytes.")] = None,
    scopes: Annotated[str | None, typer.Option("--scopes", metavar="S[,S...]", help="Scopes: global, layer.")] = None,
    room: options.Room = None,
    touch: options.Touch = None,
    repeats: options.Repeats = None,
    overflow: options.Overflow = None,
    no_victim: options.NoVictim = None,
    admission: options.Admission = None,
    mode: options.Mode = "event",
    record_bytes: options.RecordBytes = None,
    drop_weights: options.DropWeights = False,
    profile: options.ProfileName = None,
    as_json: options.Json = False,
) -> None:
    """Replay every combination of policy, budget and scope, and print them side by side."""
    given = {"room": room, "touch": touch, "repeats": repeats, "overflow": overflow, "no_victim": no_victim}
    chosen = [
        options.settings(profile, scope=scope, admission=admission, **given)
        for scope in ([None] if scopes is None else options.listed(scopes, "--scopes"))
    ]
    names = [options.policy(name, None) for name in options.listed(policies, "--policies")]
    budgets = _budgets(slots, budget)
    trace, notes = load(source, record_bytes, drop_weights=drop_weights)
    for name in names:
        options.for_model(name, trace.geometry)
    combinations = list(product(budgets, chosen, names))
    results = []
    for number, (limit, settings, name) in enumerate(combinations, 1):
        run = Replay(trace, name.card, limit, settings, mode, parameters=name.parameters)  # type: ignore[arg-type]
        with tracked(run, len(run.events), f"replaying {name}, {number} of {len(combinations)}") as steps:
            for _ in steps:
                pass
        results.append(run.result())
    refuse_unlike([result.manifest for result in results])
    warnings = _warnings(results, notes, budgets)
    warn(warnings)
    gaps = over_belady(results)
    labels = options.labels(names) * (len(budgets) * len(chosen))
    if as_json:
        print_json({"rows": [_entry(*each) for each in zip(labels, results, gaps, strict=True)], "warnings": warnings})
    else:
        _print(trace, labels, results, gaps, budgets)


def _budgets(slots: str | None, sizes: str | None) -> dict[Budget, str]:
    """Each budget, with the words to print it in."""
    if (slots is None) == (sizes is None):
        raise typer.BadParameter("give budgets either with --slots or with --budget")
    if sizes is not None:
        return {options.budget(None, size)[0]: size for size in options.listed(sizes, "--budget")}
    counts = [options.whole_number(text) for text in options.listed(str(slots), "--slots")]
    return {Budget(number): count(number, "slot") for number in counts}


def refuse_unlike(manifests: Sequence[Manifest]) -> None:
    """Raise `Unlike` unless the manifests differ in policy, budget and scope only (XC-REPLAY-002)."""
    for manifest in manifests[1:]:
        for field in attrs.fields(Manifest):
            first, other = getattr(manifests[0], field.name), getattr(manifest, field.name)
            if field.name == "settings":
                other = attrs.evolve(other, scope=first.scope)
            if field.name not in _VARIED and first != other:
                raise Unlike(
                    f"{field.name} {other} beside {first}",
                    where="compare",
                    cure="compare results of one trace, replay mode, specification and set of settings",
                )


def over_belady(results: Sequence[Result]) -> list[int | None]:
    """Lookups that found no record, beyond Belady's at the same budget and scope; None where Belady did not run."""
    least = {_place(result): _absent(result) for result in results if result.manifest.policy == "belady"}
    return [_absent(result) - least[_place(result)] if _place(result) in least else None for result in results]


def _place(result: Result) -> tuple[int | None, int | None, str]:
    return result.manifest.slots, result.manifest.bytes, result.manifest.settings.scope


def _absent(result: Result) -> int:
    return result.total.misses + result.total.bypassed


def _warnings(results: Sequence[Result], notes: Sequence[str], budgets: Mapping[Budget, str]) -> list[str]:
    found = [
        f"{_limit(result, budgets)}, scope {result.manifest.settings.scope}: {warning}"
        for result in results
        for warning in result.warnings
    ]
    return list(dict.fromkeys([*found, *notes]))


def _limit(result: Result, budgets: Mapping[Budget, str]) -> str:
    return budgets[Budget(result.manifest.slots, result.manifest.bytes)]


def _entry(label: str, result: Result, gap: int | None) -> dict[str, Any]:
    manifest = result.manifest
    return {
        "policy": manifest.policy,
        "spelled": label,
        "parameters": manifest.parameters,
        "scope": manifest.settings.scope,
        "slots": manifest.slots,
        "bytes": manifest.bytes,
        **as_dict(result),
        "absent": _absent(result),
        "over_belady": gap,
    }


def _print(
    trace: Trace,
    names: Sequence[str],
    results: Sequence[Result],
    gaps: Sequence[int | None],
    budgets: Mapping[Budget, str],
) -> None:
    phases = sorted({str(phase) for result in results for phase in result.counters.per_phase()})
    counts = ("hits", "misses+bypassed", "reads", "bytes read", "evictions", "collisions", "over belady")
    rows = []
    for name, result, gap in zip(names, results, gaps, strict=True):
        total, by_phase = result.total, result.counters.per_phase()
        known = result.counters.peak_bytes > 0 or result.manifest.bytes is not None
        numbers: list[object] = [total.hits, _absent(result), total.reads, total.bytes_read if known else "unknown"]
        numbers += [total.evictions, total.collisions, "-" if gap is None else gap]
        rates = (rate(by_phase[p].hits, by_phase[p].lookups) if p in by_phase else "-" for p in phases)
        label = (name, result.manifest.settings.scope, _limit(result, budgets))
        rows.append([*label, *map(str, numbers), *rates])
    typer.echo(f"trace {trace.fingerprint}, {results[0].manifest.replay} replay, {results[0].total.lookups} lookups")
    print_table(trace.name, ("policy", "scope", "budget", *counts, *(f"{p} hits" for p in phases)), rows)
