"""Logs for the tests of the history: a rich legal one, and the mutations that spoil a log in one way each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

from expertcache_spec.eviction import make
from expertcache_spec.history import Header, Recorder, Verdict, check, encode_header, log_of, numbered
from expertcache_spec.history.header import decode_log_header
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import Replay
from expertcache_spec.residency import Residency, Settings
from expertcache_spec.trace import Event, Trace

Record = dict[str, Any]
Log = list[Record]

PAGE = 16384
RECORD = 6 * PAGE
MODEL = Geometry(2, 6, 2, (RECORD, RECORD))


def trace() -> Trace:
    """Two layers, six passes, with hits, misses and evictions in three slots."""
    asked = [(0, 1), (2, 3), (0, 2), (2, 4), (1, 0), (3, 2), (5, 0), (4, 5), (0, 1), (2, 3), (0, 5), (2, 3)]
    events = tuple(Event(n % 2, (ids,), pass_index=n // 2) for n, ids in enumerate(asked))
    return Trace(MODEL, events, "mutants")


def log(policy: str = "lru", slots: int = 5, ahead: int = 1, **chosen: str) -> Log:
    """The log of a replay, header first, as it comes back from a file."""
    found: Log = json.loads(_log(policy, slots, ahead, tuple(chosen.items())))
    return found


@cache
def _log(policy: str, slots: int, ahead: int, chosen: tuple[tuple[str, str], ...]) -> str:
    run = Replay(trace(), policy, Budget(slots=slots), Settings(**dict(chosen)))  # type: ignore[arg-type]
    return json.dumps(list(log_of(run, split=3, ahead=ahead)))


def managed() -> Log:
    """The log of everything that no trace asks for: seeds, pins, prefetches, a failed read, resizes, resets."""
    found: Log = json.loads(_managed())
    return found


@cache
def _managed() -> str:
    machine = Residency(MODEL, Budget(slots=4), make("lru"))
    recorder = Recorder(machine, split=2, page=PAGE)
    for key in (Key(0, 5), Key(0, 5), Key(7, 7)):
        recorder.seed(key, 3)
    first = recorder.select(Event(0, ((0, 1),)))
    runs = recorder.begin_reads(first.reads)
    recorder.end_reads(runs[:2])
    recorder.publish(Key(0, 0))
    recorder.fail(Key(0, 1))
    _finish(recorder, first, [Key(0, 0)])
    again = recorder.select(Event(0, ((0, 1),)))
    recorder.load(again)
    recorder.finish(again)
    machine.pin(Key(0, 0))
    recorder.say("pin", key=[0, 0])
    runs = recorder.prefetch(Key(1, 2))
    second = recorder.select(Event(1, ((2, 3),)))
    recorder.say("prefetch", key=[1, 2], state="late")
    recorder.end_reads(runs)
    recorder.publish(Key(1, 2))
    recorder.say("prefetch", key=[1, 2], state="adopted")
    recorder.load(second)
    recorder.finish(second)
    recorder.resize(Budget(slots=2))
    machine.unpin(Key(0, 0))
    recorder.say("unpin", key=[0, 0])
    recorder.resize(Budget(slots=3))
    runs = recorder.prefetch(Key(0, 4))
    recorder.end_reads(runs)
    recorder.publish(Key(0, 4))
    recorder.say("prefetch", key=[0, 4], state="ready")
    recorder.reset("history")
    recorder.reset("counters")
    third = recorder.select(Event(0, ((4, 0),), pass_index=1))
    recorder.say("prefetch", key=[0, 4], state="adopted")
    recorder.load(third)
    recorder.finish(third)
    recorder.reset("contents")
    recorder.end()
    header = Header(MODEL, Budget(slots=4), policy="lru", name="managed")
    return json.dumps([encode_header(header), *recorder.taken()])


def displacing() -> Log:
    """The log of prefetches for which records give way, one of them a record that was prefetched for nothing."""
    found: Log = json.loads(_displacing())
    return found


@cache
def _displacing() -> str:
    recorder = Recorder(Residency(MODEL, Budget(slots=4), make("lru")), split=2, page=PAGE)
    asked = [(0, 1), (0, 1), (0, 1), (1, 4), (0, 2), (4, 0)]
    guesses = {2: [Key(1, 4)], 4: [Key(1, 5)], 5: [Key(0, 3), Key(0, 4)]}
    for number, ids in enumerate(asked):
        selection = recorder.select(Event(number % 2, (ids,), pass_index=number // 2))
        if number == 3:
            recorder.say("prefetch", key=[1, 4], state="adopted")
        recorder.load(selection)
        for key in guesses.get(number, []):
            runs = recorder.prefetch(key, selection)
            if key == Key(0, 4):
                recorder.say("prefetch", key=[1, 5], state="discarded")
            recorder.end_reads(runs)
            recorder.publish(key)
            recorder.say("prefetch", key=list(key), state="ready")
        recorder.finish(selection)
    recorder.end()
    header = Header(MODEL, Budget(slots=4), policy="lru", name="displacing")
    return json.dumps([encode_header(header), *recorder.taken()])


def _finish(recorder: Recorder, selection: Any, kept: list[Key]) -> None:
    """Work on what has arrived, and release."""
    recorder.compute(selection, kept)
    recorder.say("combine", ticket=selection.ticket, keys=[list(key) for key in kept])
    recorder.release(selection)


def verdict(found: Log) -> Verdict:
    """What the checker says of a log in memory."""
    return check(decode_log_header(found[0], "log:1"), numbered(found[1:]))


def counted(found: Log) -> Log:
    """The log with its clock and its end line set right after a mutation."""
    for number, record in enumerate(found[1:]):
        record["clock"] = number
    if found[-1]["op"] == "end":
        found[-1]["records"] = len(found) - 2
    return found


def place(found: Log, op: str, nth: int = 0, **fields: Any) -> int:
    """The index of the nth line of that operation with those fields."""
    fitting = [n for n, r in enumerate(found) if r.get("op") == op and all(r.get(k) == v for k, v in fields.items())]
    return fitting[nth]


def moved(found: Log, source: int, target: int) -> None:
    """Move a line to stand before the one that stands at `target`."""
    record = found.pop(source)
    found.insert(target - (source < target), record)


def staged(*states: str, taken: str = "adopted") -> Log:
    """A log in which a prefetch outside the cache goes through the states, and a miss may take its bytes."""
    found = log(slots=5, ahead=0)
    found[0]["prefetch"] = "staging"
    first = place(found, "miss", key=[0, 1])
    run = {"read": 0, "offset": 0, "length": 98304}
    said: dict[str, list[dict[str, Any]]] = {
        "reading": [{"op": "prefetch", "state": "reading", "key": [0, 1]}, {"op": "read_start", "key": [0, 1], **run}],
        "ready": [{"op": "read_end", **run}, {"op": "prefetch", "state": "ready", "key": [0, 1]}],
        "early": [{"op": "prefetch", "state": "ready", "key": [0, 1]}],
        "discarded": [{"op": "prefetch", "state": "discarded", "key": [0, 1]}],
    }
    before = [record for state in states for record in said[state]]
    for record in found[1:]:
        if "read" in record:
            record["read"] += 1
    if taken:
        own = {r["read"] for r in found[1:] if r["op"] == "read_start" and r["key"] == [0, 1]}
        own = set(sorted(own)[:3])
        found = [r for r in found if r.get("read") not in own]
        found.insert(first + 1, {"op": "prefetch", "state": taken, "key": [0, 1]})
        if taken == "late":
            found.insert(first + 2, {"op": "read_end", **run})
            found.insert(place(found, "publish", key=[0, 1]) + 1, {"op": "prefetch", "state": "adopted", "key": [0, 1]})
    return counted([found[0], *({"clock": 0, "thread": 0, **r} for r in (*before, *found[1:]))])


class Mutation(NamedTuple):
    """One way to spoil a log: the rule that it breaks, and what it does to a legal log, which it changes in place."""

    name: str
    rule: str
    spoil: Callable[[Log], object]
    log: Callable[[], Log] = log


def lines(found: Iterable[Record]) -> bytes:
    """The log as a file."""
    return b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in found)
