"""Contents: the bytes of records, and the names that they have in whatever layout they lie."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from expertcache_reference.stores.reading import Here, Opened, Opener
from expertcache_reference.stores.store import FileStore, Model
from expertcache_spec.layout import FoundFile, Layout, check_files, pieces
from expertcache_spec.layout.files import WrongFile
from expertcache_spec.model import Key

CHUNK = 8 * 2**20
"""Most bytes of a record that are held at once."""
PROBE = 4096
"""Bytes at each end of what a file holds of records that are compared when it is opened."""


class Files:
    """The files of a layout, opened as they are needed and closed together."""

    def __init__(self, folder: Path, machine: Opener) -> None:
        self._folder, self._machine, self._stack = folder, machine, ExitStack()
        self._open: dict[str, Opened] = {}

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __getitem__(self, name: str) -> Opened:
        if name not in self._open:
            self._open[name] = self._stack.enter_context(Opened(self._folder / name, self._machine))
        return self._open[name]


def chunks(layout: Layout, key: Key, files: Files) -> Iterator[bytes]:
    """The bytes of a record, end to end, a bounded piece at a time."""
    extents, size = layout.place(key), layout.shape.record_bytes(key.layer)
    for start in range(0, size, CHUNK):
        wanted = pieces(extents, start, min(CHUNK, size - start))
        yield b"".join(files[file].read(offset, length) for file, offset, length in wanted)


def digest(layout: Layout, key: Key, files: Files) -> str:
    """The SHA-256 of a record, in hexadecimal."""
    found = hashlib.sha256()
    for chunk in chunks(layout, key, files):
        found.update(chunk)
    return found.hexdigest()


def content(model: Model, digests: Mapping[Key, str]) -> str:
    """The fingerprint of a model's records: how each is cut into parts, and the SHA-256 of every one, in key order.

    Nothing of files, offsets or alignment goes into it: equal records have equal fingerprints in every layout
    (XC-LAYOUT-005).
    """
    found = hashlib.sha256(b"expertcache records 1\n")
    for layer, parts in model.parts.items():
        found.update(json.dumps([model.geometry.experts, layer, parts]).encode())
    for key in model.shape.keys():  # noqa: SIM118
        found.update(bytes.fromhex(digests[key]))
    return found.hexdigest()


def probe(layout: Layout, file: str, opened: Opened) -> str:
    """The SHA-256 of the first and last bytes that the file holds of records: a cheap look at whether it is the one."""
    extents = [extent for found in layout.extents.values() for extent in found if extent.file == file]
    first, last = min(extents, key=lambda e: e.offset), max(extents, key=lambda e: e.end)
    head = opened.read(first.offset, min(PROBE, first.length))
    tail = min(PROBE, last.length)
    return hashlib.sha256(head + opened.read(last.end - tail, tail)).hexdigest()


def verify(
    store: FileStore, machine: Opener | None = None, progress: Callable[[int, int], object] = lambda done, total: None
) -> str:  # fmt: skip
    """Read every record, compare each with what is recorded of it, and give the fingerprint of them all.

    Raises `WrongFile` naming the first record that is not what it was; with nothing recorded there is nothing to
    compare, and the fingerprint is what one learns. `progress` is told the bytes that are done and those of all.
    """
    found: dict[Key, str] = {}
    sizes, done = store.layout.shape.record_bytes, 0
    total = sum(sizes(key.layer) for key in store.layout.extents)
    with Files(store.folder, machine if machine is not None else Here()) as files:
        for key in store.layout.shape.keys():  # noqa: SIM118
            found[key] = digest(store.layout, key, files)
            if store.recorded is not None and store.recorded[key] != found[key]:
                raise changed(store, key)
            done += sizes(key.layer)
            progress(done, total)
    return content(store.model, found)


def changed(store: FileStore, key: Key) -> WrongFile:
    """The refusal of a record whose bytes are not those that were recorded."""
    first = store.layout.place(key)[0]
    return WrongFile(
        f"layer {key.layer}, expert {key.expert} has other bytes than were recorded",
        where=f"{store.folder / first.file}: byte {first.offset}",
        cure="the file is damaged: copy or pack it again",
    )


def check_found(folder: Path, layout: Layout, name: str, found: Mapping[str, FoundFile]) -> None:
    """As `check_files`, with the folder in what it raises (XC-LAYOUT-009)."""
    try:
        check_files(layout, name, found)
    except WrongFile as error:
        raise WrongFile(error.what, where=str(folder / error.where), cure=error.cure) from None
