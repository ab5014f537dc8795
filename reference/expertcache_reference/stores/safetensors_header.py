"""The header of a safetensors file, read and written: eight bytes of length, then JSON, then the tensors end to end.

https://github.com/huggingface/safetensors: "Format".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

from expertcache_reference.stores.reading import MAX_HEADER, Opened, compact, parsed
from expertcache_reference.stores.tensors import DAMAGED, Header, Tensor, check_apart
from expertcache_spec.layout.extents import round_up
from expertcache_spec.layout.files import WrongFile

BITS = {
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32,
    "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip
"""Bits of an element."""
MANIFEST = "expertcache"
"""The key of `__metadata__` under which `pack` leaves its manifest."""
_AXES = 16


def read(file: Opened) -> Header:
    """What a safetensors file says; raises `WrongFile` for a header that is damaged, hostile or not one.

    A file whose size is not `expected` is returned, so that its records can be named.
    """
    where, name = str(file.path), file.path.name
    length = int.from_bytes(file.read(0, 8), "little") if file.size >= 8 else 0
    if not 2 <= length <= MAX_HEADER or 8 + length > file.size or file.read(8, 1) != b"{":
        raise WrongFile(
            "no safetensors header", where=where, cure="name a model's file; or it is cut off: copy it again"
        )
    entries = parsed(file.read(8, length), where)
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise WrongFile("__metadata__ is no map of strings", where=where, cure=DAMAGED)
    tensors = [_tensor(key, entry, name, 8 + length, where) for key, entry in entries.items()]
    check_apart(tensors, where)
    end = max((tensor.end for tensor in tensors), default=8 + length)
    if sum(tensor.bytes for tensor in tensors) != end - 8 - length:
        raise WrongFile("bytes that belong to no tensor", where=where, cure=DAMAGED)
    about = {key: text for key, text in metadata.items() if key != MANIFEST}
    return Header(name, file.size, end, tuple(tensors), about, metadata.get(MANIFEST))


def _tensor(name: str, entry: Any, file: str, start: int, where: str) -> Tensor:
    match entry:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [int(begin), int(end)]}:
            whole = [*shape, begin, end]
        case _:
            raise WrongFile(f"{name[:80]!r} is no tensor", where=where, cure=DAMAGED)
    if len(shape) > _AXES or any(type(number) is not int or number < 0 for number in whole):
        raise WrongFile(f"{name[:80]!r} has no shape or offsets", where=where, cure=DAMAGED)
    if dtype not in BITS:
        raise WrongFile(f"{name[:80]!r} has the unknown dtype {dtype[:80]!r}", where=where, cure=DAMAGED)
    if prod(shape) * BITS[dtype] != (end - begin) * 8:
        raise WrongFile(f"{name[:80]!r} has other bytes than its shape", where=where, cure=DAMAGED)
    return Tensor(name, dtype, tuple(shape), file, start + begin, end - begin)


def write(tensors: Iterable[Tensor], metadata: Mapping[str, str], alignment: int) -> bytes:
    """A header, padded with spaces so that what follows begins on the alignment; offsets count from there.

    What safetensors has no dtype for is written as bytes (U8); the manifest keeps its dtype and shape.
    """
    entries: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    start = 0
    for tensor in tensors:
        native = prod(tensor.shape) * BITS.get(tensor.dtype, 0) == tensor.bytes * 8
        shape = list(tensor.shape) if native else [tensor.shape[0], tensor.bytes // tensor.shape[0]]
        entries[tensor.name] = {
            "dtype": tensor.dtype if native else "U8",
            "shape": shape,
            "data_offsets": [start, start + tensor.bytes],
        }
        start += tensor.bytes
    text = compact(entries).encode()
    length = round_up(8 + len(text), alignment) - 8
    return length.to_bytes(8, "little") + text.ljust(length)
