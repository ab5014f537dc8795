"""Gantt charts: one panel for each schedule, over one time axis; PNG or SVG, through matplotlib (extra `plot`)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import import_module
from io import BytesIO
from math import ceil
from typing import Any, ClassVar, NamedTuple

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
_HIGHEST, _LOWEST_ROW = 60.0, 0.03
"""Inches of a page that is not made higher while lanes can be made lower, and of the lowest lane."""
_LABEL = 0.16
"""Inches that a lane's name and a number in a bar need."""
_EDGE, _THINNEST = 0.4, 0.04
"""Points of the white edge between bars, and of that between the narrowest."""
_TITLE = 200
"""Characters of a title; what is longer is cut."""


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
    plain = {"svg.hashsalt": "expertcache", "font.size": 8, "text.parse_math": False}  # a name is no formula
    with matplotlib.rc_context(plain), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+")  # what the font lacks is drawn as a box
        figure = _figure(figures, drawn, title)
        buffer = BytesIO()
        metadata: dict[str, Any] = {"Date": None} if form == "svg" else {"Software": None}
        figure.savefig(buffer, format=form, dpi=130, metadata=metadata)
    return buffer.getvalue()


def shown(text: str) -> str:
    """The text in one line without what no picture can hold: control characters are escaped, what is endless is cut."""
    printed = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:_TITLE])
    return printed + ("..." if len(text) > _TITLE else "")


def _figure(figures: Any, drawn: Drawn, title: str) -> Any:
    rows = [len(_lanes(schedule)) for _, schedule in drawn.values()]
    row = min(_ROW, max(_LOWEST_ROW, (_HIGHEST - _FOOT - _HEAD * len(rows)) / sum(rows)))
    heights = [row * count + _HEAD for count in rows]
    figure = figures.Figure(figsize=(_WIDTH, sum(heights) + _FOOT), layout="constrained")
    panels = figure.subplots(len(drawn), 1, sharex=True, squeeze=False, height_ratios=heights)
    longest = max(1, *(span.end for _, schedule in drawn.values() for span in schedule.spans.values()))
    unit, name = (1_000_000, "ms") if longest >= 10_000_000 else (1_000, "µs")
    used: set[str] = set()
    for (axes,), (label, (scenario, schedule)) in zip(panels, drawn.items(), strict=True):
        used |= _panel(axes, scenario, schedule, Scale(unit, longest - _from(drawn, longest), row))
        axes.set_title(f"{shown(label)}    {_said(breakdown(schedule), unit, name)}", loc="left", fontsize=8)
    panels[-1][0].set_xlabel(name)
    panels[-1][0].set_xlim(_from(drawn, longest) / unit, longest / unit)
    figure.suptitle(shown(title), fontsize=10, x=0.01, ha="left")
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


class Scale(NamedTuple):
    """Nanoseconds of the unit that is written, nanoseconds from edge to edge, inches of a lane."""

    unit: int
    width: int
    row: float

    def edge(self, length: int) -> float:
        """Points of the edge of a bar: narrow bars keep one that leaves most of them to see."""
        points = length / self.width * _WIDTH * 72
        return min(_EDGE, max(_THINNEST, points / 8))

    def has_room(self, length: int) -> bool:
        """Whether a number can be written in a bar."""
        return length * 90 > self.width and self.row >= _LABEL


def _panel(axes: Any, scenario: Scenario, schedule: Schedule, scale: Scale) -> set[str]:
    """Draw one schedule; what colours it used."""
    lanes = _lanes(schedule)
    place = {lane: row for row, lane in enumerate(lanes)}
    bars: dict[tuple[str, int], list[tuple[int, int]]] = {}
    if idle := [(start, end - start) for start, end in waits(schedule)]:
        bars["exposed wait", 0] = idle
    for task, span in sorted(schedule.spans.items(), key=lambda item: item[1]):
        if span.start < span.end:
            bar = (span.start, span.end - span.start)
            bars.setdefault((meaning(scenario, task), place[span.lane]), []).append(bar)
            if task.kind in ("gate_up", "down", "read") and scale.has_room(span.end - span.start):
                _number(axes, (span.start + span.end) / 2 / scale.unit, place[span.lane], task, scenario)
    for (what, row), spans in bars.items():
        drawn = [(start / scale.unit, length / scale.unit) for start, length in spans]
        edges = [scale.edge(length) for _, length in spans]
        axes.broken_barh(drawn, (row - 0.4, 0.8), facecolor=COLOURS[what], edgecolor="white", linewidths=edges)
    named = lanes[:: max(1, ceil(_LABEL / scale.row))]
    axes.set_yticks([place[n] for n in named], ["compute" if n == COMPUTE else f"worker {n}" for n in named])
    axes.set_ylim(len(place) - 0.5, -0.5)
    axes.spines[["top", "right"]].set_visible(False)
    return {what for what, _ in bars}


def _number(axes: Any, middle: float, row: int, task: TaskId, scenario: Scenario) -> None:
    ink = "white" if meaning(scenario, task) in _DARK else "#202124"
    axes.text(middle, row, str(task.place), ha="center", va="center", fontsize=6, color=ink)


def waits(schedule: Schedule) -> Iterator[tuple[int, int]]:
    """The stretches in which the compute queue idles before the makespan."""
    busy = union((span.start, span.end) for span in schedule.spans.values() if span.lane == COMPUTE)
    before = 0
    for start, end in busy:
        if before < start:
            yield before, start
        before = end
    if before < schedule.makespan:  # what follows the last wait takes no time
        yield before, schedule.makespan
