"""Choosing the next byte: the likeliest one, or one drawn with a seed."""

from __future__ import annotations

import numpy as np

from expertcache_reference.compute.records import Array
from expertcache_spec.errors import InvalidModel


class Sampler:
    """Equal seeds and logits choose equal bytes.

    temperature: 0 takes the likeliest byte, of equal ones the lowest; above, logits are divided by it and drawn from.
    Raises `InvalidModel` for one below 0 or not finite, and for a seed below 0.
    """

    def __init__(self, temperature: float = 0.0, seed: int = 0) -> None:
        if not 0 <= temperature < float("inf"):
            raise InvalidModel(f"temperature {temperature}", where="sampling", cure="give 0, or a number above it")
        if seed < 0:
            raise InvalidModel(f"seed {seed}", where="sampling", cure="give a whole number from 0")
        self._temperature, self._random = temperature, np.random.Generator(np.random.PCG64(seed))

    def choose(self, logits: Array) -> int:
        """The byte that follows, from its (256,) logits."""
        if not self._temperature:
            return int(np.argmax(logits))
        scaled = logits.astype(np.float64) / self._temperature
        likely = np.cumsum(np.exp(scaled - scaled.max()))
        return int(np.searchsorted(likely, self._random.random() * likely[-1], side="right"))
