"""The traces that ship, by name: `builtin:qwen3-30b-a3b` of a real engine, `builtin:tinymoe-python` of the tiny one."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

from expertcache_spec.errors import UnknownName

PREFIX = "builtin:"
_SUFFIX = ".jsonl.gz"


def names() -> list[str]:
    """The names of the traces that ship, sorted."""
    return sorted(_all())


def of_engines() -> list[str]:
    """The names of those that real engines recorded, sorted."""
    return sorted(_in(_engines()))


def resource(name: str) -> Traversable:
    """The file of that name; raises `UnknownName`, listing the known ones."""
    found = _all()
    if name not in found:
        known = ", ".join(PREFIX + known for known in sorted(found))
        raise UnknownName(f"trace {PREFIX}{name}", where="trace", cure=f"one of {known}")
    return found[name]


def _all() -> dict[str, Traversable]:
    return _in(_engines()) | _in(files("expertcache_reference") / "tinymoe" / "traces")


def _engines() -> Traversable:
    return files("expertcache_spec") / "data"


def _in(folder: Traversable) -> dict[str, Traversable]:
    return {entry.name.removesuffix(_SUFFIX): entry for entry in folder.iterdir() if entry.name.endswith(_SUFFIX)}
