"""Train the tiny model: `python training/train.py OUT [--steps N]`; run again to go on where it stopped.

OUT receives `checkpoint.pt` (everything to go on from), `curves.csv` and `recipe.json`. Same seed, machine, versions
and steps give the same weights, interrupted or not. Before the cool-down begins, --steps may be changed between runs.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import json
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import Progress
from torch.nn.functional import cross_entropy

from corpora import corpora
from expertcache_reference.tinymoe.shape import TINY
from network import Network
from optimiser import is_falling, optimisers, scale

SEED, BATCH = 5, 24
BALANCE = 0.005
"""Weight of the balance loss, which is of the whole batch of all domains: a domain may keep to experts of its own."""
EVERY = 50
"""Steps between validations and checkpoints."""
NATS = float(np.log(2))


def batch(texts: list[np.ndarray], step: int) -> torch.Tensor:
    """The step's (BATCH, window + 1) bytes: the domains in turn, from random places. A function of the step alone."""
    random = np.random.default_rng([SEED, step])
    rows = []
    for row in range(BATCH):
        text = texts[(row + step) % len(texts)]
        start = random.integers(len(text) - TINY.window)
        rows.append(text[start : start + TINY.window + 1])
    return torch.from_numpy(np.stack(rows).astype(np.int64))


@torch.no_grad()
def bits(network: Network, text: bytes, windows: int) -> float:
    """Bits a byte on that many windows, spread evenly over the text, every byte of them predicted."""
    data = np.frombuffer(text, np.uint8).astype(np.int64)
    starts = np.linspace(0, len(data) - TINY.window - 2, windows).astype(int)
    rows = torch.from_numpy(np.stack([data[start : start + TINY.window + 1] for start in starts]))
    losses = [
        cross_entropy(network(part[:, :-1])[0].flatten(0, 1), part[:, 1:].flatten()).item() for part in rows.split(8)
    ]
    return sum(losses) / len(losses) / NATS


class Run:
    """A training run in a folder."""

    def __init__(self, folder: Path, steps: int, *, compiled: bool) -> None:
        torch.manual_seed(SEED)
        torch.use_deterministic_algorithms(True)
        torch.set_num_threads(1)
        self.folder, self.steps, self.step = folder, steps, 0
        self.network = Network(TINY)
        self.optimisers = optimisers(self.network)
        self.forward = torch.compile(self.network) if compiled else self.network
        self.domains = corpora()
        self.texts = [np.frombuffer(domain.train, np.uint8) for domain in self.domains]
        self.curves: list[dict[str, Any]] = []
        self.seconds, self.sums = 0.0, [0.0] * (len(self.domains) + 1)
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "checkpoint.pt").exists():
            self._load(torch.load(folder / "checkpoint.pt", weights_only=True))

    def _load(self, saved: dict[str, Any]) -> None:
        falling = any(is_falling(saved["step"], steps) for steps in (saved["steps"], self.steps))
        if saved["steps"] != self.steps and falling:
            raise SystemExit(f"too late to change the steps: go on with --steps {saved['steps']}, or begin anew")
        self.network.load_state_dict(saved["network"])
        for optimiser, state in zip(self.optimisers, saved["optimisers"], strict=True):
            optimiser.load_state_dict(state)
        self.step, self.curves, self.seconds = saved["step"], saved["curves"], saved["seconds"]
        self.sums = saved["sums"]

    def save(self) -> None:
        """Write the checkpoint whole or not at all."""
        state = {"network": self.network.state_dict(), "optimisers": [o.state_dict() for o in self.optimisers]}
        state |= {"step": self.step, "steps": self.steps, "curves": self.curves, "seconds": self.seconds}
        state |= {"sums": self.sums}
        torch.save(state, self.folder / "checkpoint.partial")
        (self.folder / "checkpoint.partial").replace(self.folder / "checkpoint.pt")

    def advance(self) -> None:
        """One step."""
        began = time.process_time()
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = group["base"] * scale(self.step, self.steps)
        tokens = batch(self.texts, self.step)
        logits, balance = self.forward(tokens[:, :-1])
        each = cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none").view(BATCH, -1).mean(1)
        (each.mean() + BALANCE * balance).backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        for optimiser in self.optimisers:
            optimiser.step()
            optimiser.zero_grad()
        for place, index in enumerate(range(len(self.texts))):
            mine = [loss for row, loss in enumerate(each.tolist()) if (row + self.step) % len(self.texts) == index]
            self.sums[place] += sum(mine) / len(mine) / NATS
        self.sums[-1] += float(balance.detach())
        self.step += 1
        self.seconds += time.process_time() - began

    def measure(self) -> str:
        """Validate, note the means since the last time, save; what to show."""
        means, self.sums = [total / EVERY for total in self.sums], [0.0] * len(self.sums)
        row: dict[str, Any] = {"step": self.step, "balance": means[-1]}
        for domain, mean in zip(self.domains, means, strict=False):
            row[f"{domain.name} train"] = mean
            row[f"{domain.name} validation"] = bits(self.network, domain.validation, 8)
        self.curves.append({name: round(value, 4) for name, value in row.items()})
        with (self.folder / "curves.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(self.curves[-1]))
            writer.writeheader()
            writer.writerows(self.curves)
        self.save()
        return ", ".join(f"{name} {value:.3f}" for name, value in row.items() if name != "step")

    def recipe(self) -> dict[str, Any]:
        """What was trained, on what, how, and how well."""
        versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
        validated = {domain.name: round(bits(self.network, domain.validation, 96), 4) for domain in self.domains}
        return {
            "seed": SEED, "steps": self.steps, "batch": BATCH, "window": TINY.window, "balance": BALANCE,
            "compiled": self.forward is not self.network,
            "bytes_seen": self.steps * BATCH * TINY.window, "cpu_seconds": round(self.seconds), "versions": versions,
            "machine": platform.machine(), "validation_bits_per_byte_torch": validated,
            "corpora": {domain.name: domain.about for domain in self.domains},
        }  # fmt: skip


def keep_memory() -> None:
    """Ask glibc not to give memory back after every step; page faults cost a fifth of the time otherwise."""
    if platform.system() == "Linux":
        libc = ctypes.CDLL(None)
        for option, size in (
            (-3, 1 << 30),
            (-1, 1 << 31 - 1),
            (-2, 1 << 28),
        ):  # mmap threshold, trim threshold, top pad
            libc.mallopt(option, size)


def main() -> None:
    """Train to the end, or to Ctrl-C: then the last checkpoint is kept and the next run goes on from it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--compile", action="store_true", help="a fifth faster, after minutes of compiling")
    given = parser.parse_args()
    keep_memory()
    run = Run(given.out, given.steps, compiled=given.compile)
    try:
        with Progress() as progress:
            task = progress.add_task("training", total=run.steps, completed=run.step)
            while run.step < run.steps:
                run.advance()
                progress.update(task, completed=run.step)
                if not run.step % EVERY or run.step == run.steps:
                    progress.console.print(f"{run.step}: {run.measure()}")
    except KeyboardInterrupt:
        raise SystemExit(
            f"\nstopped at step {run.step}; the checkpoint is of the last {EVERY}: run again to go on"
        ) from None
    partial = given.out / "recipe.partial"
    partial.write_text(json.dumps(run.recipe(), indent=2) + "\n")
    partial.replace(given.out / "recipe.json")


if __name__ == "__main__":
    main()
