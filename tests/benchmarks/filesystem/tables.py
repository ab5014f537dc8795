"""What was measured, as tables and as plain data."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from rich.box import SIMPLE
from rich.table import Table
from tests.benchmarks.filesystem.cases import Load
from tests.benchmarks.filesystem.running import Run, Setting

COLUMNS = (
    "case", "replay's misses", "hits", "misses", "asked MiB", "device MiB", "reads were", "wait ms", "reading ms",
    "pass ms", "tokens/s", "recall r/m", "read ahead", "useful", "late", "wasted", "evicted",
)  # fmt: skip


def described(found: Load, setting: Setting, runs: Sequence[Run], replays: Mapping[str, Any]) -> dict[str, Any]:
    """Every run with all that is known of it; bytes and nanoseconds."""
    return {
        "trace": found.name, "record": found.size, "records": len(found.layout.extents), "slots": found.slots,
        "token_cycle": found.geometry.token_cycle_slots, "passes": found.passes, "setting": attrs.asdict(setting),
        "replay": dict(replays),
        "runs": [{**attrs.asdict(run), "state": run.state} for run in runs],
    }  # fmt: skip


def table(found: Load, condition: str, runs: Sequence[Run], replays: Mapping[str, Any]) -> Table:
    """A line a case: medians of its runs, and times of its fastest, which a busy machine spoils least.

    wait, reading, pass: milliseconds a token. The replay's misses are those of reads ahead that take no event, and two.
    """
    title = (
        f"{condition}: {found.name}, records of {found.size:,} B, {found.slots} slots of {len(found.layout.extents)}, "
        f"token cycle {found.geometry.token_cycle_slots}, {found.passes} tokens"
    )
    shown = Table(title=title, box=SIMPLE)
    for name in COLUMNS:
        shown.add_column(name, justify="left" if name in ("case", "reads were") else "right", no_wrap=name == "case")
    for case in dict.fromkeys(run.case for run in runs):
        chosen = [run for run in runs if run.case == case and run.condition == condition]
        if chosen:
            shown.add_row(case, " - ".join(map(str, replays[case].values())), *_cells(found, chosen))
    return shown


def _cells(found: Load, runs: Sequence[Run]) -> list[str]:
    def median(*path: str) -> float | None:
        values = [_get(run, path) for run in runs]
        return None if None in values else statistics.median(values)  # type: ignore[type-var]

    states, best = sorted({run.state for run in runs}), min(runs, key=lambda run: run.elapsed)
    judged = [f"{median('report', name):.0f}" for name in ("hits", "misses")]
    sizes = [_mebi(median("report", f"{name}_bytes")) for name in ("application", "device")]
    times = [f"{time / 1e6 / found.passes:.2f}" for time in (best.report.exposed, best.report.read_wall, best.elapsed)]
    cells = [*judged, *sizes, "/".join(states), *times, f"{found.passes * 1e9 / best.elapsed:.1f}"]
    if runs[0].counts is None:
        return cells
    recalls = [_share(median("counts", f"{name}_recalled"), median("counts", name)) for name in ("routes", "missing")]
    ends = [f"{median('counts', name):.0f}" for name in ("issued", "useful", "late", "wasted", "evicted")]
    return [*cells, " / ".join(recalls), *ends]


def _get(run: Run, path: Sequence[str]) -> Any:
    value: Any = run
    for name in path:
        value = getattr(value, name)
    return value


def _mebi(size: float | None) -> str:
    return "unknown" if size is None else f"{size / 2**20:.0f}"


def _share(part: float | None, whole: float | None) -> str:
    return f"{100 * part / whole:.0f} %" if part is not None and whole else "-"
