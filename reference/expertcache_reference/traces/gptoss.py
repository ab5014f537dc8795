"""Routing of gpt-oss-20b by request (`.jsonl`, `.jsonl.gz`), of GPT-OSS-MoE-ExpertFingerprinting.

One line is one request: `ids[tokens][24][4]` ranked experts and `probs`, the softmax weights over the four, of the
generated tokens only (prompt routing was not captured). Each line is a stream, each token a decode pass; the token
positions start at `first_pos`. Record sizes are not in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from expertcache_reference.traces.errors import At, checked
from expertcache_reference.traces.lines import Lines
from expertcache_reference.traces.reading import Reading, stem
from expertcache_reference.traces.strictjson import parse
from expertcache_spec.errors import InvalidTrace
from expertcache_spec.model import Geometry
from expertcache_spec.trace import Event
from expertcache_spec.traceformat import Header

GEOMETRY = Geometry(layers=24, experts=32, top_k=4)
"""gpt-oss-20b; the size of a record is not in the file."""

FIELDS = frozenset(
    {"source", "blob", "dataset", "category", "finished", "repetition", "row_index", "prompt_tokens", "first_pos",
     "contiguous", "ids", "probs"}
)  # fmt: skip
"""Every field that a line may have."""

_NEEDED = ("blob", "first_pos", "contiguous", "ids")
_SHAPE = f"give every token {GEOMETRY.layers} layers of {GEOMETRY.top_k}"


def read(lines: Lines, *, drop_weights: bool = False) -> Reading:
    """Header and events of the file; raises `InvalidTrace` at the first request that breaks a rule."""
    header = Header(GEOMETRY, stem(lines.name), {"captured by": "GPT-OSS-MoE-ExpertFingerprinting, decode only"})
    return Reading(header, checked(_events(lines, drop_weights), GEOMETRY, lines.name))


def _events(lines: Lines, drop_weights: bool) -> Iterator[tuple[str, Event]]:
    seen: dict[object, str] = {}
    for stream, (place, text) in enumerate(lines):
        with At(place):
            record = _request(parse(text, place))
            earlier = seen.setdefault(record["blob"], place)
            if earlier != place:
                raise InvalidTrace(
                    f"the same request as {earlier}", cure="remove one of the two lines, or two captures in one file"
                )
        for token in range(len(record["ids"])):
            for layer in range(GEOMETRY.layers):
                with At(place):
                    yield place, _event(record, stream, token, layer, drop_weights)


def _request(record: object) -> Mapping[str, Any]:
    if not isinstance(record, dict):
        raise InvalidTrace("not an object", cure="write one request a line")
    unknown, missing = sorted(set(record) - FIELDS), [name for name in _NEEDED if name not in record]
    if unknown or missing:
        raise InvalidTrace(
            f"unknown field {', '.join(unknown)}" if unknown else f"no field {', '.join(missing)}",
            cure=f"known: {', '.join(sorted(FIELDS))}",
        )
    if record["contiguous"] is not True:
        raise InvalidTrace("the tokens of this request are not contiguous", cure="leave the request out")
    if type(record["first_pos"]) is not int or record["first_pos"] < 0 or type(record["blob"]) is not str:
        raise InvalidTrace("first_pos or blob is of the wrong kind", cure="a whole number from 0, and a text")
    if not isinstance(record["ids"], list) or not record["ids"]:
        raise InvalidTrace("ids is no list of tokens", cure="leave requests without tokens out")
    return record


def _event(record: Mapping[str, Any], stream: int, token: int, layer: int, drop_weights: bool) -> Event:
    ids = _four(record["ids"], token, layer, "ids")
    if any(type(expert) is not int for expert in ids):
        raise InvalidTrace(f"token {token} layer {layer}: ids {ids}", cure="write whole numbers from 0 to 31")
    weights = None
    if not drop_weights:
        probs = _four(record.get("probs"), token, layer, "probs")
        if len(record["probs"]) != len(record["ids"]) or any(
            type(p) not in (int, float) or not 0 <= p <= 1 for p in probs
        ):
            raise InvalidTrace(
                f"token {token} layer {layer}: probs {probs}, {len(record['probs'])} tokens, not {len(record['ids'])}",
                cure="give one number from 0 to 1 for each id, or read the file with --drop-weights",
            )
        weights = (tuple(map(float, probs)),)
    return Event(
        layer, (tuple(ids),), stream, token, "decode", weights=weights, positions=(record["first_pos"] + token,)
    )


def _four(values: Any, token: int, layer: int, name: str) -> list[Any]:
    """`values[token][layer]`, provided that the nesting has the shape it must have."""
    try:
        layers = values[token] if isinstance(values, list) else None
        four = layers[layer] if isinstance(layers, list) and len(layers) == GEOMETRY.layers else None
    except IndexError:
        four = None
    if not isinstance(four, list) or len(four) != GEOMETRY.top_k:
        raise InvalidTrace(f"token {token} layer {layer}: {name} has the wrong shape", cure=_SHAPE)
    return four
