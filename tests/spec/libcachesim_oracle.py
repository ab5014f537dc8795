"""Runs libCacheSim over JSON cases; its own process, because it is GPL and aborts on what it does not like.

Reads [[policy, capacity, [ids]], ...] from standard input and prints for each the hits, one truth value an access.
"""

from __future__ import annotations

import json
import sys

import libcachesim

KINDS = {"lru": libcachesim.LRU, "fifo": libcachesim.FIFO, "lfu-reset": libcachesim.LFU, "belady": libcachesim.Belady}
NEVER = 1 << 62  # -1, its own mark, aborts the process when it comes from Python


def hits(policy: str, capacity: int, ids: list[int]) -> list[bool]:
    """The hit sequence; objects are numbered from 1, times from 1, as its oracle format does."""
    cache = KINDS[policy](cache_size=capacity, hashpower=12)
    following, coming = [NEVER] * len(ids), {}
    for place in reversed(range(len(ids))):
        following[place] = coming.get(ids[place], NEVER)
        coming[ids[place]] = place + 1
    found = []
    for place, number in enumerate(ids):
        request = libcachesim.Request(
            obj_size=1, op=libcachesim.ReqOp.OP_GET, obj_id=number + 1, clock_time=place + 1,
            next_access_vtime=following[place],
        )  # fmt: skip
        found.append(bool(cache.get(request)))
    return found


if __name__ == "__main__":
    json.dump([hits(*case) for case in json.load(sys.stdin)], sys.stdout)
