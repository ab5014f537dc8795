"""What compute asks of whoever has the bytes: the runtime, or a model that lies in memory as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, Protocol

from expertcache_spec.model import Key
from expertcache_spec.trace import Event


class Group(Protocol):
    """Records whose bytes are there."""

    @property
    def keys(self) -> Sequence[Key]:
        """The records, in the order in which to compute them."""
        ...


class Served(Protocol):
    """One event with its bytes, as `runtime.Work`: batches come as their bytes do, every key once."""

    def batches(self) -> Iterator[Group]:
        """The event's records, group by group."""
        ...

    def record(self, key: Key) -> memoryview:
        """The bytes of a record of a group that has come; valid until the block ends."""
        ...


Serve = Callable[[Event], AbstractContextManager[Served]]
"""Serves one event; `Runtime.serve` is one."""


class All(NamedTuple):
    """A group of everything."""

    keys: tuple[Key, ...]


class Whole(NamedTuple):
    """An event whose records all lie in memory."""

    event: Event
    records: Mapping[Key, bytes]

    def batches(self) -> Iterator[All]:
        """As `Served`: one group."""
        yield All(self.event.keys)

    def record(self, key: Key) -> memoryview:
        """As `Served`."""
        return memoryview(self.records[key])


class Resident(NamedTuple):
    """A model without a cache: every record in memory."""

    records: Mapping[Key, bytes]

    def serve(self, event: Event) -> AbstractContextManager[Served]:
        """As `Serve`."""
        return nullcontext(Whole(event, self.records))
