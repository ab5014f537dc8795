"""The traces that ship with the specification, by name: `builtin:qwen3-30b-a3b`."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

from expertcache_spec.errors import UnknownName

PREFIX = "builtin:"
_SUFFIX = ".jsonl.gz"


def names() -> list[str]:
    """The names of the traces that ship, sorted."""
    return sorted(entry.name.removesuffix(_SUFFIX) for entry in _data().iterdir() if entry.name.endswith(_SUFFIX))


def resource(name: str) -> Traversable:
    """The file of that name; raises `UnknownName`, listing the known ones."""
    if name not in names():
        known = ", ".join(PREFIX + known for known in names())
        raise UnknownName(f"trace {PREFIX}{name}", where="trace", cure=f"one of {known}")
    return _data() / f"{name}{_SUFFIX}"


def _data() -> Traversable:
    return files("expertcache_spec") / "data"
