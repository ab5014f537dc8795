"""The growth table as a picture, through the extra `plot`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.benchmarks.growth import Growth

COLUMNS = 6
MICROSECONDS = (1, 2, 5, 10, 20, 50, 100)
"""Where the axis of cost has its marks."""


def draw(found: Mapping[str, Growth], path: Path) -> None:
    """One small panel a policy, all with the same axes: its cost, LRU's, and what log(slots) would be.

    The file appears whole or not at all. Raises `ModuleNotFoundError` without matplotlib, `ValueError` for a suffix
    that it cannot write.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "expertcache"  # the same numbers make the same file
    import matplotlib.pyplot as plt

    rows = math.ceil(len(found) / COLUMNS)
    figure, axes = plt.subplots(
        rows, COLUMNS, figsize=(2.2 * COLUMNS, 1.75 * rows + 0.8), sharex=True, sharey=True, squeeze=False
    )
    panels = list(axes.flat)
    every = [cost for each in found.values() for cost in each.costs.values()]
    panels[0].set_ylim(0.8 * min(every), 1.6 * max(every))
    for panel, (policy, each) in zip(panels, found.items(), strict=False):
        _panel(panel, policy, each, found.get("lru"))
    for column in range(COLUMNS):
        last = (len(found) - 1 - column) // COLUMNS
        if last >= 0:
            axes[last][column].tick_params(labelbottom=True)
    for panel in panels[len(found) :]:
        panel.set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", ncols=3, frameon=False, fontsize=9)
    figure.suptitle("CPU time of a lookup in microseconds, by slots", x=0.01, ha="left", fontsize=12)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.25 / (1.75 * rows + 0.8)))
    part = path.with_name(f".{path.name}.part")
    try:
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(part, format=path.suffix[1:], dpi=110, metadata=metadata)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
        plt.close(figure)


def _panel(panel: Any, policy: str, each: Growth, base: Growth | None) -> None:
    slots, costs = list(each.costs), list(each.costs.values())
    logarithm = [costs[0] * math.log(capacity) / math.log(slots[0]) for capacity in slots]
    panel.plot(slots, costs, marker="o", markersize=3, color="#0b6e99", label="the policy")
    if base is not None:
        panel.plot(slots, list(base.costs.values()), color="#999999", linewidth=1, label="LRU")
    panel.plot(slots, logarithm, color="#c0392b", linewidth=1, linestyle=":", label="log(slots)")
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_xticks(slots, [f"{s}" if s < 1000 else f"{round(s / 1024)}k" for s in slots], fontsize=7)
    marks = [mark for mark in MICROSECONDS if panel.get_ylim()[0] < mark < panel.get_ylim()[1]]
    panel.set_yticks(marks, [f"{mark}" for mark in marks], fontsize=7)
    panel.minorticks_off()
    panel.set_title(f"{policy}  ^{each.exponent:.2f}", fontsize=8.5, pad=3)
