"""The header of a GGUF file, read within bounds, and written by the `gguf` package.

https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. `gguf.GGUFReader` makes Python objects of every element of
every array and trusts every count, so the header is walked here; types and sizes are the package's.
"""

from __future__ import annotations

import struct
from math import prod

from expertcache_reference.stores.gguf_values import Values
from expertcache_reference.stores.reading import Opened
from expertcache_reference.stores.tensors import Header, Tensor, check_apart
from expertcache_spec.layout.extents import round_up

MAGIC = b"GGUF"
MANIFEST = "expertcache.manifest"
"""The key under which `pack` leaves its manifest."""
NUMBERS = {"expert_count": "experts", "expert_used_count": "top_k", "block_count": "layers"}
_MOST = 1 << 17
"""Most tensors, and most keys."""
AXES = 4


def read(file: Opened) -> Header:
    """What a GGUF file says; raises `WrongFile` for a header that is damaged, hostile or not one.

    A file whose size is not `expected` is returned, so that its records can be named.
    """
    values = Values(file)
    if values.bytes(4) != MAGIC:
        raise values.wrong("no GGUF file")
    version = values.whole("I")
    if version not in (2, 3):
        raise values.wrong(f"GGUF version {version}, or big-endian")
    count, keys = values.whole("Q"), values.whole("Q")
    if count > _MOST or keys > _MOST:
        raise values.wrong(f"{count} tensors and {keys} keys")
    found = dict(values.pair(_wanted) for _ in range(keys))
    listed = [_info(values) for _ in range(count)]
    alignment = found.get("general.alignment", 32)
    if type(alignment) is not int or not 1 <= alignment <= 2**20 or alignment & (alignment - 1):
        raise values.wrong(f"alignment {alignment!r}")
    start = round_up(values.position, alignment)
    tensors = [_tensor(each, file.path.name, start, alignment, values) for each in listed]
    check_apart(tensors, values.where)
    end = max((tensor.end for tensor in tensors), default=start)
    bare = file.size == end and MANIFEST not in found  # some writers do not pad the last tensor
    expected = end if bare else round_up(end, alignment)
    about = {key: text for key, text in found.items() if isinstance(text, str) and key != MANIFEST}
    numbers = {key: value for key, value in found.items() if type(value) is int and value >= 0}
    return Header(file.path.name, file.size, expected, tuple(tensors), about, _manifest(found), _named(numbers))


def _wanted(key: str) -> bool:
    """Whether the value of a key is kept; tokenizers and the like are stepped over."""
    return key == MANIFEST or key.startswith(("general.", "split.")) or key.rpartition(".")[2] in NUMBERS


def _manifest(found: dict[str, object]) -> str | None:
    text = found.get(MANIFEST)
    return text if isinstance(text, str) else None


def _named(numbers: dict[str, int]) -> dict[str, int]:
    """The numbers under our names; those of the splits keep theirs."""
    return {NUMBERS.get(key.rpartition(".")[2], key): value for key, value in numbers.items()}


def _info(values: Values) -> tuple[str, tuple[int, ...], int, int]:
    """Name, shape with the last axis the fastest (GGUF lists the fastest first), type and offset of a tensor."""
    name, axes = values.text(), values.whole("I")
    if not 1 <= axes <= AXES:
        raise values.wrong(f"{name[:80]!r} has {axes} axes")
    shape = struct.unpack(f"<{axes}Q", values.bytes(8 * axes))[::-1]
    return name, shape, values.whole("I"), values.whole("Q")


def _tensor(
    info: tuple[str, tuple[int, ...], int, int], file: str, start: int, alignment: int, values: Values
) -> Tensor:
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    name, shape, number, offset = info
    try:
        kind = GGMLQuantizationType(number)
    except ValueError:
        raise values.wrong(f"{name[:80]!r} has the unknown type {number}") from None
    block, size = GGML_QUANT_SIZES[kind]
    if shape[-1] % block or offset % alignment:
        raise values.wrong(f"{name[:80]!r} is not whole blocks, or not aligned")
    return Tensor(name, kind.name, shape, file, start + offset, prod(shape) // block * size)
