"""Records as arrays: views of their bytes, nothing copied."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from expertcache_spec.errors import InvalidModel

Array = npt.NDArray[np.float32]
Half = npt.NDArray[np.float16]


class Parts(NamedTuple):
    """The projections of one expert, as (rows, columns) float16: gate and up (hidden, width), down (width, hidden)."""

    gate: Half
    up: Half
    down: Half


def parts(record: memoryview | bytes, width: int, hidden: int) -> Parts:
    """Views of a record's gate, up and down, which lie end to end in this order, little-endian float16.

    Raises `InvalidModel` for a record of another size. The views end before the record's lease does.
    """
    if len(record) != 6 * width * hidden:
        raise InvalidModel(
            f"a record of {len(record)} bytes",
            where="compute",
            cure=f"give {6 * width * hidden}: 3 x {hidden} x {width}",
        )
    whole = np.frombuffer(record, "<f2").reshape(3, width * hidden)
    return Parts(whole[0].reshape(hidden, width), whole[1].reshape(hidden, width), whole[2].reshape(width, hidden))
