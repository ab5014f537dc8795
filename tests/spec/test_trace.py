"""Events, passes, streams, fingerprints, and the canonical trace format as plain records."""

from __future__ import annotations

import json
import math
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from expertcache_spec import traceformat
from expertcache_spec.errors import InvalidTrace
from expertcache_spec.model import Geometry, Key
from expertcache_spec.trace import Event, Recorded, Trace, TraceChecker, canonical_line, decode_trace, fingerprint

from .strategies import traces

MODEL = Geometry(2, 8, 3, (4, 4))


def walk(*layers: int, stream: int = 0, pass_index: int = 0, phase: Any = "decode") -> list[Event]:
    """One event for each of the layers."""
    return [Event(layer, ((0, 1),), stream, pass_index, phase) for layer in layers]


@pytest.mark.rule("XC-TRACE-001")
def test_the_keys_of_an_event_are_its_distinct_experts_in_order_of_first_appearance() -> None:
    event = Event(1, ((5, 2), (2, 7), (5, 0)))
    assert event.keys == (Key(1, 5), Key(1, 2), Key(1, 7), Key(1, 0))
    assert event.selections() == [Key(1, e) for e in (5, 2, 2, 7, 5, 0)]
    assert [event.multiplicity(key) for key in event.keys] == [2, 2, 1, 1]
    assert event.multiplicity(Key(0, 5)) == 0
    assert event.has_repeats
    assert not Event(1, ((5, 2), (7, 0))).has_repeats


@pytest.mark.rule("XC-METRIC-008")
def test_rejected_keys_are_those_that_no_accepted_row_asked_for() -> None:
    rows = ((0, 1), (1, 2), (3, 0))
    assert Event(0, rows, phase="verify").rejected_keys() == frozenset()
    assert Event(0, rows, phase="verify", accepted=3).rejected_keys() == frozenset()
    assert Event(0, rows, phase="verify", accepted=1).rejected_keys() == {Key(0, 2), Key(0, 3)}
    assert Event(0, rows, phase="verify", accepted=0).rejected_keys() == {Key(0, e) for e in range(4)}


@pytest.mark.rule("XC-TRACE-001", "XC-TRACE-003", "XC-TRACE-004")
@pytest.mark.parametrize(
    "fields",
    [
        {"rows": ()},
        {"rows": ((),)},
        {"rows": ((0,), ())},
        {"rows": ((-1,),)},
        {"rows": ((0, 0),)},
        {"rows": ((True,),)},
        {"rows": ((1.0,),)},
        {"layer": -1},
        {"stream": -1},
        {"pass_index": 0.0},
        {"phase": "warm-up"},
        {"weights": ()},
        {"weights": ((0.5,),)},
        {"weights": ((0.5, math.nan),)},
        {"weights": ((0.5, math.inf),)},
        {"scores": ((0.1,) * 8, (0.1,) * 8)},
        {"scores": ((math.nan,) * 8,)},
        {"positions": (0, 1)},
        {"positions": (-1,)},
        {"accepted": 1},
        {"phase": "verify", "accepted": 2},
        {"phase": "verify", "accepted": -1},
        {"recorded": Recorded((True,), (0,))},
        {"recorded": Recorded((True, False), (0,))},
    ],
)
def test_a_malformed_event_is_refused_with_its_place_and_a_cure(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidTrace, match=r"stream .* pass .* layer .*Cure: "):
        Event(**({"layer": 0, "rows": ((0, 1),)} | fields))


@pytest.mark.rule("XC-TRACE-003")
@pytest.mark.parametrize(
    ("event", "what"),
    [
        (Event(0, ((8,),)), "0..7"),
        (Event(0, ((0, 1, 2, 3),)), "top_k is 3"),
        (Event(0, ((0,),), scores=((0.5,) * 7,)), "not one per expert"),
    ],
)
def test_what_the_model_does_not_have_is_refused(event: Event, what: str) -> None:
    with pytest.raises(InvalidTrace, match=what):
        TraceChecker(MODEL).feed(event)


