"""Events, passes, phases, streams and traces: what the router asked for, checked strictly.

An event is what one layer asks for at once. A pass walks the routed layers once, in order; a stream is one request,
a sequence of passes. Streams may interleave; the order of events in a trace is the order of replay.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Literal

import attrs

from expertcache_spec.errors import InvalidTrace
from expertcache_spec.model import Geometry, Key

Phase = Literal["prefill", "decode", "verify"]
PHASES: tuple[Phase, ...] = ("prefill", "decode", "verify")

Matrix = tuple[tuple[float, ...], ...]


_key = lru_cache(1 << 16)(Key)
"""One object for equal keys, as far as they are few: dicts find what is identical without comparing it."""


@attrs.frozen(slots=False)
class Recorded:
    """What a real engine's cache did with the event, for each distinct key in order of first appearance.

    `hits` says whether the key was resident, `bytes` what was read for it.
    """

    hits: tuple[bool, ...]
    bytes: tuple[int, ...]


@attrs.frozen(slots=False)
class Event:
    """What one layer asks for at once: for each token row, its experts in router order (XC-TRACE-001).

    layer: layer index. rows: token rows x up to top_k expert ids, each row ranked. stream: the request it belongs to.
    pass_index: the pass within that stream, from 0. phase: prefill, decode or verify. weights: final router weights,
    shaped as rows. scores: full router scores, rows x experts. lookahead: for the next routed layers in turn, the
    scores that their gates give on this event's hidden state, each rows x experts. positions: token position of each
    row. accepted: of a verify event, how many leading rows the verifier kept. recorded: what a real engine did.

    Raises `InvalidTrace` where a row is empty, repeats an expert, or the shapes disagree.
    """

    layer: int
    rows: tuple[tuple[int, ...], ...]
    stream: int = 0
    pass_index: int = 0
    phase: Phase = "decode"
    weights: Matrix | None = None
    scores: Matrix | None = None
    lookahead: tuple[Matrix, ...] | None = None
    positions: tuple[int, ...] | None = None
    accepted: int | None = None
    recorded: Recorded | None = None
    keys: tuple[Key, ...] = attrs.field(init=False, eq=False, repr=False)
    """The distinct keys, in order of first appearance: the lookups of the event."""
    highest: int = attrs.field(init=False, eq=False, repr=False)
    """The highest expert id of the event."""
    has_repeats: bool = attrs.field(init=False, eq=False, repr=False)
    """Whether some expert is asked for by more than one row."""

    def __attrs_post_init__(self) -> None:
        check_event(self)
        layer = self.layer
        distinct = self.rows[0] if len(self.rows) == 1 else tuple(dict.fromkeys(e for row in self.rows for e in row))
        object.__setattr__(self, "keys", tuple([_key(layer, expert) for expert in distinct]))
        object.__setattr__(self, "highest", max(distinct))
        object.__setattr__(self, "has_repeats", sum(map(len, self.rows)) != len(distinct))
        if self.recorded is not None and not len(self.recorded.hits) == len(self.recorded.bytes) == len(distinct):
            raise _invalid(
                self, "recorded hits and bytes do not match the distinct experts", "give one of each per key"
            )

    def selections(self) -> list[Key]:
        """Every selection in order, rows one after the other, repeats included."""
        return [Key(self.layer, expert) for row in self.rows for expert in row]

    def multiplicity(self, key: Key) -> int:
        """How many rows ask for `key`."""
        return sum(row.count(key.expert) for row in self.rows) if key.layer == self.layer else 0

    def rejected_keys(self) -> frozenset[Key]:
        """The keys that only rejected rows of a verify event asked for (XC-METRIC-008)."""
        if self.accepted is None:
            return frozenset()
        kept = {expert for row in self.rows[: self.accepted] for expert in row}
        return frozenset(key for key in self.keys if key.expert not in kept)


def _invalid(event: Event, what: str, cure: str) -> InvalidTrace:
    return InvalidTrace(what, where=f"stream {event.stream} pass {event.pass_index} layer {event.layer}", cure=cure)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def check_event(event: Event) -> None:
    """Raise `InvalidTrace` unless the event is well formed by itself, whatever the model."""
    if not (_is_count(event.layer) and _is_count(event.stream) and _is_count(event.pass_index)):
        raise _invalid(event, "layer, stream and pass must be whole numbers from 0", "number them from 0")
    if event.phase not in PHASES:
        raise _invalid(event, f"phase {event.phase!r}", f"one of {', '.join(PHASES)}")
    if not event.rows or not all(event.rows):
        raise _invalid(event, "an event without experts", "leave the event out, or restore its dropped row")
    for row in event.rows:
        for expert in row:
            if type(expert) is not int or expert < 0:
                raise _invalid(
                    event, f"expert id {expert!r} (XC-TRACE-003)", "drop padding such as -1 before writing the trace"
                )
        if len(set(row)) != len(row):
            raise _invalid(
                event,
                f"a row asks twice for one expert: {list(row)} (XC-TRACE-003)",
                "a router's top-k is distinct; look for a doubled or concatenated row",
            )
    further = [("lookahead", matrix) for matrix in event.lookahead or ()]
    for name, matrix in (("weights", event.weights), ("scores", event.scores), *further):
        if matrix is None:
            continue
        if len(matrix) != len(event.rows) or (
            name == "weights" and any(len(w) != len(r) for w, r in zip(matrix, event.rows, strict=True))
        ):
            raise _invalid(event, f"{name} are not shaped like the rows", f"give {name} for every row, or none")
        if not all(math.isfinite(value) for line in matrix for value in line):
            raise _invalid(
                event, f"{name} contain NaN or infinity (XC-TRACE-004)", f"leave {name} out where they are unknown"
            )
    if event.recorded is not None and not all(map(_is_count, event.recorded.bytes)):
        raise _invalid(event, "recorded bytes are no counts", "give whole numbers of bytes from 0")
    if event.positions is not None and not (
        len(event.positions) == len(event.rows) and all(map(_is_count, event.positions))
    ):
        raise _invalid(event, "positions do not number the rows", "give one whole number from 0 for each row")
    if event.accepted is not None and not (
        event.phase == "verify" and _is_count(event.accepted) and event.accepted <= len(event.rows)
    ):
        raise _invalid(event, f"accepted = {event.accepted!r}", "only a verify event accepts 0 to all of its rows")


@attrs.define(slots=False)
class TraceChecker:
    """Checks the order of events one at a time; keeps of each stream where it stands, whatever its events ask for.

    Every pass of a stream walks exactly the routed layers, in order, in one phase and with pass numbers 0, 1, 2 ...;
    `feed` raises `InvalidTrace` at the first event that does not, `finish` when a pass is left unfinished.
    """

    geometry: Geometry
    events: int = 0
    _last: dict[int, tuple[int, int, Phase]] = attrs.field(factory=dict)
    """Stream to the pass, layer and phase of its latest event."""

    def feed(self, event: Event) -> Event:
        """Accept the next event and return it (XC-TRACE-002, XC-TRACE-003, XC-TRACE-005)."""
        model, last = self.geometry, self._last.get(event.stream)
        for row in event.rows:
            if len(row) > model.top_k:
                raise _invalid(
                    event, f"{len(row)} experts in one row, top_k is {model.top_k}", "check the model's top_k"
                )
            if max(row) >= model.experts:
                raise _invalid(
                    event,
                    f"expert id {max(row)}, the model has 0..{model.experts - 1} (XC-TRACE-003)",
                    "check the model's number of experts, and map physical replica ids to logical ones",
                )
        full = (*(() if event.scores is None else (event.scores,)), *(event.lookahead or ()))
        if any(len(line) != model.experts for matrix in full for line in matrix):
            raise _invalid(event, "scores are not one per expert", f"give {model.experts} scores for every row")
        want_pass, want_layer = self._expected(last)
        if (event.pass_index, event.layer) != (want_pass, want_layer):
            raise _invalid(
                event,
                f"expected pass {want_pass} layer {want_layer} of this stream (XC-TRACE-002)",
                "look for dropped, doubled or reordered rows; streams must not share a number",
            )
        if last is not None and event.pass_index == last[0] and event.phase != last[2]:
            raise _invalid(event, f"phase {event.phase} inside a {last[2]} pass", "a pass has one phase")
        self._last[event.stream] = (event.pass_index, event.layer, event.phase)
        self.events += 1
        return event

    def _expected(self, last: tuple[int, int, Phase] | None) -> tuple[int, int]:
        routed = self.geometry.routed
        if last is None:
            return 0, routed[0]
        pass_index, layer, _ = last
        if layer == routed[-1]:
            return pass_index + 1, routed[0]
        return pass_index, routed[routed.index(layer) + 1]

    def finish(self) -> None:
        """Raise `InvalidTrace` when the trace is empty or the last pass of a stream is incomplete (XC-TRACE-005)."""
        if not self.events:
            raise InvalidTrace(
                "no events", where="trace", cure="check that the capture ran and the file is the right one"
            )
        for stream, (pass_index, layer, _) in self._last.items():
            if layer != self.geometry.routed[-1]:
                raise InvalidTrace(
                    "the trace ends inside this pass (XC-TRACE-005)",
                    where=f"stream {stream} pass {pass_index} layer {layer}",
                    cure="the file is cut off: capture again, or drop the incomplete last pass",
                )


@attrs.frozen(slots=False)
class Trace:
    """A whole trace in memory: the model's geometry and its events in replay order, checked on construction.

    `name` is for people; `about` holds source, licence and whatever else a reader should know.
    """

    geometry: Geometry
    events: tuple[Event, ...] = attrs.field(repr=lambda events: f"<{len(events)} events>")
    name: str = "trace"
    about: Mapping[str, str] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        checker = TraceChecker(self.geometry)
        for event in self.events:
            checker.feed(event)
        checker.finish()

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the geometry and of every event in canonical form: what a result's manifest calls the trace."""
        return fingerprint(self.geometry, self.events)


