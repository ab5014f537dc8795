"""Attention over a window of the latest positions, with rotary positions, in numpy."""

from __future__ import annotations

import math

import numpy as np

from expertcache_reference.compute.records import Array
from expertcache_reference.tinymoe.shape import Shape
from expertcache_reference.tinymoe.weights import Layer


def rotated(x: Array, positions: range, base: float) -> Array:
    """(heads, rows, head) turned by their positions; the halves of a head are the pairs."""
    half = x.shape[-1] // 2
    angles = np.outer(positions, base ** (-np.arange(half) / half))
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    first, second = x[..., :half], x[..., half:]
    found: Array = np.concatenate((first * cos - second * sin, second * cos + first * sin), -1, dtype=np.float32)
    return found


class Window:
    """Keys and values of the latest positions of one layer and stream."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._keys = self._values = np.zeros((shape.heads, 0, shape.head), np.float32)

    def attend(self, x: Array, layer: Layer, first: int) -> Array:
        """Attention of (rows, width), whose positions begin at `first`, over the window; it remembers them."""
        shape, rows = self._shape, len(x)
        split = (x @ layer.qkv.T).reshape(rows, 3, shape.heads, shape.head).transpose(1, 2, 0, 3)
        positions = range(first, first + rows)
        queries, keys = (rotated(part, positions, shape.rotary) for part in split[:2])
        keys = np.concatenate((self._keys, keys), 1)
        values = np.concatenate((self._values, split[2]), 1)
        past = keys.shape[1] - rows
        scores = queries @ keys.transpose(0, 2, 1) / np.float32(math.sqrt(shape.head))
        distance = np.arange(past, past + rows)[:, None] - np.arange(past + rows)
        scores[:, (distance < 0) | (distance >= shape.window)] = -np.inf
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (scores / scores.sum(-1, keepdims=True)) @ values
        self._keys, self._values = keys[:, 1 - shape.window :], values[:, 1 - shape.window :]
        result: Array = mixed.transpose(1, 0, 2).reshape(rows, shape.width) @ layer.out.T
        return result
