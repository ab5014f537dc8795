"""The files of a store: opened at their first use, shared by all workers, closed once."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from pathlib import Path

import attrs

from expertcache_reference.system.seam import File, Machine, Mapping

MOST_OPEN = 128
"""Files that are open at once, unless more are in use: a store of one file a record would run out of descriptors."""


@attrs.define
class Opened:
    """An open file: in how many hands it is, and its mapping once somebody has asked for one."""

    path: Path
    file: File
    users: int = 0
    mapping: Mapping | None = None

    def close(self) -> None:
        """Give mapping and file back; an error here loses no byte, for nothing was written."""
        with contextlib.suppress(OSError):
            if self.mapping is not None:
                self.mapping.close()
        with contextlib.suppress(OSError):
            self.file.close()


class Files:
    """Files of one folder by name. Its lock is a leaf: nothing else is taken while it is held."""

    def __init__(self, machine: Machine, folder: Path, most_open: int = MOST_OPEN) -> None:
        self.folder = folder
        self._machine, self._most = machine, most_open
        self._lock = machine.lock()
        self._opened: OrderedDict[str, Opened] = OrderedDict()

    def take(self, name: str, *, mapped: bool = False) -> Opened:
        """The open file, in one more hand; give it back. Raises `OSError` where it cannot be opened or mapped."""
        with self._lock:
            found = self._opened.get(name)
            if found is None:
                self._make_room()
                found = self._opened[name] = self._open(name)
            if mapped and found.mapping is None:
                found.mapping = found.file.map()
            self._opened.move_to_end(name)
            found.users += 1
            return found

    def _open(self, name: str) -> Opened:
        path = self.folder / name
        return Opened(path, self._machine.open(path))

    def give(self, opened: Opened) -> None:
        """One hand less."""
        with self._lock:
            opened.users -= 1

    def _make_room(self) -> None:
        """Close the file that was used longest ago and is in nobody's hands."""
        if len(self._opened) >= self._most:
            idle = next((name for name, opened in self._opened.items() if not opened.users), None)
            if idle is not None:
                self._opened.pop(idle).close()

    def close(self) -> None:
        """Close all; call it when no worker is left."""
        with self._lock:
            while self._opened:
                self._opened.popitem()[1].close()


class Hand:
    """One worker's hand: it keeps the file that it read last until it takes another, for records come in runs of one.

    Whoever rests empties it first: a file in a hand stays open.
    """

    def __init__(self, files: Files) -> None:
        self._files, self._name = files, ""
        self._held: Opened | None = None

    def take(self, name: str, *, mapped: bool = False) -> Opened:
        """As `Files.take`, of a file that the hand gives back itself."""
        held = self._held
        if held is None or name != self._name or (mapped and held.mapping is None):
            self.empty()
            held = self._held = self._files.take(name, mapped=mapped)
            self._name = name
        return held

    def path(self, name: str) -> Path:
        """Where the file of that name is."""
        return self._files.folder / name

    def empty(self) -> None:
        """Give back what it holds."""
        if self._held is not None:
            self._files.give(self._held)
            self._held = None
