"""A textbook LRU over all layers, one key after the other."""

from collections import OrderedDict

PROFILE = {"name": "firstcache", "policies": ["lru"]}


class Cache:
    def __init__(self, config):
        self.slots = config.slots
        self.recency = OrderedDict()

    def step(self, event):
        hits, misses, victims = [], [], []
        for key in event.keys:
            if key in self.recency:
                hits.append(key)
                self.recency.move_to_end(key)
            else:
                misses.append(key)
                if len(self.recency) == self.slots:
                    victims.append(self.recency.popitem(last=False)[0])
                self.recency[key] = None
        return {"hits": hits, "misses": misses, "victims": victims}


def open_cache(config):
    return Cache(config)
