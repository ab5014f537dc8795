"""The tiny model in torch, for training; `expertcache_reference.tinymoe` decodes the same in numpy.

The residual stream, norms, router and attention are float32; the large products run in bfloat16 where asked for.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from expertcache_reference.tinymoe.shape import Shape

Z_LOSS = 1e-3
"""How much the squared normaliser of the router weighs beside the balance: it keeps the logits small."""

GRAIN = 64
"""Rows of an expert are filled up to a multiple of this: few distinct sizes, and each is prepared once."""


def rotations(rows: int, head: int, base: float) -> tuple[Tensor, Tensor]:
    """Cosines and sines of rotary positions 0, 1, 2 ..., each (rows, head / 2)."""
    frequencies = base ** (-torch.arange(head // 2, dtype=torch.float64) / (head // 2))
    angles = torch.arange(rows, dtype=torch.float64)[:, None] * frequencies
    return angles.cos().float(), angles.sin().float()


class Linear(nn.Linear):
    """A product without bias, in bfloat16 where the weight says so by `fast`."""

    def __init__(self, columns: int, rows: int, *, fast: bool) -> None:
        super().__init__(columns, rows, bias=False)
        self.kind = torch.bfloat16 if fast else torch.float32

    def forward(self, x: Tensor) -> Tensor:
        """Of (..., columns), to float32."""
        return functional.linear(x.to(self.kind), self.weight.to(self.kind)).float()


class Attention(nn.Module):
    """Causal attention; training sequences are no longer than the window. The halves of a head rotate as pairs."""

    def __init__(self, shape: Shape, *, fast: bool) -> None:
        super().__init__()
        self.shape = shape
        self.qkv = Linear(shape.width, 3 * shape.width, fast=fast)
        self.out = Linear(shape.width, shape.width, fast=fast)
        cos, sin = rotations(shape.window, shape.head, shape.rotary)
        self.register_buffer("cos", torch.cat((cos, cos), -1), persistent=False)
        self.register_buffer("sin", torch.cat((-sin, sin), -1), persistent=False)

    def _rotated(self, x: Tensor) -> Tensor:
        rows = x.shape[-2]
        return x * self.cos[:rows] + x.roll(x.shape[-1] // 2, -1) * self.sin[:rows]

    def forward(self, x: Tensor) -> Tensor:
        """Of (batch, rows, width)."""
        batch, rows, width = x.shape
        q, k, v = self.qkv(x).view(batch, rows, 3, self.shape.heads, self.shape.head).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(self._rotated(q), self._rotated(k), v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, rows, width))


class Experts(nn.Module):
    """A softmax router and its SwiGLU experts; every row goes to its best `top_k`, weighted among these."""

    def __init__(self, shape: Shape, *, fast: bool) -> None:
        super().__init__()
        self.shape, self.kind = shape, torch.bfloat16 if fast else torch.float32
        self.router = Linear(shape.width, shape.experts, fast=False)
        self.gate_up = nn.Parameter(torch.empty(shape.experts, 2 * shape.hidden, shape.width))
        self.down = nn.Parameter(torch.empty(shape.experts, shape.width, shape.hidden))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The experts' sum for (rows, width), and the balance loss: near 1 where all experts are asked for alike."""
        logits = self.router(x)
        best, chosen = logits.topk(self.shape.top_k, -1)
        asked = torch.bincount(chosen.flatten(), minlength=self.shape.experts)
        balance = self.shape.experts * (asked / chosen.numel() * logits.softmax(-1).mean(0)).sum()
        return self._mixed(x, best.softmax(-1), chosen, asked), balance + Z_LOSS * logits.logsumexp(-1).square().mean()

    def _mixed(self, x: Tensor, weights: Tensor, chosen: Tensor, asked: Tensor) -> Tensor:
        order = chosen.flatten().argsort(stable=True)
        padded = (asked + GRAIN - 1) // GRAIN * GRAIN
        ends = padded.cumsum(0)
        shift = (ends - padded) - (asked.cumsum(0) - asked)
        places = torch.arange(len(order)) + shift.repeat_interleave(asked)  # of each sorted selection
        rows = torch.full((int(ends[-1]),), len(x)).scatter_(0, places, order // self.shape.top_k)
        inputs = functional.pad(x.to(self.kind), (0, 0, 0, 1)).index_select(0, rows)
        share = torch.zeros(len(rows)).index_copy(0, places, weights.flatten()[order])
        both = functional.grouped_mm(inputs, self.gate_up.to(self.kind).transpose(1, 2), offs=ends.int())
        gate, up = both.split(self.shape.hidden, -1)
        hidden = functional.silu(gate) * up * share[:, None].to(self.kind)
        outputs = functional.grouped_mm(hidden, self.down.to(self.kind).transpose(1, 2), offs=ends.int())
        slots = torch.empty_like(order).scatter_(0, order, places)
        return outputs.index_select(0, slots).view(*chosen.shape, -1).float().sum(1)


class Block(nn.Module):
    """One layer."""

    def __init__(self, shape: Shape, *, fast: bool) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(shape.width, eps=shape.epsilon)
        self.attention = Attention(shape, fast=fast)
        self.experts_norm = nn.RMSNorm(shape.width, eps=shape.epsilon)
        self.experts = Experts(shape, fast=fast)


class Network(nn.Module):
    """The whole model. What adds to the residual stream, and the head, start smaller, by the depth."""

    def __init__(self, shape: Shape, *, fast: bool = True) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(Block(shape, fast=fast) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width, eps=shape.epsilon)
        self.head = Linear(shape.width, shape.vocabulary, fast=fast)
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                deviation = 0.5 if name == "embedding.weight" else 1 / math.sqrt(parameter.shape[-1])
                depth = math.sqrt(2 * shape.layers) if name.endswith(("out.weight", "down", "head.weight")) else 1
                nn.init.normal_(parameter, std=deviation / depth)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of (batch, rows) bytes, and the mean balance loss."""
        x, balances = self.embedding(tokens), []
        for block in self.blocks:
            x = x + block.attention(block.attention_norm(x))
            mixed, balance = block.experts(block.experts_norm(x).flatten(0, 1))
            x = x + mixed.view(x.shape)
            balances.append(balance)
        return self.head(self.norm(x)), torch.stack(balances).mean()
