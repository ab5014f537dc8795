"""Stores of pattern bytes, events, and machines that have their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import attrs

from expertcache_reference.system.simulated import Simulation
from expertcache_spec.layout.kinds import packed_layers, stacked_tensors
from expertcache_spec.layout.placing import Layout, Shape, written
from expertcache_spec.model import Geometry, Key
from expertcache_spec.trace import Event, Phase

PARTS = {"gate": 64, "up": 64, "down": 64}
FOLDER = Path("/model")


@cache
def pattern(key: Key, size: int) -> bytes:
    """Bytes that say whose they are and where: no two records, and no two places of one, are alike for long."""
    seed = key.layer * 7919 + key.expert * 104729
    return bytes((seed + at * 31 + (at >> 8) * 17 + (at >> 3)) & 255 for at in range(size))


@attrs.frozen(slots=False)
class PatternStore:
    """A store whose every byte is known."""

    layout: Layout
    geometry: Geometry
    fingerprint: str = "pattern"
    folder: Path = FOLDER

    def files(self) -> dict[str, bytes]:
        """Path to bytes."""
        shape = self.layout.shape
        found = written(self.layout, lambda key: pattern(key, shape.record_bytes(key.layer)))
        return {str(self.folder / name): bytes(data) for name, data in found.items()}

    def write(self) -> PatternStore:
        """The files, for real."""
        for path, data in self.files().items():
            Path(path).write_bytes(data)
        return self


def store(
    layers: int = 2, experts: int = 4, top_k: int = 2, parts: Mapping[str, int] | Sequence[Mapping[str, int]] = PARTS,
    folder: Path = FOLDER, stacked: bool = False,
) -> PatternStore:  # fmt: skip
    """A store of one file a layer, or of stacked tensors; `parts` of all layers, or of each."""
    each = [parts] * layers if isinstance(parts, Mapping) else list(parts)
    shape = Shape(experts, dict(enumerate(each)))
    sizes = tuple(shape.record_bytes(layer) for layer in range(layers))
    layout = stacked_tensors(shape) if stacked else packed_layers(shape)
    return PatternStore(layout, Geometry(layers, experts, top_k, sizes), folder=folder)


def event(layer: int, *experts: int, stream: int = 0, number: int = 0, phase: Phase = "decode") -> Event:
    """One row's event."""
    return Event(layer, (experts,), stream, number, phase)


def simulation(found: PatternStore, **fields: Any) -> Simulation:
    """A machine that has the store's files; pages of 64 bytes, so that small records are several chunks."""
    return Simulation(files=found.files(), **{"page": 64, **fields})
