"""What the tensors of the weights are called: the names of MLX's models, which stores know the experts by."""

from __future__ import annotations

EMBEDDING, NORM, HEAD = "model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"


def expert(layer: int, part: str) -> str:
    """A part of all experts of a layer, (experts, rows, columns) float16."""
    return f"model.layers.{layer}.mlp.switch_mlp.{part}_proj.weight"


def router(layer: int) -> str:
    """The router, (experts, width)."""
    return f"model.layers.{layer}.mlp.gate.weight"


def attention(layer: int, part: str) -> str:
    """Attention's `qkv`, (3 * width, width), or `o`, (width, width)."""
    return f"model.layers.{layer}.self_attn.{part}_proj.weight"


def norm(layer: int, which: str) -> str:
    """The norm before attention (`input`) or before the experts (`post_attention`), (width,)."""
    return f"model.layers.{layer}.{which}_layernorm.weight"
