"""libCacheSim's queue policies hit and evict the same on sequential replay, access by access, in all that it offers."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pytest

from expertcache_spec.eviction import Value
from expertcache_spec.model import Budget
from expertcache_spec.replay import Replay
from expertcache_spec.trace import decode_trace

Values = dict[str, Value]

TWINS: dict[str, tuple[str, Values, Values, int, int]] = {
    "arc": ("arc", {}, {}, 1, 1),
    "clock": ("clock", {}, {}, 1, 1),
    "clock in a queue": ("clock", {"place": "tail"}, {}, 1, 1),
    "clock, two bits": ("clock", {"ceiling": 3}, {"n_bit_counter": 2}, 1, 1),
    "clock, two bits, first at one": (
        "clock", {"ceiling": 3, "initial": 1}, {"n_bit_counter": 2, "init_freq": 1}, 1, 1),
    "s3-fifo": ("s3-fifo", {"fill": "main", "promotion": "go-on"}, {}, 20, 1),
    "s3-fifo, sizes": (
        "s3-fifo", {"fill": "main", "promotion": "go-on", "small": 0.3, "ghosts": 0.5, "threshold": 1},
        {"small_size_ratio": 0.3, "ghost_size_ratio": 0.5, "move_to_main_threshold": 1}, 7, 1),
    "sieve": ("sieve", {}, {}, 1, 1),
    "slru": ("slru", {"segments": 4, "protected": 0.75, "fill": "lowest-with-room"}, {}, 4, 4),
    "two-q": ("two-q", {}, {}, 4, 1),
    "two-q, sizes": ("two-q", {"a1in": 0.4, "a1out": 0.9}, {"a_in_size_ratio": 0.4, "a_out_size_ratio": 0.9}, 3, 1),
}  # fmt: skip
"""Policy, our parameters, theirs, and the capacities at which theirs works: the least one, and what they divide by."""


def cases(least: int, step: int, count: int, length: int) -> list[tuple[int, list[int]]]:
    """Capacities with sequences of ids: a hot set that drifts, and strangers."""
    found = []
    for seed in range(count):
        random = Random(seed)
        capacity = -(-random.randint(least, least + 30) // step) * step
        keys = random.randint(capacity + 1, 3 * capacity + 3)
        ids = []
        for time in range(length):
            hot = random.randrange(1 + keys // 3) + time // 100
            ids.append((hot if random.random() < 0.6 else random.randrange(keys)) % keys)
        found.append((capacity, ids))
    return found


def ours(policy: str, parameters: Values, capacity: int, ids: list[int]) -> list[object]:
    """Hits and victims of the specification."""
    trace = decode_trace([[number] for number in ids], experts=max(ids) + 1)
    steps = list(Replay(trace, policy, Budget(slots=capacity), mode="sequential", parameters=parameters))
    return [[bool(step.hits) for step in steps], [key.expert for step in steps for key in step.victims]]


def agree(name: str, count: int, length: int) -> int:
    """Compare both sequences over generated cases; the number of victims compared."""
    policy, mine, theirs, least, step = TWINS[name]
    chosen = cases(least, step, count, length)
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("classical_oracle.py"))],
        input=json.dumps([[policy, theirs, *case] for case in chosen]),
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    for number, (case, answer) in enumerate(zip(chosen, answers, strict=True)):
        assert answer == ours(policy, mine, *case), f"case {number} of {name}, capacity {case[0]}"
    return sum(len(victims) for _, victims in answers)


RULES = pytest.mark.rule(
    "XC-EVICT-090", "XC-EVICT-091", "XC-EVICT-092", "XC-EVICT-110", "XC-EVICT-111", "XC-EVICT-112", "XC-EVICT-115",
    "XC-EVICT-116", "XC-EVICT-117", "XC-EVICT-118", "XC-EVICT-125", "XC-EVICT-126", "XC-EVICT-127", "XC-EVICT-132",
    "XC-EVICT-133", "XC-EVICT-134", "XC-EVICT-135", "XC-EVICT-140", "XC-EVICT-141", "XC-EVICT-142", "XC-REPLAY-003",
)  # fmt: skip
NEEDS_ORACLE = pytest.mark.skipif(find_spec("libcachesim") is None, reason="libcachesim is not installed (`oracle`)")


@RULES
@NEEDS_ORACLE
@pytest.mark.parametrize("name", TWINS)
def test_libcachesim_hits_and_evicts_the_same(name: str) -> None:
    assert agree(name, 25, 250) > 1_000


@RULES
@NEEDS_ORACLE
@pytest.mark.nightly
@pytest.mark.parametrize("name", TWINS)
def test_libcachesim_hits_and_evicts_the_same_in_much_more_volume(name: str) -> None:
    assert agree(name, 100, 1_000) > 10_000


DIFFERENT: dict[str, tuple[str, Values]] = {
    "p in whole steps": ("arc", {"step": "whole"}),
    "a visit at the insert": ("sieve", {"visited": True}),
    "the paper's filling": ("s3-fifo", {"fill": "small", "promotion": "go-on"}),
    "the paper's promotion": ("s3-fifo", {"fill": "main"}),
    "two segments": ("slru", {}),
    "a bit at the insert": ("clock", {"initial": 1}),
    "a longer A1in": ("two-q", {"a1in": 0.5}),
}


@pytest.mark.rule("XC-EVICT-094", "XC-EVICT-112", "XC-EVICT-116", "XC-EVICT-133", "XC-EVICT-140")
@pytest.mark.parametrize("name", DIFFERENT)
def test_every_choice_between_engines_shows_in_these_cases(name: str) -> None:
    # So that the agreement above is about the parameters it names, and not about cases that cannot tell.
    policy, other = DIFFERENT[name]
    _, mine, _, least, step = TWINS[policy]
    assert any(ours(policy, mine, *case) != ours(policy, other, *case) for case in cases(least, step, 25, 250))
