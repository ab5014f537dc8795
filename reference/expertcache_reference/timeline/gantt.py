"""Gantt charts: one panel for each schedule, over one time axis; PNG or SVG, through matplotlib (extra `plot`)."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from io import BytesIO
from typing import Any, ClassVar

from expertcache_reference.timeline.chrome import Drawn
from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.schedule import COMPUTE, Breakdown, Scenario, Schedule, TaskId, breakdown
from expertcache_spec.schedule.measures import union

COLOURS = {
    "route": "#b8bcc2",
    "dispatch": "#3c4043",
    "gate and up, resident": "#1f77b4",
    "gate and up, read": "#7fb7e0",
    "down": "#2a9d8f",
    "combine": "#6a4c93",
    "read of gate and up": "#e76f51",
    "read of down": "#f4a261",
    "read on speculation": "#d9cdbf",
    "exposed wait": "#fbe3e4",
}
"""What a bar means, to its colour."""
_DARK = {"gate and up, resident", "down"}
"""Where numbers are written in white."""

_WIDTH, _ROW, _HEAD, _FOOT = 12.0, 0.26, 0.55, 1.1
"""Inches of the page, of a lane, and of what stands above and below the lanes."""
_HIGHEST = 60.0
_MANY = 200
"""Tasks from which on bars are too narrow for an edge."""


class MissingExtra(ExpertCacheError):
    """A feature whose library is not installed."""

    code: ClassVar[str] = "missing-extra"


def meaning(scenario: Scenario, task: TaskId) -> str:
    """The entry of `COLOURS` that a task is drawn in."""
    load = scenario.loads[task.event]
    if task.kind == "gate_up":
        return "gate and up, read" if load.keys[task.place] in load.missing else "gate and up, resident"
    if task.kind != "read":
        return task.kind
    if task.place >= len(load.keys):
        return "read on speculation"
    stage = scenario.record(load.keys[task.place])[task.part].stage
    return "read of down" if stage == "down" else "read of gate and up"


def gantt(drawn: Drawn, title: str, form: str) -> bytes:
    """The chart as a file of that form, `png` or `svg`; the same bytes every time.

    Raises `MissingExtra` where matplotlib is not installed.
    """
    try:
        matplotlib, figures = import_module("matplotlib"), import_module("matplotlib.figure")
    except ImportError as error:
        raise MissingExtra(
            "drawing needs matplotlib", where="timeline", cure="pip install 'expertcache[plot]', or write a .json"
        ) from error
    with matplotlib.rc_context({"svg.hashsalt": "expertcache", "font.size": 8}):
        figure = _figure(figures, drawn, title)
        buffer = BytesIO()
        metadata: dict[str, Any] = {"Date": None} if form == "svg" else {"Software": None}
        figure.savefig(buffer, format=form, dpi=130, metadata=metadata)
    return buffer.getvalue()


def _figure(figures: Any, drawn: Drawn, title: str) -> Any:
    rows = [len(_lanes(schedule)) for _, schedule in drawn.values()]
    height = min(_HIGHEST, sum(_ROW * count + _HEAD for count in rows) + _FOOT)
    figure = figures.Figure(figsize=(_WIDTH, height), layout="constrained")
    panels = figure.subplots(len(drawn), 1, sharex=True, squeeze=False, height_ratios=[_ROW * n + _HEAD for n in rows])
    longest = max(span.end for _, schedule in drawn.values() for span in schedule.spans.values())
    unit, name = (1_000_000, "ms") if longest >= 10_000_000 else (1_000, "µs")
    used: set[str] = set()
    for (axes,), (label, (scenario, schedule)) in zip(panels, drawn.items(), strict=True):
        used |= _panel(axes, scenario, schedule, unit, longest)
        axes.set_title(f"{label}    {_said(breakdown(schedule), unit, name)}", loc="left", fontsize=8)
    panels[-1][0].set_xlabel(name)
    panels[-1][0].set_xlim(_from(drawn, longest) / unit, longest / unit)
    figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    patches = import_module("matplotlib.patches")
    handles = [patches.Patch(color=colour, label=what) for what, colour in COLOURS.items() if what in used]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    return figure


def _from(drawn: Drawn, longest: int) -> int:
    """Where the axis begins: of a single event shortly before its experts are known, what comes before is all alike."""
    if any(len(scenario.loads) > 1 for scenario, _ in drawn.values()):
        return 0
    known = min(schedule.spans[TaskId(0, "route")].end for _, schedule in drawn.values())
    return max(0, known - (longest - known) // 20)


def _said(parts: Breakdown, unit: int, name: str) -> str:
    """The breakdown in words."""
    words = ("makespan", "compute", "overhead", "exposed", "hidden")
    return "   ".join(f"{word} {value / unit:,.2f}" for word, value in zip(words, parts, strict=True)) + f" {name}"


def _lanes(schedule: Schedule) -> list[int]:
    """The compute queue, and the workers that did something."""
    return sorted({span.lane for span in schedule.spans.values()} | {COMPUTE})


def _panel(axes: Any, scenario: Scenario, schedule: Schedule, unit: int, longest: int) -> set[str]:
    """Draw one schedule; what colours it used."""
    place = {lane: row for row, lane in enumerate(_lanes(schedule))}
    idle = [(start / unit, (end - start) / unit) for start, end in waits(schedule)]
    bars: dict[str, dict[int, list[tuple[float, float]]]] = {"exposed wait": {0: idle}}
    for task, span in sorted(schedule.spans.items(), key=lambda item: item[1]):
        if span.start == span.end:
            continue
        row = bars.setdefault(meaning(scenario, task), {}).setdefault(place[span.lane], [])
        row.append((span.start / unit, (span.end - span.start) / unit))
        if task.kind in ("gate_up", "down", "read") and (span.end - span.start) * 90 > longest:
            middle = (span.start + span.end) / 2 / unit
            ink = "white" if meaning(scenario, task) in _DARK else "#202124"
            axes.text(middle, place[span.lane], str(task.place), ha="center", va="center", fontsize=6, color=ink)
    edge = 0.4 if len(schedule.spans) < _MANY else 0.0
    for what, rows in bars.items():
        for height, spans in rows.items():
            if spans:
                axes.broken_barh(spans, (height - 0.4, 0.8), facecolor=COLOURS[what], edgecolor="white", linewidth=edge)
    axes.set_yticks(list(place.values()), ["compute" if lane == COMPUTE else f"worker {lane}" for lane in place])
    axes.set_ylim(len(place) - 0.5, -0.5)
    axes.spines[["top", "right"]].set_visible(False)
    return {what for what, rows in bars.items() if any(rows.values())}


def waits(schedule: Schedule) -> Iterator[tuple[int, int]]:
    """The stretches in which the compute queue idles before the makespan."""
    busy = union((span.start, span.end) for span in schedule.spans.values() if span.lane == COMPUTE)
    before = 0
    for start, end in busy:
        if before < start:
            yield before, start
        before = end
