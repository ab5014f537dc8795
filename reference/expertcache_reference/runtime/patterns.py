"""Models whose every byte is known, written into a temporary folder that goes with the process."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import attrs

from expertcache_spec.content import pattern
from expertcache_spec.layout.kinds import packed_layers
from expertcache_spec.layout.placing import Layout, Shape, written
from expertcache_spec.model import Geometry

MOST = 128
"""Bytes of a record that are there to be read: the examination also asks about models of many gigabytes."""


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
def _written(experts: int, sizes: tuple[tuple[int, int], ...], fingerprint: str) -> tuple[Layout, Path]:
    """The files of a model with records of so many bytes by layer."""
    layout = packed_layers(Shape(experts, {layer: _parts(size) for layer, size in sizes}))
    folder = Path(tempfile.mkdtemp(dir=_folder().name))
    found = written(layout, lambda key: pattern(fingerprint, key, layout.shape.record_bytes(key.layer)))
    for name, data in found.items():
        (folder / name).write_bytes(data)
    return layout, folder


def _parts(size: int) -> dict[str, int]:
    """Two parts, which are read one after the other; a single byte is one."""
    return {"gate": size // 2, "down": size - size // 2} if size > 1 else {"gate": size}


def store_of(geometry: Geometry, fingerprint: str) -> PatternStore:
    """The store of a model; its files are written once, and hold of a larger record the first `MOST` bytes."""
    sizes = tuple((layer, min(MOST, geometry.size(layer))) for layer in geometry.routed)
    layout, folder = _written(geometry.experts, sizes, fingerprint)
    return PatternStore(layout, geometry, fingerprint, folder)
