"""The reader of the bulk form (`.npz`): nothing is unpickled, nothing is loaded before all sizes agree."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np

from expertcache_reference.traces.bulk import COLUMNS, HAS
from expertcache_reference.traces.errors import At, checked
from expertcache_reference.traces.reading import Reading
from expertcache_reference.traces.strictjson import parse
from expertcache_spec.errors import InvalidTrace
from expertcache_spec.trace import PHASES, Event, Recorded
from expertcache_spec.traceformat import decode_header

MAX_BYTES = 1 << 30
"""Most bytes of all arrays together."""

_AGAIN = "the file is damaged or from elsewhere: write it again with trace convert"
_Arrays = dict[str, Any]


def read(file: BinaryIO, name: str, *, drop_weights: bool = False) -> Reading:
    """Header and events of the archive; the arrays (at most `MAX_BYTES`) are held, the events are not."""
    with At(name), _zip_errors():
        arrays = _load(file)
    with At(name):
        header = decode_header(_json(arrays["header"], name), f"{name}: header")
        _check_offsets(arrays)
    cursor = _Cursor(arrays, header.geometry.experts)
    events = cursor.events(name, drop_weights=drop_weights)
    return Reading(header, checked(events, header.geometry, name))


@contextmanager
def _zip_errors() -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, SyntaxError, OSError, RuntimeError) as error:
        raise InvalidTrace(f"no readable archive ({error})", cure=_AGAIN) from error


def _load(file: BinaryIO) -> _Arrays:
    if os.fstat(file.fileno()).st_size > MAX_BYTES:
        raise InvalidTrace(f"the archive is larger than {MAX_BYTES} bytes", cure="use the JSON Lines form")
    with zipfile.ZipFile(file) as archive:
        infos = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        if set(infos) != set(COLUMNS) or len(archive.infolist()) != len(COLUMNS):
            raise InvalidTrace(f"arrays {', '.join(sorted(infos))[:300]}", cure=f"needed: {', '.join(COLUMNS)}")
        if any(info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in infos.values()):
            raise InvalidTrace("an entry of another compression than deflate", cure=_AGAIN)
        if sum(info.file_size for info in infos.values()) > MAX_BYTES:
            raise InvalidTrace(f"the arrays announce more than {MAX_BYTES} bytes", cure="use the JSON Lines form")
        counts = {name: _count(archive, info, COLUMNS[name]) for name, info in infos.items()}
        _check_counts(counts)
        return {name: _array(archive, info, COLUMNS[name]) for name, info in infos.items()}


def _count(archive: zipfile.ZipFile, info: zipfile.ZipInfo, kind: str) -> int:
    """How many entries the array has, by its own header, which must agree with the archive's."""
    with archive.open(info) as member:
        if np.lib.format.read_magic(member) != (1, 0):
            raise InvalidTrace(f"array {info.filename} of another version", cure=_AGAIN)
        shape, _, dtype = np.lib.format.read_array_header_1_0(member)
        start = member.tell()
    if len(shape) != 1 or dtype != np.dtype(kind) or start + shape[0] * dtype.itemsize != info.file_size:
        raise InvalidTrace(
            f"array {info.filename} is {dtype} {shape} in {info.file_size} bytes",
            cure=f"one dimension of {kind}, and nothing else in the entry: {_AGAIN}",
        )
    return int(shape[0])


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, kind: str) -> Any:
    with archive.open(info) as member:
        np.lib.format.read_magic(member)
        np.lib.format.read_array_header_1_0(member)
        return np.frombuffer(member.read(), dtype=kind)


def _check_counts(counts: dict[str, int]) -> None:
    events = counts["stream"]
    if any(counts[name] != events for name in ("pass", "phase", "layer", "has")) or counts["rows"] != events + 1:
        raise InvalidTrace("the arrays of events differ in length", cure=_AGAIN)
    if not counts["ids"] or counts["hit"] != counts["bytes"]:
        raise InvalidTrace("the arrays of rows or recordings differ in length", cure=_AGAIN)


