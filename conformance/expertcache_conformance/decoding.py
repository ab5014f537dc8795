"""Programs from the data of a replay file: every field is looked at before anything is asked of a cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from reprlib import repr  # what a damaged file holds may be long  # noqa: A004
from typing import Any

from expertcache_conformance.adapters.protocol import Config
from expertcache_conformance.program import ARGUMENTS, OPERATIONS, Operation, Program
from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.model import Budget, Key
from expertcache_spec.residency import SETTINGS, Settings
from expertcache_spec.traceformat import decode_event, decode_header

_NUMBER = (int, type(None))
_CONFIG: Mapping[str, tuple[type, ...]] = {
    "policy": (str,),
    "slots": _NUMBER,
    "bytes": _NUMBER,
    "geometry": (dict,),
    "settings": (dict,),
    "parameters": (dict,),
    "offline": (bool,),
}
_OPERATION: Mapping[str, tuple[type, ...]] = {
    "event": (dict,),
    "label": (int,),
    "key": (list,),
    "keys": (list,),
    "priorities": (list,),
    "slots": _NUMBER,
    "bytes": _NUMBER,
    "text": (str,),
}
"""Fields of the data to the types that they may have."""


class InvalidReplay(ValueError):
    """A replay file that cannot be read; names the file, the field and the cure."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}. Cure: copy the file whole, or run the suite again to have it written anew")


def decode_program(record: Mapping[str, Any], where: str) -> Program:
    """The program of JSON data; raises `InvalidReplay` naming `where`."""
    config = _field(record, "config", (dict,), where)
    raw = {name: _field(config, name, kinds, f"{where}: config") for name, kinds in _CONFIG.items()}
    if not all(name in SETTINGS and isinstance(value, str) for name, value in raw["settings"].items()):
        raise InvalidReplay(
            f"{where}: config", f"settings {repr(raw['settings'])} are not texts of {', '.join(SETTINGS)}"
        )
    try:
        header = decode_header({"format": "expertcache-trace", "version": 1, "geometry": raw["geometry"]}, where)
        operations = tuple(
            _decode_operation(item, f"{where}: operation {i}")
            for i, item in enumerate(_field(record, "operations", (list,), where))
        )
        future = tuple(o.event for o in operations if o.event is not None) if raw["offline"] else None
        budget, settings = Budget(raw["slots"], raw["bytes"]), Settings(**raw["settings"])
    except ExpertCacheError as error:
        raise InvalidReplay(error.where if error.where.startswith(where) else where, error.what) from error
    return Program(Config(raw["policy"], budget, header.geometry, settings, raw["parameters"], future), operations)


def _field(record: Any, name: str, kinds: tuple[type, ...], where: str) -> Any:
    if not isinstance(record, Mapping):
        raise InvalidReplay(where, f"{repr(record)} is no object")
    if name not in record:
        raise InvalidReplay(where, f"no field {name!r}")
    if type(record[name]) not in kinds:
        known = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
        raise InvalidReplay(where, f"{name} is {repr(record[name])}, not of type {known}")
    return record[name]


def _decode_operation(record: Any, where: str) -> Operation:
    op = _field(record, "op", (str,), where)
    if op not in OPERATIONS:
        raise InvalidReplay(where, f"unknown operation {repr(op)}")
    given = {
        name: _field(record, name, kinds, where)
        for name, kinds in _OPERATION.items()
        if name in ARGUMENTS[op] or name in record
    }
    readers: dict[str, Callable[[Any, str], Any]] = {
        "event": decode_event, "key": _key, "keys": _keys, "priorities": _priorities,
    }  # fmt: skip
    read: dict[str, Any] = {name: readers[name](v, where) if name in readers else v for name, v in given.items()}
    if "priorities" in read and len(read["priorities"]) != len(read.get("keys", ())):
        raise InvalidReplay(where, f"{len(read['priorities'])} priorities for {len(read.get('keys', ()))} keys")
    return Operation(op, **read)


def _key(raw: Any, where: str) -> Key:
    if not isinstance(raw, list) or [type(part) for part in raw] != [int, int]:
        raise InvalidReplay(where, f"{repr(raw)} is no key, a list of layer and expert")
    return Key(*raw)


def _keys(raw: list[Any], where: str) -> tuple[Key, ...]:
    return tuple(_key(item, where) for item in raw)


def _priorities(raw: list[Any], where: str) -> tuple[int, ...]:
    if not all(type(item) is int and item >= 0 for item in raw):
        raise InvalidReplay(where, f"priorities {repr(raw)} are not whole numbers from 0")
    return tuple(raw)
