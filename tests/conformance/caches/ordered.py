"""An LRU on OrderedDict that serves whole events: what an engine author writes first, done right."""

from collections import OrderedDict

PROFILE = {"name": "ordered", "version": "1.0", "replay": "event", "policies": ["lru"]}


class Cache:
    def __init__(self, slots):
        self.slots, self.keys = slots, OrderedDict()

    def step(self, event):
        if len(event.keys) > self.slots:
            return {"bypassed": event.keys, "hits": []} if not self.slots else {"error": "event-too-large"}
        hits = [key for key in event.keys if key in self.keys]
        misses = [key for key in event.keys if key not in self.keys]
        victims = []
        for key in misses:
            if len(self.keys) == self.slots:
                victims.append(next(other for other in self.keys if other not in event.keys))
                del self.keys[victims[-1]]
            self.keys[key] = None
        for key in event.selections():
            self.keys.move_to_end(key)
        return {"hits": hits, "misses": misses, "victims": victims}


def open_cache(config):
    return Cache(config.slots)
