"""Tensors as headers list them, and what a file of them says."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import attrs

from expertcache_spec.layout.files import WrongFile

DAMAGED = "the file is damaged or of another format: copy or pack it again"


class Tensor(NamedTuple):
    """A tensor: `bytes` bytes of `file` from `offset`. `shape` has the last axis the fastest, stacked experts first."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: str
    offset: int
    bytes: int

    @property
    def end(self) -> int:
        """The offset of the first byte after it."""
        return self.offset + self.bytes


@attrs.frozen(slots=False)
class Header:
    """What one file says. `expected` is the size that it should have, `size` the size that it has.

    about: what it says of the model, in strings. manifest: the text that `pack` left in it. numbers: whole numbers that
    it states (experts, top_k, layers).
    """

    file: str
    size: int
    expected: int
    tensors: tuple[Tensor, ...]
    about: Mapping[str, str]
    manifest: str | None = None
    numbers: Mapping[str, int] = attrs.field(factory=dict)


def check_apart(tensors: list[Tensor], where: str) -> None:
    """Raise `WrongFile` where two tensors share a name or bytes."""
    if len({tensor.name for tensor in tensors}) < len(tensors):
        raise WrongFile("lists a tensor twice", where=where, cure=DAMAGED)
    for one, next_ in pairwise(sorted(tensors, key=lambda tensor: (tensor.offset, tensor.end))):
        if one.end > next_.offset:
            raise WrongFile(f"{one.name} and {next_.name} overlap", where=where, cure=DAMAGED)
