"""`expertcache identify`: which policies, parameters and settings explain what a cache did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import attrs
import typer

from expertcache_reference.cli import options
from expertcache_reference.cli.console import load, print_json, print_table, tracked, warn
from expertcache_reference.cli.failures import BAD_TRACE, complain
from expertcache_reference.cli.logs import is_log, pieces_of
from expertcache_spec.eviction import POLICIES
from expertcache_spec.eviction.spelling import Spelled, spell
from expertcache_spec.history import InvalidLog, read_log
from expertcache_spec.history.extract import decisions
from expertcache_spec.history.reading import Line
from expertcache_spec.identify import Candidate, Finding, Observed, identify, observed
from expertcache_spec.identify import explain as explained
from expertcache_spec.model import Budget, Geometry
from expertcache_spec.residency import SETTINGS

_SHOWN = 10
"""Findings that are printed beside the explanations."""
_BESIDE = ("pin", "prefetch", "rebind", "reset", "resize", "seed")
"""Lines of a log that change what is resident, or may be evicted, beside the events."""


def identify_command(
    source: options.Source,
    budget: options.SizeBudget = None,
    slots: options.Slots = None,
    policies: Annotated[
        str | None, typer.Option("--policies", metavar="P[,P...]", help="Try only these; parameters are kept as given.")
    ] = None,
    sold_as: Annotated[
        str | None, typer.Option("--sold-as", metavar="POLICY", help="What the cache claims to be, under the settings.")
    ] = None,
    scope: options.Scope = None,
    room: options.Room = None,
    touch: options.Touch = None,
    repeats: options.Repeats = None,
    overflow: options.Overflow = None,
    admission: options.Admission = None,
    record_bytes: options.RecordBytes = None,
    profile: options.ProfileName = None,
    as_json: options.Json = False,
) -> None:
    """Find the policies that explain a recording, step by step; exit 1 when none does, or the claim does not."""
    given = {"scope": scope, "room": room, "touch": touch, "repeats": repeats, "overflow": overflow}
    chosen: Any = options.settings(profile, admission=admission, **given)
    fixed = {name: value for name, value in {**given, "admission": admission}.items() if value is not None}
    asked = [] if policies is None else [options.policy(name, None) for name in options.listed(policies, "--policies")]
    tried = None if policies is None else [_bound(spelled) for spelled in asked]
    if overflow is None and profile is None:
        chosen = attrs.evolve(chosen, overflow="bypass")  # as candidates are tried
    if is_log(source):
        model, limit, log, fixed, sold_as = _of_log(source, slots, budget, fixed, sold_as)
    else:
        trace, notes = load(source, record_bytes)
        limit, _ = options.budget(slots, budget)
        warn(notes)
        model, log = trace.geometry, observed(trace)
    claim = None if sold_as is None else options.for_model(options.policy(sold_as, None), model)
    for spelled in asked:
        options.for_model(spelled, model)
    chosen = attrs.evolve(chosen, **fixed)
    sold = None if claim is None else explained(model, limit, log, Candidate(claim.card, claim.parameters, chosen))
    found = identify(model, limit, log, tried, watch=_watched, **fixed)
    if as_json:
        print_json(_as_data(len(log), sold, found))
    else:
        _print(len(log), sold, found)
    if not any(finding.explains_all for finding in found) or (sold is not None and not sold.explains_all):
        raise typer.Exit(BAD_TRACE)


def _of_log(
    source: str, slots: int | None, budget: str | None, fixed: dict[str, Any], sold_as: str | None
) -> tuple[Geometry, Budget, list[Observed], dict[str, Any], str | None]:
    """Model, budget, events, settings and claim of an event log; what was given on the command line comes first."""
    try:
        with pieces_of(Path(source)) as (raw, total), tracked(raw, total, f"reading {options.shown(source)}") as pieces:
            header, lines = read_log(pieces, source)
            seen: set[str] = set()
            log = [Observed(d.event, frozenset(d.hits), frozenset(d.victims)) for d in decisions(_noted(lines, seen))]
    except InvalidLog as error:
        complain(error)
        raise typer.Exit(BAD_TRACE) from None
    beside = [op for op in _BESIDE if op in seen]
    if beside:
        warn([f"the log has lines of {', '.join(beside)}, which no candidate replays: `expertcache check` judges them"])
    limit = header.budget if slots is None and budget is None else options.budget(slots, budget)[0]
    declared = {name: getattr(header.settings, name) for name in SETTINGS if name not in ("touch", "repeats")}
    if sold_as is None and header.policy in POLICIES:
        sold_as = spell(str(header.policy), header.parameters)
    elif sold_as is None and header.policy is not None:
        warn([f"the log declares policy {header.policy!r}, which is none of the specification: name its card, "
              "--sold-as module:CARD, to have it tried"])  # fmt: skip
    return header.geometry, limit, log, {**declared, **fixed}, sold_as


def _noted(lines: Iterator[Line], seen: set[str]) -> Iterator[Line]:
    for line, record in lines:
        seen.add(record["op"])
        yield line, record


def _bound(spelled: Spelled) -> Any:
    return spelled.card.setting(str(spelled), **spelled.parameters) if spelled.parameters else spelled.card


def _watched(candidates: list[Candidate]) -> Iterator[Candidate]:
    with tracked(candidates, len(candidates), "trying policies") as shown:
        yield from shown


def _as_data(events: int, sold: Finding | None, found: list[Finding]) -> dict[str, Any]:
    return {
        "events": events,
        "sold_as": None if sold is None else _entry(sold),
        "explanations": [_entry(finding) for finding in found if finding.explains_all],
        "others": [_entry(finding) for finding in found if not finding.explains_all],
    }


def _entry(finding: Finding) -> dict[str, Any]:
    candidate = finding.candidate
    return {
        "policy": candidate.card.name,
        "parameters": dict(candidate.parameters),
        "settings": {name: getattr(candidate.settings, name) for name in SETTINGS},
        "agreed": finding.agreed,
        "difference": finding.difference,
    }


def _print(events: int, sold: Finding | None, found: list[Finding]) -> None:
    if sold is not None:
        verdict = "explains all" if sold.explains_all else f"differs at event {sold.agreed}: {sold.difference}"
        typer.echo(f"sold as {sold.candidate.words}: {verdict}")
    explanations = [finding for finding in found if finding.explains_all]
    typer.echo(f"{len(explanations)} of {len(found)} candidates explain all {events} events")
    for finding in explanations:
        typer.echo(f"  {finding.candidate.words}")
    others = [finding for finding in found if not finding.explains_all][: 0 if explanations else _SHOWN]
    if others:
        rows = ((f.candidate.words, str(f.difference), str(f.agreed)) for f in others)
        print_table("closest", ("candidate", "at the first difference it", "events explained"), rows, left=2)