@pytest.mark.rule("XC-TRACE-002", "XC-TRACE-005")
@pytest.mark.parametrize(
    "events",
    [
        pytest.param([], id="nothing"),
        pytest.param(walk(1), id="starts late"),
        pytest.param(walk(0), id="ends early"),
        pytest.param([*walk(0, 1), *walk(0, pass_index=1)], id="the last pass is cut"),
        pytest.param(walk(0, 0), id="a row doubled"),
        pytest.param(walk(0, 1, pass_index=1), id="no first pass"),
        pytest.param([*walk(0, 1), *walk(0, 1, pass_index=2)], id="a pass is missing"),
        pytest.param([*walk(0, 1), *walk(0, 1)], id="a pass doubled"),
        pytest.param([*walk(0), *walk(1, phase="prefill")], id="two phases in one pass"),
        pytest.param([*walk(0, 1), *walk(0, stream=1)], id="the other stream is cut"),
    ],
)
def test_a_walk_with_a_gap_a_double_or_a_cut_is_refused(events: list[Event]) -> None:
    with pytest.raises(InvalidTrace, match="Cure: "):
        Trace(MODEL, tuple(events))


@pytest.mark.rule("XC-TRACE-002")
def test_streams_may_interleave_at_any_event_and_dense_layers_are_skipped() -> None:
    first, second = walk(0, 1), walk(0, 1, stream=7, phase="verify")
    assert len(Trace(MODEL, (first[0], second[0], second[1], first[1])).events) == 4
    dense = Geometry(3, 8, 3, routed=(0, 2))
    assert len(Trace(dense, tuple(walk(0, 2))).events) == 2
    with pytest.raises(InvalidTrace, match="layer 2 of this stream"):
        Trace(dense, tuple(walk(0, 1)))


@given(traces())
@pytest.mark.rule("XC-TRACE-002")
def test_every_generated_trace_is_legal_and_every_proper_prefix_of_one_pass_is_not(trace: Trace) -> None:
    checker = TraceChecker(trace.geometry)
    for event in trace.events:
        assert checker.feed(event) is event
    checker.finish()
    if len(trace.geometry.routed) > 1:
        with pytest.raises(InvalidTrace, match="XC-TRACE-005"):
            Trace(trace.geometry, trace.events[:-1])


@pytest.mark.rule("XC-TRACE-006")
def test_equal_events_have_equal_fingerprints_and_others_have_not() -> None:
    base = Event(0, ((0, 1),), weights=((1.0, 0.0),))
    same = Event(0, ((0, 1),), weights=((1, -0.0),))
    assert base == same
    assert fingerprint(MODEL, [base]) == fingerprint(MODEL, [same])
    assert fingerprint(Geometry(2, 8, 3, (4, 4), (0, 1)), [base]) == fingerprint(MODEL, [base])
    others = [
        {"rows": ((1, 0),)}, {"rows": ((0, 1), (0, 1)), "weights": None}, {"weights": None}, {"phase": "prefill"},
        {"stream": 1}, {"pass_index": 1}, {"layer": 1}, {"positions": (3,)}, {"scores": ((0.5,) * 8,)},
        {"recorded": Recorded((True, False), (0, 4))}, {"phase": "verify", "accepted": 1},
    ]  # fmt: skip
    hashes = {fingerprint(MODEL, [base])} | {fingerprint(MODEL, [attrs.evolve(base, **other)]) for other in others}  # type: ignore[arg-type]
    assert len(hashes) == 1 + len(others)
    assert fingerprint(Geometry(2, 8, 3, (4, 5)), [base]) not in hashes


@pytest.mark.rule("XC-TRACE-006")
def test_a_trace_is_named_by_what_is_replayed_not_by_its_name() -> None:
    trace = decode_trace([[0], [1]])
    assert attrs.evolve(trace, name="other", about={"source": "x"}).fingerprint == trace.fingerprint
    # A fingerprint that changes breaks every manifest ever written: it is pinned.
    assert trace.fingerprint == "7fde04b4c6bb2088c2ffffa99bf1ab9bdd2ddc1c04ae964abeb11368de5de2da"


# ---------------------------------------------------------------------------------------------- the format


def pairs(records: list[Any]) -> list[tuple[str, Any]]:
    """The records with their places, as a reader of lines supplies them."""
    return [(f"t.jsonl:{number}", record) for number, record in enumerate(records, 1)]


def written(trace: Trace) -> list[Any]:
    """The records of the trace as they come back from JSON."""
    return [json.loads(canonical_line(record)) for record in traceformat.encode(trace)]


