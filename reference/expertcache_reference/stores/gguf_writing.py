"""The header of a GGUF file, written by the `gguf` package."""

from __future__ import annotations

from collections.abc import Sequence
from io import BufferedWriter, BytesIO
from math import prod
from typing import TYPE_CHECKING

from expertcache_reference.stores import gguf_header
from expertcache_reference.stores.store import Model
from expertcache_reference.stores.tensors import Tensor
from expertcache_spec.layout.extents import round_up

if TYPE_CHECKING:
    from gguf import GGMLQuantizationType

_ARCHITECTURE = "general.architecture"


def write(tensors: Sequence[Tensor], model: Model, manifest: str, alignment: int) -> bytes:
    """A header for these tensors, each of which begins on the alignment, padded to it.

    What GGUF has no type for is written as bytes (I8); the manifest keeps its dtype and shape.
    """
    import numpy as np
    from gguf import GGUFWriter
    from gguf.gguf_writer import WriterState

    arch = model.about.get(_ARCHITECTURE, "expertcache")
    out = BytesIO()
    writer = GGUFWriter(None, arch)
    writer.fout, writer.state = [BufferedWriter(out)], WriterState.NO_FILE
    for key, text in model.about.items():
        if key != _ARCHITECTURE:
            writer.add_string(key, text)
    writer.add_custom_alignment(alignment)
    writer.add_block_count(model.geometry.layers)
    writer.add_expert_count(model.geometry.experts)
    writer.add_expert_used_count(model.geometry.top_k)
    writer.add_string(gguf_header.MANIFEST, manifest)
    for tensor in tensors:
        shape, kind = _typed(tensor)
        writer.add_tensor_info(tensor.name, shape, np.dtype(np.int8), tensor.bytes, raw_dtype=kind)
    writer.state = WriterState.EMPTY
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    written = out.getvalue()
    return written.ljust(round_up(len(written), alignment), b"\0")


def _typed(tensor: Tensor) -> tuple[tuple[int, ...], GGMLQuantizationType]:
    """The shape and type to write: the tensor's own where GGUF has them, else as many bytes."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    kind = GGMLQuantizationType.__members__.get(tensor.dtype)
    if kind is not None and 2 <= len(tensor.shape) <= gguf_header.AXES:
        block, size = GGML_QUANT_SIZES[kind]
        if tensor.shape[-1] % block == 0 and prod(tensor.shape) // block * size == tensor.bytes:
            return tensor.shape, kind
    return (tensor.shape[0], tensor.bytes // tensor.shape[0]), GGMLQuantizationType.I8
