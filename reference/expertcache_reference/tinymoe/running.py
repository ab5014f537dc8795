"""The model that ships, loaded and checked: its dense part, its store to stream from, its records to hold whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import attrs

from expertcache_reference.compute import Resident, backend
from expertcache_reference.compute.records import Array
from expertcache_reference.stores import FileStore, open_store
from expertcache_reference.tinymoe.decode import Step
from expertcache_reference.tinymoe.network import Network
from expertcache_reference.tinymoe.shape import TINY
from expertcache_reference.tinymoe.weights import checked, dense, recipe, records, weights_path
from expertcache_spec.layout.files import WrongFile


@attrs.frozen
class Loaded:
    """The network, the store of its experts, and the bytes of the file that both are of."""

    network: Network
    store: FileStore
    sha256: str
    _data: bytes = attrs.field(repr=False)

    def resident(self) -> Resident:
        """Every expert in memory, read apart from the store."""
        return Resident(records(self._data, TINY, "weights"))


@contextmanager
def loaded(compute: str = "numpy", packed: Path | None = None, look: int = 0) -> Iterator[Loaded]:
    """The model for as long as the block lasts.

    compute: the backend. packed: a store of the same experts that `expertcache pack` wrote, to stream from instead of
    the file that ships. look: as `Network`'s. Raises `WrongFile` where the weights do not have the fingerprint of the
    recipe, or the store has other records; `UnknownName` and `MissingBackend` for the backend.
    """
    told, computes = recipe(), backend(compute, TINY.width, TINY.hidden)
    with weights_path() as path:
        data = checked(path, told["sha256"])
        store = open_store(path if packed is None else packed)
        if packed is not None and store.fingerprint != told["records"]:
            said = "its records are not the tiny model's" if store.recorded else "no store that `pack` has made"
            cure = f"stream from what `pack` makes of this version's {path.name}, or leave the option out"
            raise WrongFile(said, where=str(packed), cure=cure)
        yield Loaded(Network(dense(data, TINY, str(path)), computes, look), store, told["sha256"], data)


class Compared(NamedTuple):
    """Logits that were compared bit by bit, how many differ, and the first pass in which one does."""

    logits: int
    differ: int
    first: int | None


def compare(one: Iterable[tuple[Array, int | None]], other: Iterable[Step]) -> Compared:
    """The logits and chosen bytes of two decodings, pass by pass; raises `ValueError` where one is longer."""
    logits = differ = 0
    first: int | None = None
    for number, ((expected, chosen), step) in enumerate(zip(one, other, strict=True)):
        apart = int((expected.view("u4") != step.logits.view("u4")).sum())
        if first is None and (apart or chosen != step.chosen):
            first = number
        logits, differ = logits + expected.size, differ + apart
    return Compared(logits, differ, first)