@st.composite
def full_traces(draw: st.DrawFn) -> Trace:
    """A trace whose events carry every optional field now and then."""
    trace = draw(traces())
    number = st.floats(-4, 4, width=32)

    def dress(event: Event) -> Event:
        extra: dict[str, Any] = {}
        if draw(st.booleans()):
            extra["weights"] = tuple(tuple(draw(number) for _ in row) for row in event.rows)
        if draw(st.booleans()):
            extra["scores"] = tuple(tuple(draw(number) for _ in range(trace.geometry.experts)) for _ in event.rows)
        if draw(st.booleans()):
            extra["positions"] = tuple(draw(st.integers(0, 99)) for _ in event.rows)
        if draw(st.booleans()):
            hits = tuple(draw(st.booleans()) for _ in event.keys)
            extra["recorded"] = Recorded(hits, tuple(0 if hit else 4 for hit in hits))
        return attrs.evolve(event, **extra)

    return Trace(trace.geometry, tuple(map(dress, trace.events)), draw(st.text(max_size=5)), {"source": "a test"})


@pytest.mark.rule("XC-TRACE-007", "XC-TRACE-006")
@given(full_traces())
def test_what_was_written_reads_back_equal(trace: Trace) -> None:
    again = traceformat.decode(pairs(written(trace)))
    assert again == trace
    assert again.fingerprint == trace.fingerprint


SHORT = decode_trace([[0, 1], [2]])


def changed(line: int, **fields: Any) -> list[Any]:
    """The short trace with fields of one record replaced; None removes one."""
    records = written(SHORT)
    merged = {**records[line], **fields}
    records[line] = {name: value for name, value in merged.items() if value is not None}
    return records


@pytest.mark.rule("XC-TRACE-008", "XC-TRACE-005")
@pytest.mark.parametrize(
    ("records", "place"),
    [
        pytest.param([], "trace", id="empty"),
        pytest.param(["x"], "t.jsonl:1", id="no object"),
        pytest.param(changed(0, format="other"), "t.jsonl:1", id="other format"),
        pytest.param(changed(0, version=2), "t.jsonl:1", id="other version"),
        pytest.param(changed(0, extra=1), "t.jsonl:1", id="unknown header field"),
        pytest.param(changed(0, geometry=None), "t.jsonl:1", id="no geometry"),
        pytest.param(changed(0, geometry={"layers": 1}), "t.jsonl:1", id="half a geometry"),
        pytest.param(changed(0, geometry={"layers": 1 << 40, "experts": 4, "top_k": 1}), "t.jsonl:1", id="huge"),
        pytest.param(changed(0, geometry={"layers": 1, "experts": 0, "top_k": 0}), "t.jsonl:1", id="no experts"),
        pytest.param(changed(0, geometry={"layers": 1, "experts": 4, "top_k": 2, "x": 1}), "t.jsonl:1", id="extra"),
        pytest.param(changed(0, about={"a": 1}), "t.jsonl:1", id="about is no text"),
        pytest.param(changed(1, surprise=1), "t.jsonl:2", id="unknown event field"),
        pytest.param(changed(1, layer=None), "t.jsonl:2", id="no layer"),
        pytest.param(changed(1, experts=3), "t.jsonl:2", id="experts is no list"),
        pytest.param(changed(1, experts=[[0.5]]), "t.jsonl:2", id="half an expert"),
        pytest.param(changed(1, experts=[[-1]]), "t.jsonl:2", id="padding"),
        pytest.param(changed(1, experts=[[9]]), "t.jsonl:2", id="no such expert"),
        pytest.param(changed(1, weights=[["a", 1]]), "t.jsonl:2", id="weights are no numbers"),
        pytest.param(changed(1, recorded={"hit": [1, 0], "bytes": [0, 0]}), "t.jsonl:2", id="hits are no truths"),
        pytest.param(changed(2, **{"pass": 5}), "t.jsonl:3", id="a pass is missing"),
        pytest.param(changed(3, events=1), "t.jsonl:4", id="an event was lost"),
        pytest.param(written(SHORT)[:-1], "t.jsonl:3", id="no end mark"),
        pytest.param([*written(SHORT), {"end": True, "events": 2}], "t.jsonl:5", id="more after the end"),
    ],
)
def test_a_malformed_record_is_refused_with_its_place_and_a_cure(records: list[Any], place: str) -> None:
    with pytest.raises(InvalidTrace, match="Cure: ") as refusal:
        traceformat.decode(pairs(records))
    assert refusal.value.where.startswith(place)


def test_a_decode_trace_for_examples_counts_its_experts_and_passes() -> None:
    trace = decode_trace([[0, 4], [1]], layers=2)
    assert trace.geometry == Geometry(2, 5, 2, (1, 1))
    assert [(event.layer, event.pass_index) for event in trace.events] == [(0, 0), (1, 0)]
