"""Minimal readers of the recordings in tests/data; the reference has the strict ones."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from expertcache_spec.model import Budget, Geometry
from expertcache_spec.replay import Replay
from expertcache_spec.residency import Settings, Step
from expertcache_spec.trace import Event, Recorded, Trace

DATA = Path(__file__).parents[1] / "data"


@cache
def bigmoe(name: str) -> Trace:
    """`qwen` or `gemma`: one prompt and its decode, with what the engine's cache did for every row."""
    sizes: list[int] = []
    experts = top_k = 0
    calls: dict[tuple[int, int], dict[int, list[tuple[int, bool, int]]]] = {}
    with gzip.open(DATA / "bigmoe-on-edge" / f"{name}.route.csv.gz", "rt") as file:
        for line in file:
            if not line.startswith("#"):
                break
            if found := re.search(r"layer=\d+ expert_bytes=(\d+)", line):
                sizes.append(int(found[1]))
            if found := re.search(r"n_expert=(\d+) n_expert_used=(\d+)", line):
                experts, top_k = int(found[1]), int(found[2])
        for _, phase, step, layer, _, expert, _, resident, size in csv.reader(file):
            # The whole prompt is one pass; each decoded token is another.
            call = calls.setdefault((0 if phase == "0" else int(step) + 1, int(layer)), {})
            call.setdefault(int(step), []).append((int(expert), resident != "0", int(size)))
    passes = {number: index for index, number in enumerate(dict.fromkeys(number for number, _ in calls))}
    events = []
    for (number, layer), rows in calls.items():
        first: dict[int, tuple[bool, int]] = {}
        for row in rows.values():
            for expert, hit, read in row:
                first.setdefault(expert, (hit, read))
        recorded = Recorded(tuple(hit for hit, _ in first.values()), tuple(read for _, read in first.values()))
        batch = tuple(tuple(expert for expert, _, _ in row) for row in rows.values())
        events.append(Event(layer, batch, 0, passes[number], "prefill" if number == 0 else "decode", recorded=recorded))
    return Trace(Geometry(len(sizes), experts, top_k, tuple(sizes)), tuple(events), name)


@cache
def gpt_oss(name: str, requests: int | None = None) -> Trace:
    """Decode of gpt-oss-20b, 24 layers x 32 experts, top-4, one stream a request; the first `requests` of them."""
    events = []
    with gzip.open(DATA / "gpt-oss-20b" / f"gptoss20b_{name}.jsonl.gz", "rt") as file:
        for stream, line in enumerate(file):
            if stream == requests:
                break
            for number, token in enumerate(json.loads(line)["ids"]):
                events += [Event(layer, (tuple(ids),), stream, number) for layer, ids in enumerate(token)]
    return Trace(Geometry(24, 32, 4), tuple(events), f"gpt-oss-20b {name}")


def beginning(trace: Trace, passes: int) -> Trace:
    """The events of the first `passes` passes of every stream."""
    return Trace(trace.geometry, tuple(e for e in trace.events if e.pass_index < passes), trace.name)


def replayed(
    trace: Trace, policy: str, budget: Budget, settings: Settings | None = None
) -> Iterator[tuple[Event, Step]]:
    """The events of a replay with their steps."""
    run = Replay(trace, policy, budget, settings or Settings())
    return zip(run.events, run, strict=True)
