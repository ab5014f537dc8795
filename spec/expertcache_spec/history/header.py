"""The header of a log: which cache it is the history of, and what it observes."""

from __future__ import annotations

from typing import Any

import attrs

from expertcache_spec.errors import ExpertCacheError, InvalidBudget
from expertcache_spec.eviction import Value
from expertcache_spec.history.schema import FORMAT, OBSERVABLE, PREFETCHES, VERSION, InvalidLog
from expertcache_spec.model import Budget, Geometry
from expertcache_spec.residency import Settings
from expertcache_spec.trace import encode_geometry
from expertcache_spec.traceformat import decode_header


@attrs.frozen(slots=False)
class Header:
    """What a log says first: the model, the budget, the settings, and the policy, None where it is not declared.

    observes: which of `OBSERVABLE` the log records. prefetch: where speculative reads go: a slot of the cache, or a
    staging area outside of it.
    """

    geometry: Geometry
    budget: Budget
    settings: Settings = attrs.field(factory=Settings)
    policy: str | None = None
    parameters: dict[str, Value] = attrs.field(factory=dict)
    observes: tuple[str, ...] = OBSERVABLE
    prefetch: str = "slot"
    name: str = "log"


def encode_header(header: Header) -> dict[str, Any]:
    """The header as a log writes it."""
    policy = None if header.policy is None else {"name": header.policy, "parameters": dict(header.parameters)}
    budget = {name: size for name, size in attrs.asdict(header.budget).items() if size is not None}
    return {
        "format": FORMAT, "version": VERSION, "name": header.name, "geometry": encode_geometry(header.geometry),
        "budget": budget, "settings": attrs.asdict(header.settings), "policy": policy,
        "observes": list(header.observes), "prefetch": header.prefetch,
    }  # fmt: skip


_HEADER = {"format", "version", "name", "geometry", "budget", "settings", "policy", "observes", "prefetch"}


def decode_log_header(record: object, where: str) -> Header:
    """The header of a record; raises `InvalidLog` naming `where` and the cure (XC-HIST-002)."""
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise InvalidLog("not an expertcache log", where=where, cure=f"the first line is a header of format {FORMAT}")
    if record.get("version") != VERSION or type(record["version"]) is not int:
        raise InvalidLog(
            f"log version {record.get('version')!r}"[:80], where=where, cure=f"this reader knows version {VERSION}"
        )
    if set(record) | {"name"} != _HEADER:
        wrong = ", ".join(sorted((set(record) ^ _HEADER) - {"name"}))[:200]
        raise InvalidLog(f"the header lacks or does not know {wrong}", where=where, cure=", ".join(sorted(_HEADER)))
    for name in sorted(record):
        if not _is_shaped(name, record[name]):
            raise InvalidLog(f"header field {name} has another type", where=where, cure=f"write it as {_SHAPES[name]}")
    policy = record["policy"]
    try:
        model = decode_header({"format": "expertcache-trace", "version": 1, "geometry": record["geometry"]}, where)
        return Header(
            model.geometry, Budget(**record["budget"]), Settings(**record["settings"]),
            None if policy is None else policy["name"], {} if policy is None else policy["parameters"],
            tuple(record["observes"]), record["prefetch"], record.get("name", "log"),
        )  # fmt: skip
    except (ExpertCacheError, TypeError) as error:
        what = error.what if isinstance(error, ExpertCacheError) else str(error)
        cure = error.cure if isinstance(error, ExpertCacheError) else "leave out what the specification does not have"
        cure = f"write it as {_SHAPES['budget']}" if isinstance(error, InvalidBudget) else cure
        raise InvalidLog(f"a header that describes no cache: {what}"[:500], where=where, cure=cure) from error


_SHAPES = {
    "format": f'"{FORMAT}"',
    "version": str(VERSION),
    "name": "a text",
    "geometry": "the object of the trace format",
    "budget": '{"slots": N}, {"bytes": N} or both, whole numbers from 0',
    "settings": "an object of texts",
    "policy": 'null, or {"name": text, "parameters": object}',
    "observes": f"a list of {', '.join(OBSERVABLE)}, each at most once",
    "prefetch": f"one of {', '.join(PREFETCHES)}",
}
"""Field of a header to what it must be."""


def _is_shaped(name: str, value: Any) -> bool:
    """Whether the field has its type; what it says is for the specification's own classes to judge."""
    if name == "policy":
        return value is None or (
            isinstance(value, dict)
            and set(value) == {"name", "parameters"}
            and type(value["name"]) is str
            and isinstance(value["parameters"], dict)
        )
    if name == "observes":
        known = isinstance(value, list) and all(type(each) is str and each in OBSERVABLE for each in value)
        return known and len(set(value)) == len(value)
    if name in ("budget", "settings"):
        kind = int if name == "budget" else str
        return isinstance(value, dict) and all(type(each) is kind for each in value.values())
    return {"name": type(value) is str, "prefetch": value in PREFETCHES}.get(name, True)
