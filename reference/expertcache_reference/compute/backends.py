"""Backends by name: each computes one SwiGLU expert on the bytes of its record."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np

from expertcache_reference.compute.records import Array, parts
from expertcache_spec.errors import ExpertCacheError, UnknownName


class MissingBackend(ExpertCacheError):
    """A backend whose library is not installed."""

    code: ClassVar[str] = "missing-backend"


class Backend(Protocol):
    """Computes experts. Equal bytes and rows give equal bits, wherever in memory the bytes lie."""

    name: str

    def expert(self, record: memoryview, x: Array) -> Array:
        """down(silu(gate x) * (up x)) for (rows, width) inputs, in float32; it has executed when this returns.

        Raises `InvalidModel` for a record of another size.
        """
        ...


class Numpy:
    """Numpy: weights widened to float32, products by its BLAS."""

    name = "numpy"

    def __init__(self, width: int, hidden: int) -> None:
        self._width, self._hidden = width, hidden

    def expert(self, record: memoryview, x: Array) -> Array:
        """As `Backend`."""
        gate, up, down = (part.astype(np.float32) for part in parts(record, self._width, self._hidden))
        hidden: Any = x @ gate.T
        with np.errstate(over="ignore"):  # silu of what is far below zero is zero
            hidden = hidden / (1 + np.exp(-hidden)) * (x @ up.T)
        output: Array = hidden @ down.T
        return output


BACKENDS = ("numpy", "mlx")
"""The first is the default; mlx is an extra."""


def backend(name: str, width: int, hidden: int) -> Backend:
    """The backend of that name; raises `UnknownName`, or `MissingBackend` where its library is not installed."""
    if name == "numpy":
        return Numpy(width, hidden)
    if name != "mlx":
        raise UnknownName(f"backend {name!r}", where="compute", cure=f"one of {', '.join(BACKENDS)}")
    try:
        from expertcache_reference.compute.on_mlx import Mlx
    except ImportError as error:
        raise MissingBackend(
            f"backend mlx: {error}", where="compute", cure="pip install 'expertcache[mlx]', or use numpy"
        ) from error
    return Mlx(width, hidden)
