"""Opening a store, whatever its format: the format is what the file says, not its name."""

from __future__ import annotations

from pathlib import Path

from expertcache_reference.stores.folders import INDEX, open_folder
from expertcache_reference.stores.gguf_header import MAGIC
from expertcache_reference.stores.model_files import open_gguf, open_safetensors
from expertcache_reference.stores.reading import Here, Opened, Opener
from expertcache_reference.stores.store import FileStore
from expertcache_spec.layout.files import WrongFile

_SAFETENSORS = ("model.safetensors.index.json", "model.safetensors")
"""What a folder of safetensors holds; the index where there are shards."""


def open_store(path: str | Path, machine: Opener | None = None, *, top_k: int | None = None) -> FileStore:
    """The store at a path, with every extent checked against its file (XC-LAYOUT-001, -002, -003, -009).

    The path is a folder that `pack` wrote, a GGUF or safetensors file, one of their shards, an index of shards, or a
    folder with `model.safetensors` or its index. `machine` opens the files (plain reads of this process unless
    given). `top_k` is for files that do not say how many experts a token asks for.

    Raises `WrongFile` for files that are missing, damaged, truncated, longer than they should be, of another model or
    of another format. Of the records only the ends of files are read; a damaged middle is found by `verify` alone.
    """
    machine = machine if machine is not None else Here()
    path = Path(path)
    if path.name == INDEX or _exists(path / INDEX, machine):
        store = open_folder(path.parent if path.name == INDEX else path, machine)
    else:
        inside = [path / name for name in _SAFETENSORS if _exists(path / name, machine)]
        if not inside and path.is_dir():
            raise WrongFile(
                f"a folder without {INDEX} or {' or '.join(_SAFETENSORS)}", where=str(path),
                cure="name the model's file in it, or a folder that `pack` made",
            )  # fmt: skip
        store = _open_file(inside[0] if inside else path, machine, top_k)
    if top_k not in (None, store.geometry.top_k):
        raise WrongFile(f"says top-k {store.geometry.top_k}, not {top_k}", where=str(path), cure="leave it out")
    return store


def _open_file(path: Path, machine: Opener, top_k: int | None) -> FileStore:
    if path.name.endswith(".index.json"):
        return open_safetensors(path, machine, top_k)
    with Opened(path, machine) as file:
        is_gguf = file.size >= len(MAGIC) and file.read(0, len(MAGIC)) == MAGIC
    return open_gguf(path, machine, top_k) if is_gguf else open_safetensors(path, machine, top_k)


def _exists(path: Path, machine: Opener) -> bool:
    """Whether there is such a file."""
    try:
        with Opened(path, machine):
            return True
    except WrongFile as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return False
        raise
