"""Prints the total row of one replay of a gpt-oss recording as JSON; run as a module, without contracts for speed."""

from __future__ import annotations

import json
import sys

import attrs

from expertcache_spec.model import Budget
from expertcache_spec.replay import Replay

from .recordings import gpt_oss

if __name__ == "__main__":
    name, policy, slots = sys.argv[1:]
    run = Replay(gpt_oss(name), policy, Budget(slots=int(slots)))
    for _ in run:
        pass
    print(json.dumps(attrs.asdict(run.machine.counters.total())))
