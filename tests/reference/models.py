"""Small models that tests write: pattern bytes in files as others write them, and what must come out again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from expertcache_reference import stores
from expertcache_reference.stores import FileStore
from expertcache_reference.stores.contents import Files, chunks
from expertcache_reference.stores.disk import Disk
from expertcache_reference.stores.names import mlx_name
from expertcache_reference.stores.reading import Here
from expertcache_spec.model import Key

LAYERS, EXPERTS, TOP_K = (0, 2), 3, 2
SHAPES = {"gate": (4, 6), "up": (4, 6), "down": (6, 4)}
"""Of one expert's projection; in float16 a record is 144 bytes, which no page divides."""


def weights(
    layers: tuple[int, ...] = LAYERS, experts: int = EXPERTS, shapes: Mapping[str, tuple[int, ...]] = SHAPES,
    dtype: Any = np.float16, seed: int = 1,
) -> dict[int, dict[str, NDArray[Any]]]:  # fmt: skip
    """Layer and part to the stacked tensor, all bytes different enough that any shift shows."""
    chance = Random(seed)
    return {
        layer: {
            part: np.frombuffer(
                chance.randbytes(experts * int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype
            ).reshape(experts, *shape)
            for part, shape in shapes.items()
        }
        for layer in layers
    }


def records(model: dict[int, dict[str, NDArray[Any]]]) -> dict[Key, bytes]:
    """What every record must be: its parts end to end."""
    return {
        Key(layer, expert): b"".join(stacked[expert].tobytes() for stacked in parts.values())
        for layer, parts in model.items()
        for expert in range(len(next(iter(parts.values()))))
    }


def stored(store: FileStore) -> dict[Key, bytes]:
    """What every record of a store is."""
    with Files(store.folder, Here()) as files:
        return {key: b"".join(chunks(store.layout, key, files)) for key in store.layout.shape.keys()}  # noqa: SIM118


class Quick(Disk):
    """A disk that does not wait for the device: what is tested here is not that."""

    def sync(self, file: int) -> None: ...

    def sync_folder(self, path: Path) -> None: ...


def pack(source: FileStore, target: Path, kind: str, **options: Any) -> FileStore:
    """As the reference packs, without waiting for the device."""
    return stores.pack(source, target, kind, **{"disk": Quick(), **options})


def mlx(folder: Path, model: dict[int, dict[str, NDArray[Any]]], top_k: int = TOP_K) -> Path:
    """MLX's stacked safetensors, with a tensor that is no expert's, and a config."""
    tensors = {mlx_name(layer, part): stacked for layer, parts in model.items() for part, stacked in parts.items()}
    return _saved(folder, {**tensors, "model.embed_tokens.weight": np.ones((5, 6), np.float16)}, top_k, model)


def olmoe(folder: Path, model: dict[int, dict[str, NDArray[Any]]], top_k: int = TOP_K) -> Path:
    """One tensor an expert, as Hugging Face has OLMoE and Qwen3-MoE."""
    tensors = {
        f"model.layers.{layer}.mlp.experts.{expert}.{part}_proj.weight": stacked[expert]
        for layer, parts in model.items()
        for part, stacked in parts.items()
        for expert in range(len(stacked))
    }
    return _saved(folder, tensors, top_k, model)


def _saved(folder: Path, tensors: Mapping[str, NDArray[Any]], top_k: int, model: Mapping[int, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: np.ascontiguousarray(t) for name, t in tensors.items()}, folder / "model.safetensors")
    config = {"num_experts_per_tok": top_k, "num_hidden_layers": max(model) + 1}
    (folder / "config.json").write_text(json.dumps(config))
    return folder / "model.safetensors"


def gguf(path: Path, model: dict[int, dict[str, NDArray[Any]]], top_k: int = TOP_K, alignment: int = 32) -> Path:
    """Stacked tensors as llama.cpp's converter writes them: by the `gguf` package."""
    from gguf import GGUFWriter

    writer = GGUFWriter(path, "olmoe")
    writer.add_name("tiny")
    if alignment != 32:
        writer.add_custom_alignment(alignment)
    writer.add_block_count(max(model) + 1)
    writer.add_expert_count(len(next(iter(next(iter(model.values())).values()))))
    writer.add_expert_used_count(top_k)
    writer.add_token_list(["<s>", "a", "ab"])
    writer.add_token_scores([0.5, 0.25, 1.0])
    writer.add_tensor("token_embd.weight", np.ones((3, 7), np.float32))
    for layer, parts in model.items():
        for part, stacked in parts.items():
            writer.add_tensor(f"blk.{layer}.ffn_{part}_exps.weight", np.ascontiguousarray(stacked))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
