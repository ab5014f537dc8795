"""The shape of the tiny model: what training, weights and decoding agree on."""

from __future__ import annotations

import attrs

from expertcache_spec.model import Geometry

PARTS = ("gate", "up", "down")
"""The parts of an expert's record, in the order of its bytes."""


@attrs.frozen
class Shape:
    """A byte-level mixture-of-experts transformer: pre-norm blocks of attention and routed SwiGLU experts.

    vocabulary: bytes. width: of the residual stream. hidden: rows of an expert's gate and up, columns of its down.
    heads: of attention, with rotary positions of base `rotary`. window: how many positions a row attends to, itself
    included. epsilon: of the root-mean-square norms.
    """

    layers: int = 6
    experts: int = 24
    top_k: int = 4
    width: int = 128
    hidden: int = 64
    heads: int = 4
    window: int = 128
    vocabulary: int = 256
    rotary: float = 10_000.0
    epsilon: float = 1e-5

    @property
    def head(self) -> int:
        """Width of one head."""
        return self.width // self.heads

    @property
    def part_shapes(self) -> dict[str, tuple[int, int]]:
        """Rows and columns of each part: a product with a row x is `x @ part.T`."""
        return {"gate": (self.hidden, self.width), "up": (self.hidden, self.width), "down": (self.width, self.hidden)}

    @property
    def part_bytes(self) -> int:
        """Bytes of one part in float16: of the tiny model, one page of 16 KiB."""
        return 2 * self.hidden * self.width

    @property
    def geometry(self) -> Geometry:
        """The geometry of its routing."""
        return Geometry(self.layers, self.experts, self.top_k, (len(PARTS) * self.part_bytes,) * self.layers)


TINY = Shape()
"""The shape of the weights that ship."""
