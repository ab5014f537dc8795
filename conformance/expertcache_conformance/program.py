"""Programs: what is asked of a cache, as data. A failing one becomes a replay file.

A program is a configuration and a list of operations. `step` serves one event whole (on a sequential cache, one
access); `select`, `complete`, `fail`, `release` and `resume` take it apart; the rest are the machine's other
transitions. `read` looks at what an event computes with. Operations name an outstanding event by the label that its
`select` carries. Logs have two more, which caches are not asked: `displace` is a prefetch beside such an event, for
which others give way; `install` is a seed that is yet to be read, and then completes or fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from expertcache_conformance.adapters.protocol import Config
from expertcache_spec.model import Geometry, Key
from expertcache_spec.trace import Event, encode_event, encode_geometry

FORMAT, VERSION = "expertcache-replay", 1
"""Of a replay file; `decoding` reads it."""

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "step": ("event",),
    "select": ("event", "label"),
    "complete": ("key",),
    "fail": ("key",),
    "release": ("label",),
    "resume": ("label",),
    "pin": ("key",),
    "unpin": ("key",),
    "seed": ("keys",),
    "prefetch": ("key",),
    "prefetch_counts": (),
    "read": ("label", "key"),
    "resize": (),
    "reset": ("text",),
    "rebind": ("text",),
}
"""Operation to the arguments that it must have."""

OPERATIONS = tuple(ARGUMENTS)

PREFETCH_COUNTS = ("issued", "useful", "late", "wasted", "failed", "duplicate", "refused")
"""What `prefetch_counts` answers, by name; each as `expertcache_spec.metrics.Counters` defines it."""


@attrs.frozen
class Operation:
    """One operation: `op` of `OPERATIONS` and its arguments, the rest None."""

    op: str
    event: Event | None = None
    label: int | None = None
    key: Key | None = None
    keys: tuple[Key, ...] | None = None
    slots: int | None = None
    bytes: int | None = None
    text: str | None = None
    priorities: tuple[int, ...] | None = None
    """Of a seed, one a key; where there are none, none are given."""

    def __str__(self) -> str:
        parts = [self.op]
        if self.event is not None:
            rows = " ".join("{" + ",".join(map(str, row)) + "}" for row in self.event.rows)
            parts.append(
                f"layer {self.event.layer} {rows}" + (f" stream {self.event.stream}" if self.event.stream else "")
            )
        if self.label is not None:
            parts.append(f"#{self.label}")
        parts += [show(key) for key in ((self.key,) if self.key else self.keys or ())]
        parts += ["priorities", *map(str, self.priorities)] if self.priorities is not None else []
        parts += [count(n, noun) for noun, n in (("slot", self.slots), ("byte", self.bytes)) if n is not None]
        return " ".join([*parts, *([self.text] if self.text else [])])


@attrs.frozen
class Program:
    """A configuration and what is asked of a cache opened with it."""

    config: Config
    operations: tuple[Operation, ...]


def show(key: Key) -> str:
    """A key as text."""
    return f"({key[0]},{key[1]})"


def count(number: int, noun: str, nouns: str = "") -> str:
    """The number with its noun, `nouns` where that is more than an s longer."""
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"


def model_in_words(model: Geometry) -> str:
    """The model in one short line; the replay file has it whole."""
    routed = "" if len(model.routed) == model.layers else f", {len(model.routed)} of them routed"
    sizes = sorted({model.record_bytes[layer] for layer in model.routed}) if model.record_bytes else []
    among = "" if len(sizes) < 2 else f"{sizes[0]} to "
    known = f"records of {among}{count(sizes[-1], 'byte')}" if sizes else "records of unknown size"
    layers, experts = count(model.layers, "layer"), count(model.experts, "expert")
    return f"{layers}{routed}, {experts} each, top-{model.top_k}, {known}"


def steps(config: Config, events: tuple[Event, ...]) -> Program:
    """The program that serves the events one after the other."""
    if config.future is not None:
        config = attrs.evolve(config, future=events)
    return Program(config, tuple(Operation("step", event=event) for event in events))


def encode_program(program: Program) -> dict[str, Any]:
    """The program as JSON data."""
    config = program.config
    return {
        "config": {
            "policy": config.policy,
            "slots": config.slots,
            "bytes": config.bytes,
            "geometry": encode_geometry(config.geometry),
            "settings": attrs.asdict(config.settings),
            "parameters": dict(config.parameters),
            "offline": config.future is not None,
        },
        "operations": [_encode_operation(operation) for operation in program.operations],
    }


def _encode_operation(operation: Operation) -> dict[str, Any]:
    record: dict[str, Any] = {"op": operation.op}
    if operation.event is not None:
        record["event"] = encode_event(operation.event)
    record |= {name: list(value) for name in ("key",) if (value := getattr(operation, name)) is not None}
    if operation.keys is not None:
        record["keys"] = [list(key) for key in operation.keys]
    if operation.priorities is not None:
        record["priorities"] = list(operation.priorities)
    for name in ("label", "slots", "bytes", "text"):
        if (value := getattr(operation, name)) is not None:
            record[name] = value
    return record


def geometry(layers: int, experts: int, top_k: int, record_bytes: tuple[int, ...] | None = None) -> Geometry:
    """A small model; records are one byte each unless stated."""
    return Geometry(layers, experts, top_k, record_bytes or (1,) * layers)
