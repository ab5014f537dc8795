"""Opening a store, whatever its format: the format is what the file says, not its name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from expertcache_reference.stores.folders import INDEX, open_folder
from expertcache_reference.stores.reading import Here, Opened, Opener
from expertcache_reference.stores.store import FileStore
from expertcache_spec.layout.files import WrongFile


def open_store(path: str | Path, machine: Opener | None = None, *, top_k: int | None = None) -> FileStore:
    """The store at a path, with every extent checked against its file (XC-LAYOUT-001, -002, -003, -009).

    The path is a folder that `pack` wrote or its `manifest.json`. `machine` opens the files (plain reads of this
    process unless given). `top_k` is for files that do not say how many experts a token asks for.

    Raises `WrongFile` for files that are missing, damaged, truncated, longer than they should be, of another model or
    of another format. No record is read; a damaged middle is found by `verify` alone.
    """
    machine = machine if machine is not None else Here()
    path = Path(path)
    return _opener(path, machine)(path, machine, top_k)


def _opener(path: Path, machine: Opener) -> Callable[[Path, Opener, int | None], FileStore]:
    if _exists(path / INDEX, machine):
        return lambda folder, machine, _: open_folder(folder, machine)
    if path.name == INDEX:
        return lambda index, machine, _: open_folder(index.parent, machine)
    raise WrongFile("no store of a known format", where=str(path), cure=f"name a folder with {INDEX}")


def _exists(path: Path, machine: Opener) -> bool:
    """Whether there is such a file."""
    try:
        with Opened(path, machine):
            return True
    except WrongFile as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return False
        raise
