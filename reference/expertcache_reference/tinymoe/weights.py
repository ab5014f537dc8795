"""The weights that ship: one safetensors file whose experts begin on pages of 16 KiB, and the recipe beside it.

The runtime streams experts from the very file that the dense part is loaded from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from expertcache_reference.compute.records import Array
from expertcache_reference.tinymoe import names
from expertcache_reference.tinymoe.shape import PARTS, Shape
from expertcache_spec.layout.files import WrongFile
from expertcache_spec.model import Key

FILE = "weights.safetensors"
CURE = "the file is damaged or of another model: install the package again"


@attrs.frozen(eq=False)
class Layer:
    """The dense part of one layer; see `names` for the shapes."""

    qkv: Array
    out: Array
    attention_norm: Array
    experts_norm: Array
    router: Array


@attrs.frozen(eq=False)
class Dense:
    """All but the experts, in float32."""

    shape: Shape
    embedding: Array
    norm: Array
    head: Array
    layers: tuple[Layer, ...]


def _here() -> Traversable:
    return files("expertcache_reference.tinymoe")


def recipe() -> dict[str, Any]:
    """How the weights that ship were trained, on what, and how well; `sha256` names their bytes."""
    found: dict[str, Any] = json.loads((_here() / "recipe.json").read_text(encoding="utf-8"))
    return found


@contextmanager
def weights_path() -> Iterator[Path]:
    """The file of the weights that ship, with its name, for as long as the block lasts."""
    with as_file(_here() / FILE) as path:
        yield path


def checked(path: Path, sha256: str) -> bytes:
    """The bytes of the file; raises `WrongFile` where it cannot be read or its SHA-256 is another."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise WrongFile(f"cannot be read: {error.strerror or error}", where=str(path), cure=CURE) from error
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise WrongFile(f"has the fingerprint {found[:12]}, expected {sha256[:12]}", where=str(path), cure=CURE)
    return data


class Tensors:
    """The tensors of a safetensors file, taken one by one with their shape."""

    def __init__(self, data: bytes, where: str) -> None:
        self._where = where
        try:
            self._found = safetensors.numpy.load(data)
        except SafetensorError as error:
            raise WrongFile(f"is no safetensors file: {error}", where=where, cure=CURE) from error

    def take(self, name: str, *shape: int, kind: type[np.generic] = np.float32) -> Any:
        """The tensor as that type; raises `WrongFile` where it is missing or has another shape."""
        found = self._found.get(name)
        if found is None or found.shape != shape:
            raise WrongFile(f"{name} is not there in the shape {shape}", where=self._where, cure=CURE)
        return found.astype(kind)


def dense(data: bytes, shape: Shape, where: str) -> Dense:
    """The dense part; raises `WrongFile`."""
    tensors, width = Tensors(data, where), shape.width
    layers = tuple(
        Layer(
            tensors.take(names.attention(layer, "qkv"), 3 * width, width),
            tensors.take(names.attention(layer, "o"), width, width),
            tensors.take(names.norm(layer, "input"), width),
            tensors.take(names.norm(layer, "post_attention"), width),
            tensors.take(names.router(layer), shape.experts, width),
        )
        for layer in range(shape.layers)
    )
    embedding, head = (tensors.take(name, shape.vocabulary, width) for name in (names.EMBEDDING, names.HEAD))
    return Dense(shape, embedding, tensors.take(names.NORM, width), head, layers)


def records(data: bytes, shape: Shape, where: str) -> dict[Key, bytes]:
    """Every expert's record, gate, up and down end to end, in memory of their own; raises `WrongFile`."""
    tensors, found = Tensors(data, where), dict[Key, bytes]()
    for layer in range(shape.layers):
        stacked = [
            tensors.take(names.expert(layer, part), shape.experts, *shape.part_shapes[part], kind=np.float16)
            for part in PARTS
        ]
        for expert in range(shape.experts):
            found[Key(layer, expert)] = b"".join(of_part[expert].tobytes() for of_part in stacked)
    return found
