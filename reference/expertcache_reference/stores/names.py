"""Names of tensors: which one holds what of which expert, in the conventions of GGUF, MLX and Hugging Face."""

from __future__ import annotations

import re
from typing import NamedTuple

PROJECTIONS = ("gate", "up", "gate_up", "down")
"""In the order of a record."""
_BESIDE = ("", "blocks", "scales", "biases")
"""In the order of a record: the weight itself, then what MLX and MXFP4 keep beside it; others follow by name."""
_MIXTRAL = {"w1": "gate", "w3": "up", "w2": "down"}
_LONGEST = 128

_GGUF = re.compile(r"blk\.(?P<layer>\d{1,5})\.ffn_(?P<projection>gate_up|gate|up|down)_exps(?:\.(?P<beside>\w+))?")
_OTHERS = re.compile(
    r"(?:[\w.]*\.)?layers\.(?P<layer>\d{1,5})\.(?:[\w.]*\.)?(?:switch_mlp|switch_glu|experts)\."
    r"(?:(?P<expert>\d{1,5})\.)?(?:(?P<projection>gate_up|gate|up|down)_proj|(?P<mixtral>w[123]))"
    r"(?:[._](?P<beside>\w+))?"
)
"""MLX: model.layers.3.mlp.switch_mlp.gate_proj.scales; OLMoE, Qwen: model.layers.3.mlp.experts.7.up_proj.weight;
Mixtral: model.layers.3.block_sparse_moe.experts.7.w2.weight; gpt-oss: model.layers.3.mlp.experts.gate_up_proj_bias."""


class Role(NamedTuple):
    """What a tensor is: of which layer, of one expert or (None) of all of them stacked, and which part of a record."""

    layer: int
    expert: int | None
    part: str


def role(name: str) -> Role | None:
    """The role of a tensor of routed experts; None for every other (also shared experts and draft heads)."""
    if len(name) > _LONGEST or name.startswith("mtp."):
        return None
    found = _GGUF.fullmatch(name) or _OTHERS.fullmatch(name)
    if found is None:
        return None
    of = found.groupdict()
    projection, beside = of["projection"] or _MIXTRAL[of["mixtral"]], of["beside"]
    part = projection if beside in (None, "weight") else f"{projection}.{beside}"
    return Role(int(of["layer"]), None if of.get("expert") is None else int(of["expert"]), part)


def order(part: str) -> tuple[int, int, str]:
    """What parts are sorted by: gate, up, gate_up, down, each with what stands beside it."""
    projection, _, beside = part.partition(".")
    place = _BESIDE.index(beside) if beside in _BESIDE else len(_BESIDE)
    return PROJECTIONS.index(projection), place, beside


def gguf_name(layer: int, part: str) -> str:
    """The name of the stacked tensor in GGUF."""
    projection, _, beside = part.partition(".")
    return f"blk.{layer}.ffn_{projection}_exps.{beside or 'weight'}"


def mlx_name(layer: int, part: str) -> str:
    """The name of the stacked tensor in MLX's safetensors."""
    projection, _, beside = part.partition(".")
    return f"model.layers.{layer}.mlp.switch_mlp.{projection}_proj.{beside or 'weight'}"
