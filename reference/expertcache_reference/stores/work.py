"""The work folder of a pack: what is done so far, who does it, and how it becomes the product.

It lies beside the product as `.NAME.packing` and holds `lock`, which one process at a time may have; `journal`, one
line for each record that has been written; and `pack`, the product in the making. It is removed when the product has
its name, and when no record is in it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from expertcache_reference.stores.disk import Disk, write_all
from expertcache_reference.traces.atomic import CannotWrite
from expertcache_spec.model import Key


def work_folder(target: Path) -> Path:
    """Where the work for a product is kept."""
    return target.with_name(f".{target.name}.packing")


def kept(target: Path) -> str:
    """What to say of a pack that did not end; empty where nothing is kept of it."""
    folder, done = work_folder(target), 0
    with contextlib.suppress(OSError):
        done = len(_lines(folder / "journal")) - 1
    if done < 1:
        return ""
    return f"{done} records are kept in {folder}, and the same command continues; remove it to give them up"


def _lines(journal: Path) -> list[bytes]:
    """The whole lines of a journal, the header first; none where there is none."""
    return journal.read_bytes().split(b"\n")[:-1] if journal.is_file() else []


class Work:
    """The work folder, held by this process alone from `take` to `close`."""

    def __init__(self, target: Path, disk: Disk) -> None:
        self.target, self.folder, self.disk = target, work_folder(target), disk
        self.pack = self.folder / "pack"
        self._files: dict[Path, int] = {}
        self._journal_end = 0

    def take(self) -> None:
        """Make the folder and lock it; raises `CannotWrite` where another process holds it."""
        if self.folder.is_symlink():
            raise CannotWrite("a symbolic link", where=str(self.folder), cure="remove it")
        self.disk.make_folder(self.folder)
        try:
            lock = self.file(self.folder / "lock")
        except BaseException:
            self.disk.remove_empty(self.folder)
            raise
        alone = self.disk.lock(lock)
        try:
            ours = alone and os.fstat(lock).st_ino == (self.folder / "lock").stat().st_ino
        except FileNotFoundError:
            ours = False  # the other has finished meanwhile, and removed what we opened
        if not ours:
            raise CannotWrite("another process packs to it", where=str(self.target), cure="wait for it to end")

    def file(self, path: Path) -> int:
        """The descriptor of a file, which stays open."""
        if path not in self._files:
            self._files[path] = self.disk.open(path)
        return self._files[path]

    def write(self, path: Path, data: bytes, offset: int) -> None:
        """Write at the offset of a file."""
        write_all(self.disk, self.file(path), data, offset)

    def close(self) -> None:
        """Close every file, the lock last."""
        for path in sorted(self._files, key=lambda path: path.name == "lock"):
            self.disk.close(self._files.pop(path))

    def prepare(self, sizes: Mapping[str, int]) -> None:
        """Make the files of the product, each with its size."""
        self.disk.make_folder(self.pack)
        for name, size in sizes.items():
            self.disk.resize(self.file(self.pack / name), size)

    def written(self) -> int:
        """The bytes on the device that the product takes already."""
        files = self.pack.iterdir() if self.pack.is_dir() else ()
        return sum(path.lstat().st_blocks * 512 for path in files)

    def journal(self, header: str) -> dict[Key, str]:
        """Begin or continue the journal: the records that it lists, with their digests.

        A line that was cut off ends it. Raises `CannotWrite` where it was begun with another header.
        """
        path = self.folder / "journal"
        lines = _lines(path)
        if lines and lines[0].decode(errors="replace") != header:
            raise CannotWrite(
                "holds an unfinished pack of another source, format or alignment, or its source has changed since",
                where=str(self.folder),
                cure="finish it by its own command, or give it up with --restart",
            )
        found: dict[Key, str] = {}
        end = len(header) + 1
        for line in lines[1:]:
            entry = _entry(line)
            if entry is None:
                break
            found[entry[0]] = entry[1]
            end += len(line) + 1
        self.disk.resize(self.file(path), end if lines else 0)
        self._journal_end = end if lines else 0
        if not lines:
            self._note(header)
        return found

    def note(self, key: Key, digest: str) -> None:
        """Add a record that has been written."""
        self._note(f"{key.layer} {key.expert} {digest}")

    def _note(self, line: str) -> None:
        data = line.encode() + b"\n"
        self.write(self.folder / "journal", data, self._journal_end)
        self._journal_end += len(data)

    def finish(self, product: Path) -> None:
        """Sync everything, give the product its name and remove the rest."""
        for path, file in self._files.items():
            if path.parent == self.pack:
                self.disk.sync(file)
        self.disk.sync_folder(self.pack)
        try:
            self.disk.rename(product, self.target)
        except FileExistsError as error:
            raise exists(self.target) from error
        self.disk.sync_folder(self.target.parent)
        self.remove()

    def is_empty(self) -> bool:
        """Whether no record has been written; raises `OSError` where the journal cannot be read."""
        return len(_lines(self.folder / "journal")) < 2

    def restart(self) -> None:
        """Throw away what is done so far."""
        self.disk.remove(self.folder / "journal")
        self.disk.remove(self.pack)

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        self.disk.remove(self.folder)


def exists(target: Path) -> CannotWrite:
    """The refusal of a name that is taken."""
    return CannotWrite("exists", where=str(target), cure="choose another name, or remove it first")


def _entry(line: bytes) -> tuple[Key, str] | None:
    words: Any = line.decode(errors="replace").split(" ")
    if len(words) != 3 or not (words[0].isdecimal() and words[1].isdecimal() and len(words[2]) == 64):
        return None
    return Key(int(words[0]), int(words[1])), words[2]
