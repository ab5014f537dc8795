"""Smaller scenarios: with an event, a key, a request or a cost less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.schedule import Load, Scenario


def weight(scenario: Scenario) -> tuple[int, ...]:
    """How large a scenario is: events, keys, requests, then the numbers in it."""
    loads, how = scenario.loads, scenario.discipline
    keys = sum(len(load.keys) + len(load.missing) + len(load.victims) + len(load.prefetches) for load in loads)
    store = scenario.storage
    storage = (store.workers, store.lanes, store.latency, store.warm_percent, store.warm_latency or 0)
    numbers = [*attrs.astuple(scenario.costs), *storage, how.threshold, how.tokens, how.entries]
    numbers += [number for load in loads for number in (load.stream, load.tokens, load.entries)]
    requests = [request.bytes for record in scenario.records for request in record]
    return len(loads), keys, len(requests), sum(numbers) + sum(requests)


def smaller_scenarios(scenario: Scenario) -> Iterator[Scenario]:
    """Every scenario that is smaller in one place, the large steps first."""
    for change in _changes(scenario):
        try:
            yield attrs.evolve(scenario, **change())
        except ExpertCacheError:
            continue  # what contradicts itself is no scenario


def _changes(scenario: Scenario) -> Iterator[Any]:
    loads, records = scenario.loads, scenario.records
    for n in range(len(loads)):
        yield lambda n=n: {"loads": loads[:n] + loads[n + 1 :]}
    for n, load in enumerate(loads):
        for less in _less(load):
            yield lambda n=n, load=load, less=less: {"loads": (*loads[:n], attrs.evolve(load, **less), *loads[n + 1 :])}
    for n, record in enumerate(records):
        for i, (stage, size) in enumerate(record):
            if sum(request.stage == stage for request in record) > 1:
                yield lambda n=n, i=i, r=record: {"records": (*records[:n], r[:i] + r[i + 1 :], *records[n + 1 :])}
            for fewer in {1, size // 2, size - 1} - {0, size}:
                cut = (*record[:i], record[i]._replace(bytes=fewer), *record[i + 1 :])
                yield lambda n=n, cut=cut: {"records": (*records[:n], cut, *records[n + 1 :])}
    if len(records) > 1:
        yield lambda: {"records": records[:1]}
    for name in ("costs", "storage", "discipline"):
        yield from _fewer(scenario, name)


def _fewer(scenario: Scenario, name: str) -> Iterator[Any]:
    owner = getattr(scenario, name)
    for field, value in attrs.asdict(owner).items():
        if type(value) is int and not field.endswith("bandwidth"):
            for less in dict.fromkeys((0, 1, value // 2, value - 1)):
                if 0 <= less < value:
                    yield lambda field=field, less=less: {name: attrs.evolve(owner, **{field: less})}


def _less(load: Load) -> Iterator[dict[str, Any]]:
    for key in load.keys:
        yield {"keys": tuple(k for k in load.keys if k != key), "missing": load.missing - {key}}
    for key in sorted(load.missing):
        yield {"missing": load.missing - {key}}
    for name in ("victims", "prefetches"):
        for key in getattr(load, name):
            yield {name: tuple(k for k in getattr(load, name) if k != key)}
    for name in ("stream", "tokens", "entries"):
        if getattr(load, name):
            yield {name: getattr(load, name) - 1}
