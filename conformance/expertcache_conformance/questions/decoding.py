"""Questions from the data of a replay file."""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import repr  # what a damaged file holds may be long  # noqa: A004
from typing import Any

from expertcache_conformance.adapters.planning import LAYOUTS, Table
from expertcache_conformance.decoding import InvalidReplay
from expertcache_conformance.questions.base import Question
from expertcache_conformance.questions.chunks import ChunkQuestion
from expertcache_conformance.questions.layouts import LayoutQuestion
from expertcache_conformance.questions.openings import STATES, FilesQuestion, TableQuestion, declared_by
from expertcache_conformance.questions.reads import ReadsQuestion, WindowQuestion
from expertcache_conformance.questions.schedules import ScheduleQuestion
from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.model import Key
from expertcache_spec.schedule import Costs, Discipline, Load, Request, Scenario, Storage


def decode_question(raw: Any, where: str) -> Question:
    """The question of JSON data; raises `InvalidReplay` naming `where`."""
    readers = {"chunks": _chunks, "layout": _layout, "schedule": _schedule, "reads": _reads, "window": _window,
               "files": _files, "table": _table}  # fmt: skip
    if not isinstance(raw, Mapping) or raw.get("kind") not in list(readers):
        raise InvalidReplay(where, f"{repr(raw)} is no question about {', '.join(readers)}")
    try:
        return readers[raw["kind"]]({name: value for name, value in raw.items() if name != "kind"})
    except ExpertCacheError as error:
        raise InvalidReplay(where, error.what) from error
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InvalidReplay(where, f"the question cannot be read ({error})") from error


def _number(value: Any, least: int = 0) -> int:
    if type(value) is not int or value < least:
        raise ValueError(f"{repr(value)} is not a whole number from {least}")
    return value


def _chunks(raw: dict[str, Any]) -> Question:
    question = ChunkQuestion(**raw)
    for name in ("size_of_record", "before"):
        _number(raw[name])
    _number(raw["page"], 1)
    _number(raw["wanted"], -(1 << 31))
    return question


def _layout(raw: dict[str, Any]) -> LayoutQuestion:
    for name, least in (("experts", 1), ("alignment", 1), ("header", 0), ("rows", 1), ("roll", 0)):
        _number(raw[name], least)
    if raw["layout"] not in LAYOUTS:
        raise ValueError(f"{repr(raw['layout'])} is no layout")
    parts = tuple(tuple((str(name), _number(size, 1)) for name, size in layer) for layer in raw["parts"])
    return LayoutQuestion(**{**raw, "parts": parts})


def _declared(raw: dict[str, Any]) -> LayoutQuestion:
    where = _layout(raw)
    if where.declared() is None:
        raise ValueError("a layout that nobody declares")
    return where


def _reads(raw: dict[str, Any]) -> Question:
    where, keys = _declared(raw["where"]), tuple(Key(*map(_number, key)) for key in raw["keys"])
    if not set(keys) <= set(where.shape.keys()) or _number(raw["resident"]) > len(where.parts):
        raise ValueError("records or layers that the model does not have")
    return ReadsQuestion(**{**raw, "where": where, "keys": keys})


def _window(raw: dict[str, Any]) -> Question:
    question = WindowQuestion(**raw)
    for name, least in (("offset", 0), ("length", 1), ("grain", 1), ("file_size", raw["offset"] + raw["length"])):
        _number(raw[name], least)
    return question


def _files(raw: dict[str, Any]) -> Question:
    where, states = _declared(raw["where"]), tuple(raw["states"])
    if not set(states) <= set(STATES) or len(states) != len(declared_by(where).files):
        raise ValueError(f"{repr(states)} are no states of its files")
    return FilesQuestion(**{**raw, "where": where, "states": states})


def _table(raw: dict[str, Any]) -> Question:
    table = Table(**{name: _number(value, 1) for name, value in raw["table"].items()})
    return TableQuestion(**{**raw, "where": _declared(raw["where"]), "table": table})


def _schedule(raw: dict[str, Any]) -> Question:
    records = tuple(tuple(Request(*request) for request in record) for record in raw["records"])
    for request in (each for record in records for each in record):
        if request.stage not in ("gate_up", "down"):
            raise ValueError(f"{repr(request.stage)} is no stage")
        _number(request.bytes)
    scenario = Scenario(
        tuple(_load(load) for load in raw["loads"]), records, Costs(**raw["costs"]), Storage(**raw["storage"]),
        Discipline(**raw["discipline"]),
    )  # fmt: skip
    return ScheduleQuestion(scenario, bool(raw["exact"]))


def _load(raw: dict[str, Any]) -> Load:
    keys = {name: tuple(Key(*map(_number, key)) for key in raw[name])
            for name in ("keys", "missing", "victims", "prefetches")}  # fmt: skip
    return Load(**{**raw, **keys, "missing": frozenset(keys["missing"])})
