"""An LRU over all layers that takes an event as a whole."""

from collections import OrderedDict

PROFILE = {"name": "mycache", "policies": ["lru"]}


class Cache:
    def __init__(self, config):
        self.slots = config.slots
        self.recency = OrderedDict()

    def step(self, event):
        if self.slots == 0:
            return {"hits": [], "misses": [], "bypassed": event.keys}
        if len(event.keys) > self.slots:
            return {"error": "event-too-large"}
        hits = [key for key in event.keys if key in self.recency]
        misses = [key for key in event.keys if key not in self.recency]
        lacking = len(self.recency) + len(misses) - self.slots
        victims = [key for key in self.recency if key not in event.keys][: max(lacking, 0)]
        for key in victims:
            del self.recency[key]
        for key in event.selections():  # repeats included: the last row that asks decides
            self.recency[key] = None
            self.recency.move_to_end(key)
        return {"hits": hits, "misses": misses, "victims": victims}


def open_cache(config):
    return Cache(config)
