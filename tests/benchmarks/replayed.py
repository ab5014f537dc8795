"""The specification's replay in a process of its own: prints CPU seconds and misses as JSON.

`python -m tests.benchmarks.replayed POLICY TOKENS` measures one replay, cold start, the making of the machine (and of
Belady's index of the future) included; the trace is built before. `python -m tests.benchmarks.replayed POLICY growth
LOOKUPS` measures one policy at every capacity of `CAPACITIES`, each after a warm-up that is not measured.
"""

from __future__ import annotations

import gc
import json
import sys
import time

from tests.benchmarks.traces import CAPACITIES, CAPACITY, as_trace, routing, steady

from expertcache_spec.model import Budget
from expertcache_spec.replay import Replay
from expertcache_spec.trace import Trace


def run(trace: Trace, policy: str, slots: int, warm: int = 0) -> dict[str, float]:
    """CPU seconds and misses of a replay, without its first `warm` events where there are any."""
    gc.collect()
    gc.freeze()  # the trace is the input: the collector need not walk it
    start = time.process_time()
    replay = Replay(trace, policy, Budget(slots=slots))
    steps, before = iter(replay), 0
    if warm:
        for _, _ in zip(range(warm), steps, strict=False):
            pass
        before, start = replay.machine.counters.total().misses, time.process_time()
    for _ in steps:
        pass
    seconds = time.process_time() - start
    return {"seconds": seconds, "misses": replay.machine.counters.total().misses - before}


def main() -> None:
    """Measure what the arguments say."""
    policy, what = sys.argv[1:3]
    if what != "growth":
        print(json.dumps(run(as_trace(routing(int(what))), policy, CAPACITY)))
        return
    lookups, found = int(sys.argv[3]), {}
    for capacity in CAPACITIES:
        trace, warm = steady(capacity, lookups)
        found[capacity] = run(trace, policy, capacity, warm)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
