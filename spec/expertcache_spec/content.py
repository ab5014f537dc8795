"""Content: which bytes an event may compute with, and models whose every byte is known.

The machine of chapter `residency` says when a record is there. This says what must be there: nothing but the record
itself, for as long as somebody may look.
"""

from __future__ import annotations

from hashlib import shake_128

from expertcache_spec.errors import WrongState
from expertcache_spec.model import Key
from expertcache_spec.residency import Residency


def computable(machine: Residency, ticket: int) -> frozenset[Key]:
    """The keys whose records the event of the ticket may compute with now (XC-BYTES-001).

    Those that it holds and that are not being read: hits from the selection on, misses from the end of their reads; and
    those that it is served without their being kept, which it reads for itself. A record whose read has failed is none
    of them (XC-BYTES-002). Raises `WrongState` for a ticket without a lease.
    """
    lease = machine.leases.get(ticket)
    if lease is None:
        raise WrongState("no lease", where=f"ticket {ticket}", cure="ask between the selection and the release")
    alone = {*lease.selection.refused, *lease.selection.bypassed}
    return frozenset(alone.union(key for key in lease.held if key not in machine.flights))


def pattern(fingerprint: str, key: Key, size: int) -> bytes:
    """The `size` bytes of a record of a model that exists to be looked at.

    They depend on the model's fingerprint, the key and the place, and look like noise (SHAKE128), so that a byte of
    another record, another place or another model is the right one by chance only, once in 256.

    >>> from expertcache_spec.content import pattern
    >>> from expertcache_spec.model import Key
    >>> pattern("model-a", Key(0, 3), 4).hex()
    'c300b49b'
    """
    return shake_128(f"{fingerprint}/{key.layer}/{key.expert}".encode()).digest(size)
