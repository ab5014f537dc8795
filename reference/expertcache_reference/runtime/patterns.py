"""Models whose every byte is known, written into a temporary folder that goes with the process."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import attrs

from expertcache_spec.layout.kinds import packed_layers
from expertcache_spec.layout.placing import Layout, Shape, written
from expertcache_spec.model import Geometry, Key

MOST = 64
"""Bytes of a record that are there to be read: the examination also asks about models of many gigabytes."""


def pattern(key: Key, size: int) -> bytes:
    """Bytes that say whose they are and where."""
    return bytes((key.layer * 83 + key.expert * 29 + at * 7 + (at >> 8) * 13 + 1) & 255 for at in range(size))


@attrs.frozen(slots=False)
class PatternStore:
    """A model whose every byte is known."""

    layout: Layout
    geometry: Geometry
    fingerprint: str
    folder: Path


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="expertcache-")


@cache
def _written(experts: int, sizes: tuple[tuple[int, int], ...]) -> tuple[Layout, Path]:
    """The files of a model with records of so many bytes by layer."""
    layout = packed_layers(Shape(experts, {layer: {"gate": size} for layer, size in sizes}))
    folder = Path(tempfile.mkdtemp(dir=_folder().name))
    for name, data in written(layout, lambda key: pattern(key, layout.shape.record_bytes(key.layer))).items():
        (folder / name).write_bytes(data)
    return layout, folder


def store_of(geometry: Geometry, fingerprint: str) -> PatternStore:
    """The store of a model; its files are written once, and hold of a larger record the first `MOST` bytes."""
    sizes = tuple((layer, min(MOST, geometry.size(layer))) for layer in geometry.routed)
    layout, folder = _written(geometry.experts, sizes)
    return PatternStore(layout, geometry, fingerprint, folder)
