"""The specification's replay: `python -m tests.benchmarks.replayed POLICY TOKENS` prints CPU seconds and misses."""

from __future__ import annotations

import json
import sys
import time

from tests.benchmarks.traces import CAPACITY, as_trace, routing

from expertcache_spec.model import Budget
from expertcache_spec.replay import Replay


def main() -> None:
    """Time the replay alone: the trace is built before, the result summed up after."""
    policy, tokens = sys.argv[1], int(sys.argv[2])
    run = Replay(as_trace(routing(tokens)), policy, Budget(slots=CAPACITY))
    start = time.process_time()
    for _ in run:
        pass
    print(json.dumps({"seconds": time.process_time() - start, "misses": run.machine.counters.total().misses}))


if __name__ == "__main__":
    main()
