"""Write the weights that ship from a training run: `python training/export.py RUN [--out FOLDER]`.

Experts become float16, each part a page of 16 KiB on a page of its file; attention float16; the rest float32. The
recipe gains what the exported file says of itself: its size and SHA-256, and the bits a byte that the product's own
numpy model reaches with it on each validation text.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from rich.progress import track

from corpora import corpora
from expertcache_reference.compute import Resident, backend
from expertcache_reference.stores import open_store, verify
from expertcache_reference.stores.safetensors_header import write
from expertcache_reference.stores.tensors import Tensor
from expertcache_reference.tinymoe import TINY, Network, Session, names, weights
from network import Network as Torch

ALIGNMENT = 16 * 1024
LIMIT = 8 * 2**20
KINDS = {"float16": "F16", "float32": "F32"}


def arrays(state: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """The tensors that ship, experts first, under the names and in the types that they ship in."""
    found: dict[str, np.ndarray] = {}
    for layer in range(TINY.layers):
        both = state[f"blocks.{layer}.experts.gate_up"].numpy()
        parts = {"gate": both[:, : TINY.hidden], "up": both[:, TINY.hidden :]}
        parts["down"] = state[f"blocks.{layer}.experts.down"].numpy()
        found |= {names.expert(layer, part): parts[part].astype(np.float16) for part in weights.PARTS}
    for layer in range(TINY.layers):
        inside = f"blocks.{layer}."
        found[names.attention(layer, "qkv")] = state[inside + "attention.qkv.weight"].numpy().astype(np.float16)
        found[names.attention(layer, "o")] = state[inside + "attention.out.weight"].numpy().astype(np.float16)
        found[names.norm(layer, "input")] = state[inside + "attention_norm.weight"].numpy()
        found[names.norm(layer, "post_attention")] = state[inside + "experts_norm.weight"].numpy()
        found[names.router(layer)] = state[inside + "experts.router.weight"].numpy()
    found |= {names.EMBEDDING: state["embedding.weight"].numpy(), names.NORM: state["norm.weight"].numpy()}
    return found | {names.HEAD: state["head.weight"].numpy()}


def packed(found: dict[str, np.ndarray]) -> bytes:
    """The file."""
    tensors = [Tensor(n, KINDS[a.dtype.name], a.shape, weights.FILE, 0, a.nbytes) for n, a in found.items()]
    about = {"format": "expertcache tinymoe", "num_experts_per_tok": str(TINY.top_k), "licence": "Apache-2.0"}
    body = b"".join(np.ascontiguousarray(array).tobytes() for array in found.values())
    return write(tensors, about, ALIGNMENT) + body


def bits(network: Network, serve: Resident, text: bytes, windows: int) -> float:
    """Bits a byte of the numpy model on windows spread evenly over the text, each predicted from its own start."""
    total, count = 0.0, 0
    for start in np.linspace(0, len(text) - TINY.window - 2, windows).astype(int):
        part = text[start : start + TINY.window + 1]
        logits = Session(network, serve.serve).feed(part[:-1], "prefill").astype(np.float64)
        logits -= logits.max(1, keepdims=True)
        found = logits[np.arange(len(logits)), list(part[1:])] - np.log(np.exp(logits).sum(1))
        total -= found.sum() / np.log(2)
        count += len(logits)
    return total / count


def difference(state: dict[str, torch.Tensor], network: Network, serve: Resident, text: bytes) -> float:
    """The largest difference of a logit between the exported numpy model and the trained torch model in float32."""
    exact = Torch(TINY, fast=False)
    exact.load_state_dict(state)
    with torch.no_grad():
        expected = exact(torch.tensor([list(text)]))[0][0].numpy()
    return float(np.abs(Session(network, serve.serve).feed(text, "prefill") - expected).max())


def main() -> None:
    """Export, measure, write both files whole."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, default=Path(str(files("expertcache_reference.tinymoe"))))
    given = parser.parse_args()
    saved = torch.load(given.run / "checkpoint.pt", weights_only=True)
    data = packed(arrays(saved["network"]))
    if len(data) > LIMIT:
        raise SystemExit(f"{len(data)} bytes, the limit is {LIMIT}")
    network = Network(weights.dense(data, TINY, weights.FILE), backend("numpy", TINY.width, TINY.hidden))
    serve, domains = Resident(weights.records(data, TINY, weights.FILE)), corpora()
    recipe: dict[str, Any] = json.loads((given.run / "recipe.json").read_text())
    recipe |= {"file": weights.FILE, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    recipe["validation_bits_per_byte"] = {
        domain.name: round(bits(network, serve, domain.validation, 32), 4) for domain in track(domains, "validating")
    }
    with TemporaryDirectory() as folder:
        (Path(folder) / weights.FILE).write_bytes(data)
        recipe["records"] = verify(open_store(Path(folder) / weights.FILE))
    largest = difference(saved["network"], network, serve, domains[0].validation[: TINY.window])
    recipe["largest_logit_difference_to_torch"] = float(f"{largest:.3g}")
    for name, content in ((weights.FILE, data), ("recipe.json", (json.dumps(recipe, indent=2) + "\n").encode())):
        (given.out / f"{name}.partial").write_bytes(content)
        (given.out / f"{name}.partial").replace(given.out / name)
    print(json.dumps({name: recipe[name] for name in list(recipe) if "bits" in name or "diff" in name}, indent=2))


if __name__ == "__main__":
    main()
