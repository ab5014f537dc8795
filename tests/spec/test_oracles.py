"""Caches of other people agree: cachetools and libCacheSim, on sequential replay, one key at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import cachetools
import pytest

from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import Replay
from expertcache_spec.trace import Trace, decode_trace

from . import recordings
from .strategies import random_trace


def single_key_traces() -> list[tuple[Trace, int]]:
    """Small traces with a capacity below their number of keys, and two beginnings of recordings."""
    found = []
    for seed in range(60):
        random = Random(seed)
        keys = random.randint(3, 12)
        ids = [[random.randrange(keys) if random.random() < 0.7 else random.randrange(3)] for _ in range(120)]
        found.append((decode_trace(ids, experts=12), random.randint(1, keys - 1)))
    batches = random_trace(Random(1), Geometry(3, 16, 4), streams=2, passes=40)
    recorded = recordings.beginning(recordings.gpt_oss("instruct_facts", requests=3), 15)
    prompt = recordings.beginning(recordings.bigmoe("gemma"), 2)
    return [*found, (batches, 20), (recorded, 140), (prompt, 300)]


def sequential(trace: Trace, policy: str, slots: int) -> tuple[list[Key], list[bool], list[Key]]:
    """The accesses, which of them hit, and every victim in order."""
    run = Replay(trace, policy, Budget(slots=slots), mode="sequential")
    steps = list(run)
    accesses = [event.keys[0] for event in run.events]
    return accesses, [bool(step.hits) for step in steps], [key for step in steps for key in step.victims]


def watched(kind: type[Any], slots: int, victims: list[Key]) -> Any:
    """A cachetools cache of that kind that notes what it evicts."""

    class Watched(kind):  # type: ignore[misc]
        def popitem(self) -> tuple[Key, None]:
            key, value = super().popitem()
            victims.append(key)
            return key, value

    return Watched(maxsize=slots)


@pytest.mark.rule("XC-EVICT-010", "XC-EVICT-020", "XC-EVICT-040", "XC-EVICT-041", "XC-EVICT-042", "XC-REPLAY-003")
@pytest.mark.parametrize(
    ("policy", "kind"),
    [("lru", cachetools.LRUCache), ("lfu-reset", cachetools.LFUCache), ("fifo", cachetools.FIFOCache)],
)
def test_cachetools_hits_and_evicts_the_same(policy: str, kind: type[Any]) -> None:
    evicted = 0
    for trace, slots in single_key_traces():
        accesses, hits, victims = sequential(trace, policy, slots)
        theirs: list[Key] = []
        cache = watched(kind, slots, theirs)
        for key, hit in zip(accesses, hits, strict=True):
            assert (cache.get(key, "absent") is None) == hit
            if not hit:
                cache[key] = None
        assert theirs == victims
        evicted += len(victims)
    assert evicted > 3_000


@pytest.mark.skipif(find_spec("libcachesim") is None, reason="libcachesim is not installed (extra `oracle`)")
@pytest.mark.rule("XC-EVICT-010", "XC-EVICT-020", "XC-EVICT-040", "XC-EVICT-042", "XC-EVICT-050", "XC-REPLAY-003")
@pytest.mark.parametrize("policy", ["lru", "fifo", "lfu-reset", "belady"])
def test_libcachesim_hits_the_same(policy: str) -> None:
    # Its Belady inserts by force and breaks ties among keys never asked for again otherwise, which no hit can show.
    cases, ours = [], []
    for trace, slots in single_key_traces():
        accesses, hits, _ = sequential(trace, policy, slots)
        width = trace.geometry.experts
        cases.append([policy, slots, [key.layer * width + key.expert for key in accesses]])
        ours.append(hits)
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("libcachesim_oracle.py"))],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    assert [sum(hits) for hits in theirs] == [sum(hits) for hits in ours]
    assert theirs == ours
