"""Runs the queue policies of libCacheSim over JSON cases; its own process, because it is GPL and aborts.

Reads [[policy, its parameters, capacity, [ids]], ...] from standard input and prints for each the hits, one truth value
an access, and the victims. It names no victim itself: after a miss it is asked for every key that was resident.
"""

from __future__ import annotations

import json
import sys

import libcachesim

KINDS = {
    "arc": libcachesim.ARC, "clock": libcachesim.Clock, "s3-fifo": libcachesim.S3FIFO, "sieve": libcachesim.Sieve,
    "slru": libcachesim.SLRU, "two-q": libcachesim.TwoQ,
}  # fmt: skip


def request(number: int, time: int) -> libcachesim.Request:
    """A request of one key of size 1; keys and times are numbered from 1."""
    return libcachesim.Request(
        obj_size=1, op=libcachesim.ReqOp.OP_GET, obj_id=number + 1, clock_time=time + 1, next_access_vtime=1 << 62
    )


def run(policy: str, parameters: dict[str, float], capacity: int, ids: list[int]) -> tuple[list[bool], list[int]]:
    """The hit sequence and the victims."""
    cache = KINDS[policy](cache_size=capacity, hashpower=12, **parameters)
    hits: list[bool] = []
    victims: list[int] = []
    resident: set[int] = set()
    for time, number in enumerate(ids):
        hits.append(bool(cache.get(request(number, time))))
        if not hits[-1]:
            gone = [key for key in sorted(resident) if cache.find(request(key, time), False) is None]
            victims += gone
            resident.difference_update(gone)
            resident.add(number)
    return hits, victims


if __name__ == "__main__":
    json.dump([run(*case) for case in json.load(sys.stdin)], sys.stdout)
