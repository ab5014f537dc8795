"""libCacheSim's own LRU, in a process of its own: the library is GPL and aborts its process on bad input."""

import atexit
import json
import subprocess
import sys
import types
from pathlib import Path

PROFILE = {"name": "libCacheSim", "version": "0.3.5", "replay": "sequential", "policies": ["lru"],
           "limits": {"min_slots": 1}}  # fmt: skip
_workers = []


def ask(**request):
    if not _workers:
        script = Path(__file__).with_name("libcachesim_worker.py")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        _workers.append(subprocess.Popen([sys.executable, str(script)], **pipes))
        atexit.register(_workers[0].kill)
    _workers[0].stdin.write(json.dumps(request) + "\n")
    _workers[0].stdin.flush()
    return json.loads(_workers[0].stdout.readline())


class Cache:
    def __init__(self, config, policy):
        self.experts = config.geometry.experts
        self.number = ask(open=policy, slots=config.slots)

    def access(self, key):
        layer, expert = key
        hit, victim = ask(cache=self.number, id=layer * self.experts + expert + 1)
        return {"hit": hit, "victims": [] if victim is None else [divmod(victim - 1, self.experts)]}


def implementation(claimed, real):
    return types.SimpleNamespace(
        PROFILE={**PROFILE, "policies": [claimed]}, open_cache=lambda config: Cache(config, real)
    )


lru = implementation("lru", "LRU")
fifo = implementation("fifo", "FIFO")
lfu = implementation("lfu-reset", "LFU")
lfu_sold_as_kept = implementation("lfu", "LFU")
