"""Reading a log: bytes to checked records, one line at a time, in memory bounded by the longest legal line.

No file is touched here; whoever opens it hands over its bytes in pieces of any size.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import attrs

from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.eviction import Value
from expertcache_spec.history.schema import FORMAT, OBSERVABLE, PREFETCHES, VERSION, InvalidLog, check_line
from expertcache_spec.model import Budget, Geometry
from expertcache_spec.residency import Settings
from expertcache_spec.trace import encode_geometry
from expertcache_spec.traceformat import decode_header

MAX_LINE = 16 * 2**20
"""Bytes of the longest line: the selection of a prompt of some 400,000 tokens."""

Line = tuple[int, dict[str, Any]]
"""A line's number in its file, from 1, and its record."""

_CUT = "the log is cut off: copy or record it again"


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
    observes, policy = record["observes"], record["policy"]
    shaped = (
        type(record.get("name", "")) is str
        and isinstance(observes, list) and all(each in OBSERVABLE for each in observes if type(each) is str)
        and all(type(each) is str for each in observes) and len(set(observes)) == len(observes)
        and record["prefetch"] in PREFETCHES
        and all(isinstance(record[name], dict) for name in ("budget", "settings"))
        and (policy is None or (isinstance(policy, dict) and set(policy) == {"name", "parameters"}
             and type(policy["name"]) is str and isinstance(policy["parameters"], dict)))
        and all(type(value) is str for value in record["settings"].values())
        and all(type(value) is int for value in record["budget"].values())
    )  # fmt: skip
    if not shaped:
        raise InvalidLog("a header whose fields have other types", where=where, cure="see the event log's schema")
    try:
        model = decode_header({"format": "expertcache-trace", "version": 1, "geometry": record["geometry"]}, where)
        return Header(
            model.geometry, Budget(**record["budget"]), Settings(**record["settings"]),
            None if policy is None else policy["name"], {} if policy is None else policy["parameters"],
            tuple(observes), record["prefetch"], record.get("name", "log"),
        )  # fmt: skip
    except (ExpertCacheError, TypeError) as error:
        what = error.what if isinstance(error, ExpertCacheError) else str(error)
        cure = error.cure if isinstance(error, ExpertCacheError) else "leave out what the specification does not have"
        raise InvalidLog(f"a header that describes no cache: {what}"[:500], where=where, cure=cure) from error


def read_log(pieces: Iterable[bytes], name: str = "log") -> tuple[Header, Iterator[Line]]:
    """The header and the checked lines up to and including the end line.

    Raises `InvalidLog`, here or while the lines are taken, at the first line that cannot be read, at an end line that
    counts other lines than there were, and where there is none.
    """
    numbered = _parsed(pieces, name)
    number, first = next(numbered, (1, None))
    return decode_log_header(first, f"{name}:{number}"), _records(numbered, name)


def _records(numbered: Iterator[tuple[int, object]], name: str) -> Iterator[Line]:
    number, ended = 1, False
    for count, (number, value) in enumerate(numbered):
        where = f"{name}:{number}"
        if ended:
            raise InvalidLog("a line after the end", where=where, cure="two logs in one file? split them")
        record = check_line(value, where)
        if record["op"] == "end":
            ended = True
            if record["records"] != count:
                raise InvalidLog(
                    f"the end counts {record['records']} lines, {count} were read", where=where, cure="lines were lost"
                )
        yield number, record
    if not ended:
        raise InvalidLog("no end line", where=f"{name}:{number}", cure=_CUT)


def _parsed(pieces: Iterable[bytes], name: str) -> Iterator[tuple[int, object]]:
    for number, line in enumerate(split_lines(pieces, name), 1):
        where = f"{name}:{number}"
        try:
            yield number, _DECODER.decode(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise InvalidLog(
                f"not UTF-8 at byte {error.start} of the line", where=where, cure="is this a log? it is text"
            ) from error
        except RecursionError as error:
            raise InvalidLog("nested too deeply", where=where, cure="is this a log?") from error
        except ValueError as error:
            raise InvalidLog(
                f"not strict JSON: {error}"[:300], where=where, cure="one JSON object a line, each field once"
            ) from error


def split_lines(pieces: Iterable[bytes], name: str, longest: int = MAX_LINE) -> Iterator[bytes]:
    """The lines of the pieces, without their ends; holds one line and one piece.

    Raises `InvalidLog` for an empty log, a line longer than `longest` and a last line without an end.
    """
    number, held, size = 1, list[bytes](), 0
    for piece in pieces:
        start = 0
        while (end := piece.find(b"\n", start)) >= 0:
            if size + end - start > longest:
                raise _too_long(name, number, longest)
            yield b"".join([*held, piece[start:end]])
            held, size, start, number = [], 0, end + 1, number + 1
        if start < len(piece):
            held.append(piece[start:])
            size += len(piece) - start
        if size > longest:
            raise _too_long(name, number, longest)
    if size:
        raise InvalidLog("the last line has no end", where=f"{name}:{number}", cure=_CUT)
    if number == 1:
        raise InvalidLog("the log is empty", where=name, cure="check that the engine wrote one")


def _too_long(name: str, number: int, longest: int) -> InvalidLog:
    return InvalidLog(f"no end of line within {longest} bytes", where=f"{name}:{number}", cure="is this a log?")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a field stands twice in one object")
    return record


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_constant)
