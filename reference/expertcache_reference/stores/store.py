"""A store: a model's expert records in files, checked, with the layout that says where each one lies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import attrs

from expertcache_spec.layout import Layout, Shape
from expertcache_spec.model import Geometry, Key

KINDS = ("layers", "blocks", "gguf", "safetensors")
"""One file a layer; one block an expert in one file; stacked tensors in GGUF and in safetensors."""


class Part(NamedTuple):
    """One tensor of a record.

    `name` is gate, up, down or gate_up, with `.scales` and the like behind it where that is not the weight itself.
    `dtype` is a word of the format that the model came in: F16, BF16, U32, Q4_K. `shape` is that of one expert, the
    last axis the fastest, in elements (of a quantized GGUF tensor: logical ones). `bytes` is what it takes.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int


class Store(Protocol):
    """What the runtime may ask of a model's files; none of it changes while they are open."""

    @property
    def layout(self) -> Layout:
        """Where every record lies; file names are relative to `folder`."""
        ...

    @property
    def geometry(self) -> Geometry:
        """Layers, experts, top-k and the bytes of a record."""
        ...

    @property
    def fingerprint(self) -> str:
        """The name of the content: equal for equal records in any layout (`contents`)."""
        ...

    @property
    def folder(self) -> Path:
        """Where the files of the layout lie."""
        ...

    @property
    def metadata(self) -> Mapping[str, Any]:
        """kind; parts: layer to part name to dtype and shape; about: what the file says of its model, in strings."""
        ...


@attrs.frozen(slots=False)
class Model:
    """What is stored, wherever: the geometry, the parts of a record of each routed layer, and words about it."""

    geometry: Geometry
    parts: Mapping[int, tuple[Part, ...]]
    about: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def shape(self) -> Shape:
        """What there is to place."""
        sizes = {layer: {part.name: part.bytes for part in parts} for layer, parts in self.parts.items()}
        return Shape(self.geometry.experts, sizes)


@attrs.frozen(slots=False)
class FileStore:
    """A store in files.

    recorded: the SHA-256 of every record in hexadecimal, or None for files that record none (not made by `pack`).
    """

    kind: str
    folder: Path
    model: Model
    layout: Layout
    fingerprint: str
    recorded: Mapping[Key, str] | None = None

    @property
    def geometry(self) -> Geometry:
        """As `Store`."""
        return self.model.geometry

    @property
    def metadata(self) -> Mapping[str, Any]:
        """As `Store`."""
        parts = {
            layer: {part.name: {"dtype": part.dtype, "shape": part.shape} for part in parts}
            for layer, parts in self.model.parts.items()
        }
        return {"kind": self.kind, "parts": parts, "about": dict(self.model.about)}


def geometry_of(layers: int, experts: int, top_k: int, parts: Mapping[int, tuple[Part, ...]]) -> Geometry:
    """The geometry of a model with these parts; raises `InvalidModel` for one that no model has."""
    sizes = tuple(sum(part.bytes for part in parts.get(layer, ())) for layer in range(layers))
    return Geometry(layers, experts, top_k, sizes, tuple(sorted(parts)))
