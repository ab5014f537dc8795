"""Policies of the caching literature: CLOCK and CLOCK-LRU-K, SLRU, ARC, 2Q, S3-FIFO, SIEVE.

They keep queues, and choosing a victim is a step of the queues themselves: hands turn, counts fall, ghosts are written.
In both forms of all of them `victim` therefore takes the key out at once, so that a second question before `evict`
goes on where the first one stopped; `evict` removes what has not left that way: the record of a failed read, which
leaves no ghost. When everything is held nothing moves.

One event is one step. Its hits come first, in router order; then the ghosts that its misses meet, all before the first
victim; then its victims; then its inserts, in router order. A queue's size, where a rule compares it, counts the
earlier misses of the same event as already in it, so that a batch takes its victims from the queues that the same keys
one by one would take them from. Order inside a queue of recency is touch order; inside a queue of age, order of insert.
"""

from __future__ import annotations

from expertcache_spec.eviction.cards import Card
from expertcache_spec.eviction.classical import arc, clock, clock_lru_k, s3_fifo, sieve, slru, two_q

CARDS: tuple[Card, ...] = (
    clock.CARD,
    clock_lru_k.CARD,
    slru.CARD,
    arc.CARD,
    two_q.CARD,
    s3_fifo.CARD,
    sieve.CARD,
)
