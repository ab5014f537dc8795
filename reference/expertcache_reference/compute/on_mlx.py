"""The MLX backend: the same products on MLX's default device, the GPU of a Mac or a CPU.

MLX arrays own their memory, so a record's bytes are copied once, into them. Its products differ from numpy's in the
last bits: `TOLERANCE` says by how much.
"""

from __future__ import annotations

import mlx.core as mx  # pyright: ignore[reportMissingImports]  an extra
import numpy as np

from expertcache_reference.compute.records import Array, parts

TOLERANCE = 1e-5
"""An expert's output lies within this of numpy's, as a share of the largest output of its row."""


class Mlx:
    """MLX: weights widened to float32; evaluated before it returns, as the record's lease ends afterwards."""

    name = "mlx"

    def __init__(self, width: int, hidden: int) -> None:
        self._width, self._hidden = width, hidden

    def expert(self, record: memoryview, x: Array) -> Array:
        """As `Backend`."""
        gate, up, down = (mx.array(part).astype(mx.float32) for part in parts(record, self._width, self._hidden))
        rows = mx.array(x)
        hidden = rows @ gate.T
        hidden = hidden * mx.sigmoid(hidden) * (rows @ up.T)
        output: Array = np.array(hidden @ down.T, dtype=np.float32)
        return output
