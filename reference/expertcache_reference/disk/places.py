"""Which bytes of a file are read: records that share no page, in an order drawn from a seed."""

from __future__ import annotations

import random

from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.layout.extents import Extent, round_up


class CannotMeasure(ExpertCacheError):
    """A file too small, or a folder without room; nothing was left behind."""

    code = "cannot-measure"


def places(name: str, size: int, page: int, record: int, count: int, seed: str) -> tuple[list[Extent], Extent]:
    """Up to `count` records of a file of `size` bytes, and one more behind them, the witness.

    Each begins on a page of its own. The witness is the last in the file: what is read ahead of it is no other's.
    Raises `CannotMeasure` for a file that has not two.
    """
    stride = round_up(record, page)
    slots = (size - record) // stride + 1 if size >= record else 0
    if slots < 2:
        raise CannotMeasure(
            f"{size} bytes hold {slots} records of {record}", where=name, cure="take a larger file or a smaller record"
        )
    drawn = random.Random(seed).sample(range(slots), min(count + 1, slots))
    last = max(drawn)
    return [Extent(name, slot * stride, record) for slot in drawn if slot != last], Extent(name, last * stride, record)