def _check_offsets(arrays: _Arrays) -> None:
    for name, end in (("rows", len(arrays["ids"]) - 1), ("ids", len(arrays["experts"]))):
        offsets = arrays[name]
        if offsets[0] != 0 or offsets[-1] != end or bool((offsets[1:] < offsets[:-1]).any()):
            raise InvalidTrace(f"the offsets {name} do not rise from 0 to {end}", cure=_AGAIN)


def _json(array: Any, name: str) -> object:
    try:
        return parse(array.tobytes().decode("utf-8"), f"{name}: header")
    except UnicodeDecodeError as error:
        raise InvalidTrace("the header is not UTF-8", cure=_AGAIN) from error


class _Cursor:
    """Takes what each event needs from the arrays in turn, and refuses to run over their ends or to leave a rest."""

    def __init__(self, arrays: _Arrays, experts: int) -> None:
        self.arrays, self.experts = arrays, experts
        self.used: dict[str, int] = dict.fromkeys(("weights", "scores", "positions", "accepted", "hit", "bytes"), 0)

    def events(self, name: str, *, drop_weights: bool) -> Iterator[tuple[str, Event]]:
        for index in range(len(self.arrays["stream"])):
            place = f"{name}: event {index}"
            with At(place):
                yield place, self._event(index, drop_weights)
        for column, used in self.used.items():
            if used != len(self.arrays[column]):
                raise InvalidTrace(f"array {column} is too long", where=name, cure=_AGAIN)

    def _take(self, column: str, count: int) -> list[Any]:
        start = self.used[column]
        self.used[column] = end = start + count
        if end > len(self.arrays[column]):
            raise InvalidTrace(f"array {column} is too short", cure=_AGAIN)
        return self.arrays[column][start:end].tolist()  # type: ignore[no-any-return]

    def _event(self, index: int, drop_weights: bool) -> Event:
        layer, stream, number, phase, has = (
            int(self.arrays[column][index]) for column in ("layer", "stream", "pass", "phase", "has")
        )
        if has >= 2 * max(HAS.values()) or phase >= len(PHASES):
            raise InvalidTrace(f"has {has}, phase {phase}", cure="written by another version? " + _AGAIN)
        first, last = self.arrays["rows"][index : index + 2].tolist()
        bounds = self.arrays["ids"][first : last + 1].tolist()
        start, end = bounds[0], bounds[-1]
        bounds = [bound - start for bound in bounds]
        rows = _cut(self.arrays["experts"][start:end].tolist(), bounds)
        fields: dict[str, Any] = {}
        if has & HAS["weights"]:
            weights = self._take("weights", end - start)
            fields["weights"] = None if drop_weights else _cut(weights, bounds)
        if has & HAS["scores"]:
            scores = self._take("scores", len(rows) * self.experts)
            fields["scores"] = _cut(scores, range(0, len(scores) + 1, self.experts))
        if has & HAS["positions"]:
            fields["positions"] = tuple(self._take("positions", len(rows)))
        if has & HAS["accepted"]:
            fields["accepted"] = self._take("accepted", 1)[0]
        if has & HAS["recorded"]:
            fields["recorded"] = self._recorded(len({expert for row in rows for expert in row}))
        return Event(layer, rows, stream, number, PHASES[phase], **fields)

    def _recorded(self, distinct: int) -> Recorded:
        hits = self._take("hit", distinct)
        if any(hit > 1 for hit in hits):
            raise InvalidTrace("a hit that is neither 0 nor 1", cure=_AGAIN)
        return Recorded(tuple(map(bool, hits)), tuple(self._take("bytes", distinct)))


def _cut(values: list[Any], bounds: Sequence[int]) -> tuple[tuple[Any, ...], ...]:
    return tuple(tuple(values[start:end]) for start, end in pairwise(bounds))
