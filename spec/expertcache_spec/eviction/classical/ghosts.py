"""What the indexed forms of the queue policies share: bounded ghosts, and the choice between two queues."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection

from expertcache_spec.eviction.base import first_free
from expertcache_spec.model import Key

Queue = OrderedDict[Key, None]


def bound(ghosts: Queue, limit: int) -> None:
    """Forget the oldest ghosts beyond `limit`."""
    while len(ghosts) > limit:
        ghosts.popitem(last=False)


def first_of_two(one: Queue, other: Queue, held: Collection[Key]) -> tuple[Queue, Key | None]:
    """The first free key of `one`, else of `other`, after its queue; the key is None when neither has one."""
    key = first_free(one, held)
    return (one, key) if key is not None else (other, first_free(other, held))
