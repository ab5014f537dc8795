"""Muon for the matrices (Jordan et al. 2024), AdamW for everything else, and the schedule of both."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from network import Network

MUON_RATE, ADAM_RATE = 0.02, 3e-3
MOMENTUM = 0.95
DECAY = 0.05
"""Weight decay of the matrices, a step, times the rate."""
WARM_UP = 100
COOL_DOWN = 0.3
"""Share of the steps, at the end, over which the rate falls to zero in a straight line."""


def scale(step: int, steps: int) -> float:
    """What the rates are multiplied with: up, flat, down. Before the way down it does not depend on `steps`."""
    down = int(steps * COOL_DOWN)
    return min(1.0, (step + 1) / WARM_UP, max(0.0, (steps - step) / down) if down else 1.0)


def is_falling(step: int, steps: int) -> bool:
    """Whether the rate is on its way down before this step: then another number of steps is another training."""
    return step > steps - int(steps * COOL_DOWN)


def orthogonal(matrices: Tensor) -> Tensor:
    """Each matrix of (..., rows, columns) with its singular values near 1: five Newton-Schulz steps of degree 5."""
    wide = matrices.shape[-2] <= matrices.shape[-1]
    x = (matrices if wide else matrices.mT).bfloat16()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        square = x @ x.mT
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return (x if wide else x.mT).float()


class Muon(torch.optim.Optimizer):
    """Momentum, made orthogonal matrix by matrix; a parameter is given with the matrices that it is a stack of."""

    def __init__(self, stacks: list[tuple[Tensor, tuple[int, int, int]]], rate: float) -> None:
        super().__init__([{"params": [p], "stack": stack} for p, stack in stacks], {"lr": rate})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        """One step."""
        for group in self.param_groups:
            (parameter,) = group["params"]
            moving = self.state[parameter].setdefault("moving", torch.zeros_like(parameter))
            moving.lerp_(parameter.grad, 1 - MOMENTUM)
            update = orthogonal(parameter.grad.lerp(moving, MOMENTUM).view(group["stack"])).view_as(parameter)
            rows, columns = group["stack"][-2:]
            parameter.mul_(1 - group["lr"] * DECAY)
            parameter.add_(update, alpha=-group["lr"] * max(1, rows / columns) ** 0.5)


def optimisers(network: Network) -> list[torch.optim.Optimizer]:
    """The two optimisers of the network; `base` of a group is its full rate."""
    shape = network.shape
    sizes = {"qkv.weight": (3, shape.width, shape.width), "out.weight": (1, shape.width, shape.width)}
    sizes["gate_up"] = (2 * shape.experts, shape.hidden, shape.width)
    sizes["down"] = (shape.experts, shape.width, shape.hidden)
    stacks, others = [], []
    for name, parameter in network.named_parameters():
        size = next((size for ending, size in sizes.items() if name.endswith(ending)), None)
        if size is None:
            others.append(parameter)
        else:
            stacks.append((parameter, size))
    adam = torch.optim.AdamW(others, ADAM_RATE, betas=(0.9, 0.95), weight_decay=0.0, fused=True)
    found: list[torch.optim.Optimizer] = [Muon(stacks, MUON_RATE), adam]
    for optimiser in found:
        for group in optimiser.param_groups:
            group["base"] = group["lr"]
    return found
