"""`pack`: the records of a store, copied into another format; whole or not at all, and resumable."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from expertcache_reference.stores.contents import Files, changed, chunks, content, digest, probe
from expertcache_reference.stores.disk import Disk
from expertcache_reference.stores.manifest import Manifest
from expertcache_reference.stores.opening import open_store
from expertcache_reference.stores.plans import Plan, plan
from expertcache_reference.stores.reading import Here
from expertcache_reference.stores.store import FileStore
from expertcache_reference.stores.work import Work, exists, kept
from expertcache_reference.traces.atomic import CannotWrite
from expertcache_spec.layout import fingerprint, pieces
from expertcache_spec.layout.files import WrongFile
from expertcache_spec.model import Key, format_size

_ABOUT_AN_INDEX = 100
"""Bytes of an index for each record: a digest and an offset."""


def pack(
    source: FileStore, target: str | Path, kind: str, *, alignment: int = 16384, restart: bool = False,
    progress: Callable[[int, int], object] = lambda done, total: None, disk: Disk | None = None,
) -> FileStore:  # fmt: skip
    """Copy every record of the source into a new store of another format, and open it.

    The product has its name when it is whole and on the device, not before. What is done when the process is killed,
    interrupted or refused by the disk stays in a work folder (`work`), and the same call continues it: records that
    are there are read again and compared. With `restart` they are thrown away. One process a product. `progress` is
    told the bytes that are done and those of all.

    Raises `CannotWrite` where the product has no name, exists, is being packed by another process, has no room or
    cannot be written; `WrongFile` where the source has other bytes than were recorded, or changes meanwhile;
    `UnknownName` for an unknown format or alignment.
    """
    path = Path(target)
    if not path.name:
        raise CannotWrite("is no name to make", where=repr(str(target)), cure="name the file or the folder to make")
    planned = plan(source.model, kind, path.name, alignment)
    work = Work(path, disk if disk is not None else Disk())
    packing = _Packing(source, planned, work, progress)
    with _refusing(path):
        if os.path.lexists(path):
            _sweep(work, packing.product)
            raise exists(path)
        try:
            packing.run(restart)
        finally:
            work.close()
    return open_store(path)


def _sweep(work: Work, product: Path) -> None:
    """Remove the work folder of a product that was named just before its process was killed."""
    if work.folder.is_dir() and not product.exists():
        try:
            work.take()
            work.remove()
        finally:
            work.close()


class _Packing:
    """One run of `pack`: the state that its steps share."""

    def __init__(self, source: FileStore, planned: Plan, work: Work, progress: Callable[[int, int], object]) -> None:
        self.source, self.plan, self.work, self._progress = source, planned, work, progress
        self.product = work.pack if planned.is_folder else work.pack / planned.index
        self.digests: dict[Key, str] = {}
        self._bytes = 0
        self._total = sum(source.layout.shape.record_bytes(key.layer) for key in source.layout.extents)

    def run(self, restart: bool) -> None:
        self.work.take()
        try:
            if restart:
                self.work.restart()
            self._copy()
        except BaseException:
            if self.work.is_empty():
                self.work.remove()
            raise

    def _copy(self) -> None:
        before = _identity(self.source)
        planned = fingerprint(self.plan.layout, self.plan.kind)
        listed = self.work.journal(json.dumps({"source": before, "target": planned}))
        self._check_room()
        self.work.prepare(self.plan.layout.files)
        with Files(self.work.pack, Here()) as files:
            for key, recorded in listed.items():
                if key in self.plan.layout.extents and digest(self.plan.layout, key, files) == recorded:
                    self._done(key, recorded)
        with Files(self.source.folder, Here()) as files:
            for key in self.source.layout.extents:
                if key not in self.digests:
                    self._copy_record(key, files)
        if _identity(self.source) != before:
            raise WrongFile("changed while it was packed", where=str(self.source.folder), cure="pack with --restart")
        self._finish()

    def _copy_record(self, key: Key, files: Files) -> None:
        found, start = hashlib.sha256(), 0
        for chunk in chunks(self.source.layout, key, files):
            found.update(chunk)
            view, at = memoryview(chunk), 0
            for file, offset, length in pieces(self.plan.layout.place(key), start, len(chunk)):
                self.work.write(self.work.pack / file, bytes(view[at : at + length]), offset)
                at += length
            start += len(chunk)
        if self.source.recorded is not None and self.source.recorded[key] != found.hexdigest():
            raise changed(self.source, key)
        self.work.note(key, found.hexdigest())
        self._done(key, found.hexdigest())

    def _done(self, key: Key, name: str) -> None:
        self.digests[key] = name
        self._bytes += self.source.layout.shape.record_bytes(key.layer)
        self._progress(self._bytes, self._total)

    def _check_room(self) -> None:
        index = _ABOUT_AN_INDEX * len(self.plan.layout.extents) if self.plan.is_folder else 0
        needed = sum(self.plan.layout.files.values()) + index - self.work.written()
        free = self.work.disk.free(self.work.folder)
        if free < needed:
            raise CannotWrite(
                f"needs {format_size(needed)}, and {format_size(free)} are free",
                where=str(self.work.target),
                cure="make room, or choose another disk",
            )

    def _finish(self) -> None:
        with Files(self.work.pack, Here()) as files:
            probes = {
                self.plan.probe_name(name): probe(self.plan.layout, name, files[name])
                for name in self.plan.layout.files
            }
        name = content(self.plan.model, self.digests)
        manifest = Manifest(self.plan.kind, self.plan.alignment, self.plan.model, self.digests, name, probes)
        head = self.plan.head(manifest)
        self.work.write(self.work.pack / self.plan.index, head, 0)
        if self.plan.is_folder:
            self.work.disk.resize(self.work.file(self.work.pack / self.plan.index), len(head))
        open_store(self.product)  # what cannot be opened gets no name
        self.work.finish(self.product)


def _identity(source: FileStore) -> str:
    """What a source must not change in while its records are copied; times only where no digest would tell."""
    files = {}
    for name in source.layout.files:
        found = (source.folder / name).stat()
        files[name] = [found.st_size, None if source.recorded else found.st_mtime_ns]
    return hashlib.sha256(json.dumps([source.kind, source.fingerprint, files]).encode()).hexdigest()


@contextmanager
def _refusing(target: Path) -> Iterator[None]:
    """Turns what the disk refuses into `CannotWrite`; says what is kept of a pack that ends in the middle."""
    try:
        yield
    except WrongFile as error:
        if not (said := kept(target)):
            raise
        raise WrongFile(error.what, where=error.where, cure=f"{error.cure}; {said}") from error
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        cure = "make room" if full else "choose a folder on a disk that can be written"
        raise CannotWrite(
            f"cannot be written: {error.strerror or error}",
            where=str(target),
            cure="; ".join(filter(None, [cure, kept(target)])),
        ) from error