def fingerprint(geometry: Geometry, events: Iterable[Event]) -> str:
    """The hash that names this routing data, whatever file it came from (XC-TRACE-006)."""
    digest = hashlib.sha256(canonical_line(encode_geometry(geometry)))
    for event in events:
        digest.update(canonical_line(encode_event(event)))
    return digest.hexdigest()


def canonical_line(record: Mapping[str, object]) -> bytes:
    """One line of canonical JSON: no spaces, keys in the order of the format, a final newline."""
    return json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def encode_geometry(geometry: Geometry) -> dict[str, object]:
    """The geometry as the trace format writes it."""
    record: dict[str, object] = {"layers": geometry.layers, "experts": geometry.experts, "top_k": geometry.top_k}
    if geometry.record_bytes is not None:
        record["record_bytes"] = list(geometry.record_bytes)
    if len(geometry.routed) != geometry.layers:
        record["routed"] = list(geometry.routed)
    return record


def encode_event(event: Event) -> dict[str, object]:
    """The event as the trace format writes it; what is absent is left out."""
    record: dict[str, object] = {
        "stream": event.stream,
        "pass": event.pass_index,
        "phase": event.phase,
        "layer": event.layer,
        "experts": event.rows,
    }
    for name, matrix in (("weights", event.weights), ("scores", event.scores)):
        if matrix is not None:
            record[name] = [[float(value) + 0.0 for value in line] for line in matrix]  # 1 is 1.0, -0.0 is 0.0
    if event.lookahead is not None:
        record["lookahead"] = [[[float(x) + 0.0 for x in line] for line in matrix] for matrix in event.lookahead]
    for name in ("positions", "accepted"):
        if (value := getattr(event, name)) is not None:
            record[name] = value
    if event.recorded is not None:
        hits = [bool(hit) for hit in event.recorded.hits]
        record["recorded"] = {"hit": hits, "bytes": event.recorded.bytes}
    return record


def sequential(events: Iterable[Event]) -> Iterator[Event]:
    """The same requests one access at a time: each selection, repeats included, is an event of its own (XC-REPLAY-003).

    What classical simulators replay; layers and sets are gone, so it exists for comparison only.
    """
    for event in events:
        for row in event.rows:
            for expert in row:
                yield Event(event.layer, ((expert,),), event.stream, event.pass_index, event.phase)


def decode_trace(
    events: Sequence[Sequence[int]], *, layers: int = 1, experts: int = 0, record_bytes: int | None = 1
) -> Trace:
    """A decode trace for examples and tests: each inner sequence is what the next layer asks for.

    `decode_trace([[0, 1], [2]])` is two passes over one layer; with `layers=2` it is one pass over two. `experts`
    defaults to one more than the largest id.
    """
    top = max(len(ids) for ids in events)
    geometry = Geometry(
        layers,
        max(experts, 1 + max(e for ids in events for e in ids), top),
        top,
        None if record_bytes is None else (record_bytes,) * layers,
    )
    return Trace(
        geometry, tuple(Event(i % layers, (tuple(ids),), pass_index=i // layers) for i, ids in enumerate(events))
    )
