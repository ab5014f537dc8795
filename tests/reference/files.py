"""Small trace files that tests write, break and read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from expertcache_spec.model import Geometry
from expertcache_spec.trace import Event, Recorded, Trace

DATA = Path(__file__).parents[1] / "data"
QWEN = DATA / "bigmoe-on-edge" / "qwen.route.csv.gz"
GEMMA = DATA / "bigmoe-on-edge" / "gemma.route.csv.gz"
CODE_CS = DATA / "gpt-oss-20b" / "gptoss20b_code_cs.jsonl.gz"
INSTRUCT_FACTS = DATA / "gpt-oss-20b" / "gptoss20b_instruct_facts.jsonl.gz"

CSV = """\
# route_trace v1
# model=/some where/tiny.gguf arch=tiny n_layer=2 n_expert=4 n_expert_used=2
# layer=0 expert_bytes=100 dense_bytes=7
# layer=1 expert_bytes=300 dense_bytes=7
turn,phase,step,layer,slot,expert,weight,residency,expert_bytes
0,0,0,0,0,0,0.6,0,100
0,0,0,0,1,1,0.4,0,100
0,0,1,0,0,1,0.7,0,0
0,0,1,0,1,2,0.3,0,100
0,0,1,1,0,3,0.5,0,300
0,0,1,1,1,0,0.5,0,300
0,1,2,0,0,0,0.8,1,0
0,1,2,0,1,3,0.2,0,100
0,1,2,1,0,3,0.9,2,0
0,1,2,1,1,1,0.1,0,300
0,1,3,0,0,1,0.6,1,0
0,1,3,0,1,2,0.4,1,0
0,1,3,1,0,0,0.6,1,0
0,1,3,1,1,1,0.4,1,0
"""
"""A prompt of two tokens (the last layer routes the last one only) and two decode steps; the first row is line 6."""


def csv_lines() -> list[str]:
    return CSV.splitlines()


def jsonl_records() -> list[dict[str, Any]]:
    """Header, two passes over two layers, end mark."""
    header = {"format": "expertcache-trace", "version": 1, "name": "tiny", "about": {},
              "geometry": {"layers": 2, "experts": 4, "top_k": 2, "record_bytes": [100, 300]}}  # fmt: skip
    events: list[dict[str, Any]] = [
        {
            "stream": 0,
            "pass": number,
            "phase": "decode",
            "layer": layer,
            "experts": [[number, 3]],
            "weights": [[0.75, 0.25]],
        }
        for number in range(2)
        for layer in range(2)
    ]  # fmt: skip
    return [header, *events, {"end": True, "events": len(events)}]


def request(blob: str = "a", tokens: int = 2, **changes: Any) -> dict[str, Any]:
    """One request of the gpt-oss form."""
    ids = [[[token % 5, 5 + layer, 30, 31] for layer in range(24)] for token in range(tokens)]
    probs = [[[0.5, 0.25, 0.125, 0.125]] * 24 for _ in range(tokens)]
    return {"blob": blob, "first_pos": 7, "contiguous": True, "ids": ids, "probs": probs, **changes}


def dumped(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def put(path: Path, content: str | bytes) -> Path:
    """Write the file, through gzip where its name says so."""
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def _event(draw: st.DrawFn, model: Geometry, stream: int, number: int, layer: int, phase: Any, rows: int) -> Event:
    count = st.integers(0, 2**62)
    number_of_weights = st.floats(allow_nan=False, allow_infinity=False)
    ids = st.lists(st.integers(0, model.experts - 1), min_size=1, max_size=model.top_k, unique=True)
    routed = tuple(tuple(draw(ids)) for _ in range(rows))
    distinct = len({expert for row in routed for expert in row})
    fields: dict[str, Any] = {}
    if draw(st.booleans()):
        fields["weights"] = tuple(tuple(draw(number_of_weights) for _ in row) for row in routed)
    if draw(st.booleans()):
        fields["scores"] = tuple(tuple(draw(number_of_weights) for _ in range(model.experts)) for _ in routed)
    if draw(st.booleans()):
        fields["positions"] = tuple(draw(count) for _ in routed)
    if phase == "verify" and draw(st.booleans()):
        fields["accepted"] = draw(st.integers(0, rows))
    if draw(st.booleans()):
        hits = tuple(draw(st.booleans()) for _ in range(distinct))
        fields["recorded"] = Recorded(hits, tuple(draw(count) for _ in range(distinct)))
    return Event(layer, routed, stream, number, phase, **fields)


@st.composite
def whole_traces(draw: st.DrawFn) -> Trace:
    """Traces with every optional field now present, now absent, of models with and without dense layers."""
    layers, experts = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    routed = tuple(sorted(draw(st.sets(st.integers(0, layers - 1), min_size=1))))
    sizes = draw(st.none() | st.tuples(*[st.integers(1, 2**40)] * layers))
    model = Geometry(layers, experts, draw(st.integers(1, experts)), sizes, routed=routed)
    events = []
    passes: dict[int, int] = {}
    for stream in draw(st.lists(st.sampled_from([0, 3, 2**40]), min_size=1, max_size=4)):
        number = passes[stream] = passes.get(stream, -1) + 1
        phase, rows = draw(st.sampled_from(["prefill", "decode", "verify"])), draw(st.integers(1, 3))
        events += [_event(draw, model, stream, number, layer, phase, rows) for layer in routed]
    about = draw(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2))
    return Trace(model, tuple(events), draw(st.text(max_size=8)), about)
