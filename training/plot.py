"""Draw the loss curves of a run: `python training/plot.py RUN [--out FILE]`."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt


def main() -> None:
    """One picture: bits a byte by step, of each domain, in training and on held-out text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with (given.run / "curves.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    steps = [int(row["step"]) for row in rows]
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    names = [name.removesuffix(" validation") for name in rows[0] if name.endswith(" validation")]
    for name, colour in zip(names, ("#0072b2", "#d55e00", "#009e73"), strict=True):
        for role, style in (("validation", "-"), ("train", ":")):
            values = [float(row[f"{name} {role}"]) for row in rows]
            axes.plot(steps, values, style, color=colour, label=f"{name}, {role}", linewidth=1.5)
    axes.set(xlabel="step", ylabel="bits per byte", xlim=(0, steps[-1]), ylim=(1.4, 4))
    axes.grid(alpha=0.3)
    axes.legend(ncols=3, fontsize="small")
    figure.savefig(given.out or given.run / "curves.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
