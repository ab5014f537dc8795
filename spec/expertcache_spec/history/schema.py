"""The event log: one header line, one line for everything that happened, one end line, each a JSON object.

    {"format": "expertcache-log", "version": 1, "geometry": {...}, "budget": {...}, "settings": {...}, "policy": ...}
    {"op": "select", "clock": 0, "thread": 0, "ticket": 1, "stream": 0, "pass": 0, ...}
    {"op": "end", "clock": 99, "thread": 0, "records": 42}

`OPERATIONS` is the one table of what a line may say: the JSON Schema that ships with the package is made from it, and
so are the checks of the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, get_args

from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.residency.settings import ResetScope
from expertcache_spec.trace import PHASES

FORMAT = "expertcache-log"
VERSION = 1

OBSERVABLE = ("reads", "slots", "computes", "combines")
"""What a log may leave out: the reads of records, the slots they go to, the work on them, the order of the sum."""

HOW_MISSED = ("read", "join", "refuse", "defer")
HOW_SEEDED = ("read", "present", "ignored", "refuse")
PREFETCHES = ("slot", "staging")
STATES = ("queued", "reading", "ready", "adopted", "late", "discarded", "failed", "present")

MOST = (1 << 63) - 1


class InvalidLog(ExpertCacheError):
    """A log that cannot be read: truncated, binary, no JSON, or a line that the schema does not have."""

    code: ClassVar[str] = "invalid-log"


class Kind(NamedTuple):
    """One kind of value: the test that the reader makes, and the same as JSON Schema."""

    test: Callable[[Any], bool]
    schema: Mapping[str, Any]


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MOST


def _is_key(value: Any) -> bool:
    return type(value) is list and len(value) == 2 and _is_count(value[0]) and _is_count(value[1])


def _is_keys(value: Any) -> bool:
    return type(value) is list and all(map(_is_key, value))


def _is_rows(value: Any) -> bool:
    return type(value) is list and bool(value) and all(type(r) is list and r and all(map(_is_count, r)) for r in value)


def _is_matrix(value: Any) -> bool:
    return type(value) is list and bool(value) and all(type(row) is list and all(map(_is_number, row)) for row in value)


def _is_number(value: Any) -> bool:
    return (type(value) is float and isfinite(value)) or (type(value) is int and abs(value) <= MOST)


def _one_of(*names: str) -> Kind:
    return Kind(lambda value: type(value) is str and value in names, {"enum": list(names)})


_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": MOST}
_KEY = {"type": "array", "items": _COUNT, "minItems": 2, "maxItems": 2}

COUNT = Kind(_is_count, _COUNT)
KEY = Kind(_is_key, _KEY)
KEYS = Kind(_is_keys, {"type": "array", "items": _KEY})
ROWS = Kind(
    _is_rows,
    {"type": "array", "minItems": 1, "items": {"type": "array", "minItems": 1, "items": _COUNT}},
)
MATRIX = Kind(
    _is_matrix,
    {
        "type": "array",
        "minItems": 1,
        "items": {"type": "array", "items": {"type": "number"}},
    },
)
TEXT = Kind(lambda value: type(value) is str, {"type": "string"})


class Operation(NamedTuple):
    """One operation: the fields that its line must have, those that it may have, and what it says."""

    meaning: str
    required: Mapping[str, Kind]
    optional: Mapping[str, Kind] = MappingProxyType({})


_TICKET = {"ticket": COUNT}
_OF = {**_TICKET, "key": KEY}
_RUN = {"read": COUNT, "offset": COUNT, "length": COUNT}

OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {
        "select": Operation(
            "an event is judged, leased and made room for; tickets rise",
            {**_TICKET, "stream": COUNT, "pass": COUNT, "phase": _one_of(*PHASES), "layer": COUNT, "experts": ROWS},
            {"accepted": COUNT, "weights": MATRIX, "scores": MATRIX},
        ),
        "resume": Operation("the next wave of the event of ticket `after` is selected", {**_TICKET, "after": COUNT}),
        "hit": Operation("the key was resident when the event began", _OF),
        "miss": Operation(
            "the key was absent; `how` it is served: its read begins, another's is joined, it is read and not kept, "
            "or left for a later wave",
            {**_OF, "how": _one_of(*HOW_MISSED)},
        ),
        "bypass": Operation("the key was absent and found no room: it is read for this event and not kept", _OF),
        "evict": Operation(
            "a resident record leaves; `ticket` is the event that needed the room, or that executed meanwhile",
            {"key": KEY},
            _TICKET,
        ),
        "refuse": Operation("a record that the event had loaded is not kept after all (room `retain`)", _OF),
        "read_start": Operation(
            "a read of `length` bytes begins, from `offset` in the record; `read` numbers rise. `slot` is where it "
            "goes, `ticket` the event that alone gets a record that is not kept",
            {**_RUN, "key": KEY},
            {"slot": COUNT, **_TICKET},
        ),
        "read_end": Operation("the read has delivered `length` bytes", _RUN),
        "publish": Operation("the whole record is there: it is resident", {"key": KEY}),
        "fail": Operation(
            "the reading of the record has failed; its room is returned. `ticket` is the event that alone would have "
            "got a record that is not kept",
            {"key": KEY},
            _TICKET,
        ),
        "compute_start": Operation("work on the record begins, for the event", _OF),
        "compute_end": Operation("the work on the record has executed", _OF),
        "combine": Operation("the results are summed, in this order", {**_TICKET, "keys": KEYS}),
        "release": Operation("the work of the event has executed: its lease ends", _TICKET),
        "abandon": Operation("the event is given up: its lease ends, neither work nor waves of it follow", _TICKET),
        "prefetch": Operation(
            "a speculative read enters a state, or none begins, since its record is present; `ticket`, where it begins "
            "to read, is the event that executes and beside whose keys records gave way: their evictions follow, and "
            "without it there are none",
            {"key": KEY, "state": _one_of(*STATES)},
            _TICKET,
        ),
        "seed": Operation(
            "a profile's key is installed, or not", {"key": KEY, "priority": COUNT, "how": _one_of(*HOW_SEEDED)}
        ),
        "pin": Operation("the record may not be evicted", {"key": KEY}),
        "unpin": Operation("the record may be evicted again", {"key": KEY}),
        "resize": Operation("the budget changes", {}, {"slots": COUNT, "bytes": COUNT}),
        "reset": Operation("counters, history or contents start again", {"scope": _one_of(*get_args(ResetScope))}),
        "rebind": Operation("records of another model are served from here on", {"fingerprint": TEXT}),
        "end": Operation("the log is complete: so many lines stand between header and end", {"records": COUNT}),
    }
)
"""Operation name to what its line says; every line also has `clock` and `thread`."""

_COMMON = {"op": TEXT, "clock": COUNT, "thread": COUNT}
_LINES: dict[str, tuple[frozenset[str], frozenset[str], tuple[tuple[str, Callable[[Any], bool]], ...]]] = {
    name: (
        frozenset({*_COMMON, *op.required}),
        frozenset({*_COMMON, *op.required, *op.optional}),
        tuple((field, kind.test) for field, kind in {**_COMMON, **op.required, **op.optional}.items()),
    )
    for name, op in OPERATIONS.items()
}


def check_line(record: object, where: str) -> dict[str, Any]:
    """The record, if it is a line of the schema; raises `InvalidLog` naming `where` and the cure (XC-HIST-002)."""
    op = record.get("op") if isinstance(record, dict) else None
    if not isinstance(record, dict) or type(op) is not str or op not in _LINES:
        shown = f"operation {op!r}"[:80] if isinstance(record, dict) else "not an object"
        raise InvalidLog(shown, where=where, cure=f"one of {', '.join(OPERATIONS)}")
    required, known, tests = _LINES[op]
    names = record.keys()
    if not required <= names or not names <= known:
        wrong = ", ".join(sorted(required - names) or sorted(names - known))[:200]
        raise InvalidLog(
            f"{op} {'lacks' if required - names else 'has unknown'} {wrong}",
            where=where,
            cure=f"fields of {op}: {', '.join(sorted(known))}",
        )
    for name, test in tests:
        if name in record and not test(record[name]):
            raise InvalidLog(
                f"{op}: {name} is {record[name]!r}"[:200], where=where, cure="see the event log's table of operations"
            )
    return record


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of one line: a header or a record.

    It ships as `eventlog-1.schema.json` beside this module. The reader is stricter in two points: integers are written
    without a fraction, and numbers are within 64 bits.
    """
    lines = [
        _object({**{n: k.schema for n, k in {**_COMMON, **op.required}.items()}, "op": {"const": name}},
                {n: k.schema for n, k in op.optional.items()}) | {"description": op.meaning}
        for name, op in OPERATIONS.items()
    ]  # fmt: skip
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{FORMAT}, version {VERSION}: one line",
        "oneOf": [_header_schema(), *lines],
    }


def _object(required: Mapping[str, Any], optional: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def _header_schema() -> dict[str, Any]:
    counts = {"type": "array", "items": _COUNT}
    geometry = _object(
        {"layers": _COUNT, "experts": _COUNT, "top_k": _COUNT}, {"record_bytes": counts, "routed": counts}
    )
    policy = _object({"name": TEXT.schema, "parameters": {"type": "object"}}, {})
    return _object(
        {
            "format": {"const": FORMAT},
            "version": {"const": VERSION},
            "geometry": geometry,
            "budget": _object({}, {"slots": _COUNT, "bytes": _COUNT}) | {"minProperties": 1},
            "settings": {"type": "object", "additionalProperties": TEXT.schema},
            "policy": {"oneOf": [{"type": "null"}, policy]},
            "observes": {"type": "array", "items": {"enum": list(OBSERVABLE)}, "uniqueItems": True},
            "prefetch": {"enum": list(PREFETCHES)},
        },
        {"name": TEXT.schema},
    ) | {"description": "the header: model, budget, settings, policy, and what the log observes"}
