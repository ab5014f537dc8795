"""The peers, each in a process of its own: `python -m tests.benchmarks.peers NAME TRACE` prints CPU seconds, misses."""

from __future__ import annotations

import json
import sys
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
from tests.benchmarks.traces import CAPACITY

PEERS = (
    "libcachesim_plugin_lru", "libcachesim_plugin_fifo", "libcachesim_native_lru",
    "cachetools_lru", "cachetools_fifo", "cachetools_lfu",
)  # fmt: skip


def cachetools_lru(keys: list[int]) -> int:
    """cachetools' LRUCache, one key at a time."""
    return _cachetools("LRUCache", keys)


def cachetools_fifo(keys: list[int]) -> int:
    """cachetools' FIFOCache."""
    return _cachetools("FIFOCache", keys)


def cachetools_lfu(keys: list[int]) -> int:
    """cachetools' LFUCache, which forgets the count of what it evicts."""
    return _cachetools("LFUCache", keys)


def _cachetools(kind: str, keys: list[int]) -> int:
    import cachetools

    cache, misses = getattr(cachetools, kind)(CAPACITY), 0
    for key in keys:
        if key in cache:
            cache[key]
        else:
            misses += 1
            cache[key] = None
    return misses


def libcachesim_plugin_lru(trace: str) -> int:
    """libCacheSim's Python plugin with an LRU written in its hooks, fed by its C loop."""
    return _plugin(trace, lambda data, request: data.move_to_end(request.obj_id))


def libcachesim_plugin_fifo(trace: str) -> int:
    """The same with a FIFO, whose hit does nothing."""
    return _plugin(trace, lambda data, request: None)


def _plugin(trace: str, hit: Any) -> int:
    import libcachesim as lcs

    def miss(data: Any, request: Any) -> None:
        data[request.obj_id] = None

    cache = lcs.PluginCache(
        CAPACITY, lambda _: OrderedDict(), hit, miss, lambda data, _: data.popitem(last=False)[0],
        lambda data, key: data.pop(key, None), lambda _: None, hashpower=14,
    )  # fmt: skip
    return _process(cache, trace)


def libcachesim_native_lru(trace: str) -> int:
    """libCacheSim's own LRU in C, on its best feed."""
    import libcachesim as lcs

    return _process(lcs.LRU(CAPACITY, hashpower=14), trace)


def _process(cache: Any, trace: str) -> int:
    import libcachesim as lcs

    parameters = lcs.ReaderInitParam(ignore_obj_size=True)
    reader = lcs.TraceReader(trace, lcs.TraceType.ORACLE_GENERAL_TRACE, parameters)
    ratio, _ = cache.process_trace(reader)
    return round(ratio * reader.get_num_of_req())


def main() -> None:
    """Time one peer, the load of its library excluded."""
    name, trace = sys.argv[1:]
    argument: Any = trace
    if name.startswith("cachetools"):
        import cachetools  # noqa: F401

        records = np.fromfile(
            Path(trace), dtype=np.dtype([("t", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")])
        )
        argument = records["id"].tolist()
    else:
        import libcachesim  # noqa: F401
    start = time.process_time()
    misses = globals()[name](argument)
    print(json.dumps({"seconds": time.process_time() - start, "misses": misses}))


if __name__ == "__main__":
    main()
