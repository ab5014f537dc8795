"""Reading a log: bytes to checked records, one line at a time, in memory bounded by the longest legal line.

No file is touched here; whoever opens it hands over its bytes in pieces of any size.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from expertcache_spec.history.header import Header, decode_log_header
from expertcache_spec.history.schema import FORMAT, InvalidLog, check_line

MAX_LINE = 16 * 2**20
"""Bytes of the longest line: the selection of a prompt of some 400,000 tokens."""

Line = tuple[int, dict[str, Any]]
"""A line's number in its file, from 1, and its record."""

_BEGINS = f'is this an event log? its first line is an object with "format": "{FORMAT}"'
_CUT = "the log is cut off: copy or record it again"


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
                f"not strict JSON: {error}"[:300],
                where=where,
                cure="one JSON object a line, each field once" if number > 1 else _BEGINS,
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
