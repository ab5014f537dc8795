"""The synthetic traces of the benchmarks; both are drawn with a fixed seed.

Speed: 40 layers x 384 experts, top-6, skewed, with adjacent-token overlap. Growth: uniform requests for twice as many
keys as the cache holds, so that about half of the lookups hit at every capacity.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import numpy.random  # lazy otherwise, and its loading can swallow a Ctrl-C

from expertcache_spec.model import Geometry
from expertcache_spec.trace import Event, Trace

LAYERS, EXPERTS, TOP_K = 40, 384, 6
CAPACITY = 1889
"""The slots of the practitioner's report on ds4, see `tests/spec/test_ds4_report.py`."""
CAPACITIES = (64, 256, 1024, 4096, 15_360)
"""Where growth is measured: from one token cycle of `steady` to all keys of `routing`."""
STEADY_LAYERS, STEADY_TOP_K = 16, 4


def routing(tokens: int, seed: int = 7) -> np.ndarray:
    """Expert ids, tokens x layers x top-k: Zipf(0.7) by layer, each kept from the last token with p = 0.455."""
    rng = numpy.random.default_rng(seed)
    weights = 1.0 / np.arange(1, EXPERTS + 1) ** 0.7
    weights /= weights.sum()
    out = np.empty((tokens, LAYERS, TOP_K), dtype=np.int64)
    order = [rng.permutation(EXPERTS) for _ in range(LAYERS)]
    for layer in range(LAYERS):
        drawn = order[layer][rng.choice(EXPERTS, size=tokens * 24, p=weights)].tolist()
        keep = (rng.random((tokens, TOP_K)) < 0.455).tolist()
        place, last = 0, []
        for token in range(tokens):
            row = [expert for expert, kept in zip(last, keep[token], strict=False) if kept]
            while len(row) < TOP_K:
                expert = drawn[place % len(drawn)]
                place += 1
                if expert not in row:
                    row.append(expert)
            out[token, layer] = last = row
    return out


def as_trace(ids: np.ndarray, experts: int = EXPERTS) -> Trace:
    """The routing (tokens x layers x top-k) as decode passes of one stream."""
    events = tuple(
        Event(layer, (tuple(row),), pass_index=token)
        for token, layers in enumerate(ids.tolist())
        for layer, row in enumerate(layers)
    )
    return Trace(Geometry(ids.shape[1], experts, ids.shape[2]), events, "synthetic")


def steady(capacity: int, lookups: int, seed: int = 7) -> tuple[Trace, int]:
    """Uniform decode over 2 x capacity keys: the trace, and how many of its events fill the cache first.

    Filling takes 2 x capacity lookups (a bit under ln 2 of them suffice); about `lookups` more follow.
    """
    cycle, experts = STEADY_LAYERS * STEADY_TOP_K, 2 * capacity // STEADY_LAYERS
    warm, passes = -(-2 * capacity // cycle), -(-lookups // cycle)
    rng = numpy.random.default_rng(seed)
    ids = np.empty((warm + passes, STEADY_LAYERS, STEADY_TOP_K), dtype=np.int64)
    for row in ids.reshape(-1, STEADY_TOP_K):
        row[:] = rng.choice(experts, STEADY_TOP_K, replace=False, shuffle=False)
    return as_trace(ids, experts), warm * STEADY_LAYERS


def as_oracle_general(ids: np.ndarray, path: Path) -> None:
    """The same lookups as a libCacheSim oracleGeneral file: time, id, size, index of the next access."""
    flat = (ids + np.arange(LAYERS)[None, :, None] * EXPERTS + 1).reshape(-1).tolist()
    following: list[int] = [-1] * len(flat)
    seen: dict[int, int] = {}
    for index in range(len(flat) - 1, -1, -1):
        following[index] = seen.get(flat[index], -2) + 1
        seen[flat[index]] = index
    record = struct.Struct("<IQIq")
    with path.open("wb") as file:
        for index, (key, after) in enumerate(zip(flat, following, strict=True)):
            file.write(record.pack(index + 1, key, 1, after))
