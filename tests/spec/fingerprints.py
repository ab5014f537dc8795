"""Prints a digest of many replays under each policy; run as a module, under different hash seeds."""

from __future__ import annotations

import hashlib
import json

from expertcache_spec.eviction import POLICIES

from .running import outcomes
from .strategies import random_case

if __name__ == "__main__":
    found = {}
    for policy in POLICIES:
        digest = hashlib.sha256()
        for seed in range(12):
            steps, counters, residents = outcomes(random_case(seed, policy), policy)
            digest.update(repr((steps, counters, sorted(residents))).encode())
        found[policy] = digest.hexdigest()
    print(json.dumps(found))
