"""Once-first: records used once since they came leave before records used again; of each kind the least recent."""

from expertcache_spec.eviction import Card, Past, Policy
from expertcache_spec.eviction.base import by_order
from expertcache_spec.eviction.index import Ranks
from expertcache_spec.model import Key


# [rule]
def order(past: Past, key: Key) -> tuple[bool, int]:
    """The key with the least tuple is the victim."""
    return (past.uses[key] > 1, past.touched[key])


rule = by_order(order)
RULE = Card("once-first", "XC-EVICT-002", rule, rule, "used once, then least recent", "this tutorial", "O(resident)")
# [/rule]


# [quick]
class Quick(Policy):
    """A first index: file a key whenever it is used."""

    def __init__(self) -> None:
        self.uses: dict[Key, int] = {}
        self.index = Ranks()

    def hit(self, key: Key, now: int) -> None:
        """One more use."""
        self.uses[key] += 1
        self.index.file(key, self.uses[key] > 1)

    def insert(self, key: Key, now: int) -> None:
        """The first use."""
        self.uses[key] = 1
        self.index.file(key, False)

    def victim(self, held, incoming):  # type: ignore[no-untyped-def]
        """The earliest filed of the least rank that nothing holds."""
        return self.index.first(held)

    def evict(self, key: Key) -> None:
        """Gone."""
        self.index.remove(key)

    def forget(self) -> None:
        """Reset of history: no key has been used."""
        self.uses = dict.fromkeys(self.uses, 0)
        self.index.rank_again(lambda key: False)


QUICK = Card("once-first", "XC-EVICT-002", rule, Quick, "used once, then least recent", "this tutorial", "O(1)")
# [/quick]


# [settled]
class OnceFirst(Quick):
    """The index that keeps the rule: recency inside an event is settled at its end, in touch order."""

    def settle(self, keys) -> None:  # type: ignore[no-untyped-def]
        """File the event's keys again, the most recently touched last."""
        for key in keys:
            self.index.file(key, self.uses[key] > 1)


CARD = Card("once-first", "XC-EVICT-002", rule, OnceFirst, "used once, then least recent", "this tutorial", "O(1)")
# [/settled]
