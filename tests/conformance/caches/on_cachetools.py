"""cachetools' LRU, one key at a time; and the same sold as an event cache, which it is not."""

import types

import cachetools

PROFILE = {"name": "cachetools", "version": cachetools.__version__, "replay": "sequential", "policies": ["lru"]}


class Recording(cachetools.LRUCache):
    def __init__(self, maxsize):
        super().__init__(maxsize)
        self.victims = []

    def popitem(self):
        key, value = super().popitem()
        self.victims.append(key)
        return key, value


class Cache:
    def __init__(self, config):
        self.config, self.cache = config, Recording(config.slots)

    def access(self, key):
        self.cache.victims = []
        if not self.config.slots:
            return {"hit": False, "bypassed": True}
        hit = self.cache.get(key) is not None
        if not hit:
            self.cache[key] = True
        return {"hit": hit, "victims": self.cache.victims}

    def step(self, event):
        """Key by key, which makes the event's own keys victims."""
        if not self.config.slots:
            return {"hits": [], "bypassed": event.keys}
        answers = {key: self.access(key) for key in event.keys}
        return {
            "hits": [key for key, answer in answers.items() if answer["hit"]],
            "misses": [key for key, answer in answers.items() if not answer["hit"]],
            "victims": [victim for answer in answers.values() for victim in answer["victims"]],
        }


def open_cache(config):
    return Cache(config)


as_event_cache = types.SimpleNamespace(PROFILE={**PROFILE, "replay": "event"}, open_cache=open_cache)
