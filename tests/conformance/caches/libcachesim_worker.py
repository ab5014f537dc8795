"""Opens libCacheSim caches and serves ids, one JSON line each way."""

import json
import sys

import libcachesim

caches = []
for line in sys.stdin:
    request = json.loads(line)
    if "open" in request:
        caches.append((getattr(libcachesim, request["open"])(request["slots"], hashpower=10), request["slots"]))
        answer = len(caches) - 1
    else:
        cache, slots = caches[request["cache"]]
        asked = libcachesim.Request()
        asked.obj_id, asked.obj_size, asked.next_access_vtime = request["id"], 1, 2**62
        full = cache.get_n_obj() >= slots
        known = cache.find(asked, update_cache=False) is not None
        victim = cache.to_evict(asked).obj_id if full and not known else None
        answer = (bool(cache.get(asked)), victim)
    print(json.dumps(answer), flush=True)
