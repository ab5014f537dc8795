"""The canonical trace format, as plain records: a header, one record for each event, an end mark.

    {"format": "expertcache-trace", "version": 1, "name": ..., "about": {...}, "geometry": {...}}
    {"stream": 0, "pass": 0, "phase": "decode", "layer": 0, "experts": [[3, 17]], ...}
    {"end": true, "events": 1}

Text files hold one JSON record a line; the bulk form holds the same fields as arrays. Reading is strict: an unknown
field, another version, a missing end mark are errors. No file is touched here; readers supply the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from expertcache_spec.errors import ExpertCacheError, InvalidTrace
from expertcache_spec.model import Geometry
from expertcache_spec.trace import Event, Recorded, Trace, TraceChecker, encode_event, encode_geometry

FORMAT = "expertcache-trace"
VERSION = 1

_HEADER = {"format", "version", "name", "about", "geometry"}
MOST_LAYERS = 1 << 16
_GEOMETRY = {"layers", "experts", "top_k", "record_bytes", "routed"}
_EVENT = {"stream", "pass", "phase", "layer", "experts", "weights", "scores", "lookahead", "positions",
          "accepted", "recorded"}  # fmt: skip


@attrs.frozen(slots=False)
class Header:
    """What a trace file says before its first event."""

    geometry: Geometry
    name: str = "trace"
    about: Mapping[str, str] = attrs.field(factory=dict)


def encode_header(header: Header) -> dict[str, Any]:
    """The header record."""
    return {"format": FORMAT, "version": VERSION, "name": header.name, "about": dict(header.about),
            "geometry": encode_geometry(header.geometry)}  # fmt: skip


def decode_header(record: object, where: str) -> Header:
    """The header of a record; raises `InvalidTrace` naming `where` and the cure (XC-TRACE-008)."""
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise InvalidTrace(
            "not an expertcache trace", where=where, cure="convert it: expertcache trace convert --from FORMAT"
        )
    if record.get("version") != VERSION or type(record["version"]) is not int:
        raise InvalidTrace(
            f"trace format version {record.get('version')!r}",
            where=where,
            cure=f"this reader knows version {VERSION}; convert the file with its own release",
        )
    _known(record, _HEADER, where)
    geometry, about = (
        _object(record.get("geometry"), "geometry", where),
        _object(record.get("about", {}), "about", where),
    )
    _known(geometry, _GEOMETRY, where)
    if not isinstance(record.get("name", "trace"), str) or not all(isinstance(value, str) for value in about.values()):
        raise InvalidTrace("name and about must be text", where=where, cure="write them as JSON strings")
    sizes, routed = geometry.get("record_bytes"), geometry.get("routed")
    layers = geometry.get("layers")
    if missing := {"layers", "experts", "top_k"} - set(geometry):
        raise InvalidTrace(f"geometry without {', '.join(sorted(missing))}", where=where, cure="describe the model")
    if type(layers) is not int or not 0 < layers <= MOST_LAYERS:
        cure = f"give a whole number of layers from 1 to {MOST_LAYERS}"
        raise InvalidTrace(f"layers {layers!r}"[:200], where=where, cure=cure)
    extra = {} if routed is None else {"routed": _ints(routed, "routed", where)}
    try:
        model = Geometry(
            layers,
            geometry["experts"],
            geometry["top_k"],
            None if sizes is None else _ints(sizes, "record_bytes", where),
            **extra,
        )
    except ExpertCacheError as error:
        raise InvalidTrace(error.what, where=where, cure=error.cure) from error
    return Header(model, record.get("name", "trace"), about)


def decode_event(record: object, where: str) -> Event:
    """The event of a record; raises `InvalidTrace` naming `where` and the cure (XC-TRACE-008)."""
    if not isinstance(record, dict):
        raise InvalidTrace("not an object", where=where, cure="write one JSON object a line")
    _known(record, _EVENT, where)
    missing = [name for name in ("stream", "pass", "phase", "layer", "experts") if name not in record]
    if missing:
        raise InvalidTrace(f"no field {', '.join(missing)}", where=where, cure="write every required field")
    recorded, positions = record.get("recorded"), record.get("positions")
    try:
        return Event(
            record["layer"], tuple(_ints(row, "experts", where) for row in _list(record["experts"], "experts", where)),
            record["stream"], record["pass"], record["phase"],
            weights=_matrix(record, "weights", where), scores=_matrix(record, "scores", where),
            lookahead=_lookahead(record, where),
            positions=None if positions is None else _ints(positions, "positions", where),
            accepted=record.get("accepted"), recorded=None if recorded is None else _recorded(recorded, where),
        )  # fmt: skip
    except InvalidTrace as error:
        if error.where.startswith(where):
            raise
        raise InvalidTrace(error.what, where=f"{where}: {error.where}", cure=error.cure) from error


def decode_events(records: Iterable[tuple[str, object]], header: Header) -> Iterator[Event]:
    """The events of (place, record) pairs that follow the header, checked in order, up to and including the end mark.

    Needs memory for one event and one small state for each stream (XC-TRACE-002, XC-TRACE-005).
    """
    checker = TraceChecker(header.geometry)
    place, ended = "trace", False
    for place, record in records:
        if ended:
            raise InvalidTrace("a record after the end mark", where=place, cure="two captures in one file? split them")
        if isinstance(record, dict) and "end" in record:
            types = (type(record["end"]), type(record.get("events")))
            if record != {"end": True, "events": checker.events} or types != (bool, int):
                raise InvalidTrace(
                    f"the end mark says {record}, {checker.events} events were read",
                    where=place,
                    cure="events were lost or the mark is wrong: capture again",
                )
            ended = True
            continue
        event = decode_event(record, place)
        try:
            yield checker.feed(event)
        except InvalidTrace as error:
            raise InvalidTrace(error.what, where=f"{place}: {error.where}", cure=error.cure) from error
    if not ended:
        raise InvalidTrace("no end mark", where=place, cure="the file is cut off: copy or capture it again")
    checker.finish()


def decode(records: Iterable[tuple[str, object]]) -> Trace:
    """The whole trace of (place, record) pairs, header first."""
    pairs = iter(records)
    place, first = next(pairs, ("trace", None))
    header = decode_header(first, place)
    return Trace(header.geometry, tuple(decode_events(pairs, header)), header.name, header.about)


def encode(trace: Trace) -> Iterator[dict[str, Any]]:
    """Every record of the trace, header and end mark included."""
    yield encode_header(Header(trace.geometry, trace.name, trace.about))
    for event in trace.events:
        yield encode_event(event)
    yield {"end": True, "events": len(trace.events)}


def _known(record: Mapping[str, object], names: set[str], where: str) -> None:
    unknown = sorted(set(record) - names)
    if unknown:
        raise InvalidTrace(
            f"unknown field {', '.join(unknown)}", where=where, cure=f"known: {', '.join(sorted(names))}"
        )


def _list(value: object, name: str, where: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise InvalidTrace(f"{name} is not a list", where=where, cure="see the trace format's table of fields")
    return list(value)


def _object(value: object, name: str, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidTrace(f"{name} is not an object", where=where, cure="see the trace format's table of fields")
    return value


def _ints(value: object, name: str, where: str) -> tuple[int, ...]:
    items = _list(value, name, where)
    if any(type(item) is not int for item in items):
        raise InvalidTrace(
            f"{name} holds something that is no whole number", where=where, cure="write whole numbers only"
        )
    return tuple(items)


def _matrix(record: Mapping[str, Any], name: str, where: str) -> tuple[tuple[float, ...], ...] | None:
    if record.get(name) is None:
        return None
    rows = [_list(row, name, where) for row in _list(record[name], name, where)]
    if any(type(item) not in (int, float) for row in rows for item in row):
        raise InvalidTrace(f"{name} holds something that is no number", where=where, cure="write finite numbers only")
    return tuple(tuple(float(item) for item in row) for row in rows)


def _lookahead(record: Mapping[str, Any], where: str) -> tuple[tuple[tuple[float, ...], ...], ...] | None:
    if record.get("lookahead") is None:
        return None
    matrices = _list(record["lookahead"], "lookahead", where)
    found = [_matrix({"lookahead": each}, "lookahead", where) for each in matrices]
    return tuple(matrix or () for matrix in found)


def _recorded(value: object, where: str) -> Recorded:
    record = _object(value, "recorded", where)
    _known(record, {"hit", "bytes"}, where)
    hits = _list(record.get("hit"), "recorded.hit", where)
    if any(type(hit) is not bool for hit in hits):
        raise InvalidTrace(
            "recorded.hit holds something that is no truth value", where=where, cure="write true or false"
        )
    return Recorded(tuple(hits), _ints(record.get("bytes"), "recorded.bytes", where))
