"""BigMoeOnEdge route trace v1, the meaning: cells into calls, calls into passes, and what the engine's cache did.

One call of the engine is all rows of one layer in one forward pass. Prefill is layer-major: the rows of a prompt (or
of one chunk of it) stand together under each layer, and the last layer routes the last token only. Decode is
token-major: one step is one pass. A turn is a stream, a step a position. The engine looks each distinct expert of a
call up once: later rows copy the first row's residency and read nothing. A selection that the engine dropped was
never asked of the cache and is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from expertcache_reference.traces.bigmoe_rows import Row, cells, columns, preamble, rows
from expertcache_reference.traces.errors import At, checked
from expertcache_reference.traces.lines import Lines
from expertcache_reference.traces.reading import Reading
from expertcache_spec.errors import InvalidTrace
from expertcache_spec.model import Geometry
from expertcache_spec.trace import Event, Phase, Recorded
from expertcache_spec.traceformat import Header

MAX_SELECTIONS = 1 << 20
"""Most selections of one call: a prompt of 131,072 tokens at top-8."""

_PHASES: tuple[Phase, Phase] = ("prefill", "decode")
_CURE = "rows are lost, doubled or reordered: capture again, the whole prompt in one batch"

Call = list[list[Row]]


def read(lines: Lines, *, drop_weights: bool = False) -> Reading:
    """Header and events of the file; raises `InvalidTrace` at the first row that breaks a rule."""
    facts = preamble(lines)
    model = facts.model.replace("\\", "/").rsplit("/", 1)[-1]
    about = {"recorded by": "BigMoeOnEdge, route trace v1", "model": model, "architecture": facts.arch}
    header = Header(facts.geometry, model.removesuffix(".gguf") or "trace", about)
    found = rows(lines, columns(lines), drop_weights=drop_weights)
    reading = Reading(header, iter(()))
    drafts = _Passes(lines.name, facts.geometry, reading.notes)
    calls_ = calls(cells(found, lines.name, facts.geometry), lines.name)
    reading.events = checked(map(drafts.event, calls_), facts.geometry, lines.name)
    return reading


def calls(found: Iterable[list[Row]], name: str) -> Iterator[Call]:
    """The cells of each call; steps inside one rise by 1."""
    call: Call = []
    for cell in found:
        row, last = cell[0], call[-1][0] if call else None
        if last is not None and _call_of(row) != _call_of(last):
            yield call
            call, last = [], None
        if last is not None and row.step != last.step + 1:
            raise InvalidTrace(f"step {row.step} after {last.step}", where=f"{name}:{row.line}", cure=_CURE)
        call.append(cell)
        if len(cell) * len(call) > MAX_SELECTIONS:
            raise InvalidTrace(
                f"more than {MAX_SELECTIONS} selections in one call",
                where=f"{name}:{row.line}",
                cure="is this a trace?",
            )
    if call:
        yield call


def _call_of(row: Row) -> tuple[int, int, int, int]:
    return row.turn, row.phase, row.layer, row.step if row.phase else -1


@attrs.define
class _Passes:
    """Numbers the passes of each turn and checks that their steps follow each other."""

    name: str
    geometry: Geometry
    notes: list[str]
    turn: int = -1
    phase: int = 0
    number: int = -1
    steps: tuple[int, ...] = ()

    def event(self, call: Call) -> tuple[str, Event]:
        """The place and the event of a call."""
        place = f"{self.name}:{call[0][0].line}-{call[-1][-1].line}"
        with At(place):
            self._advance(call)
            return place, self._event(call)

    def _advance(self, call: Call) -> None:
        first, steps = call[0][0], tuple(cell[0].step for cell in call)
        if first.turn < self.turn:
            raise InvalidTrace(f"turn {first.turn} after turn {self.turn}", cure="two captures in one file? split them")
        if first.turn > self.turn:
            self.turn, self.phase, self.number, self.steps = first.turn, first.phase, -1, ()
        if first.layer == self.geometry.routed[0]:
            last = self.steps[-1] if self.steps else steps[0] - 1
            if first.phase < self.phase or steps[0] != last + 1:
                raise InvalidTrace(
                    f"{_PHASES[first.phase]} step {steps[0]} after {_PHASES[self.phase]} step {last}", cure=_CURE
                )
            self.phase, self.number, self.steps = first.phase, self.number + 1, steps
        short = first.phase == 0 and first.layer == self.geometry.routed[-1] and steps == self.steps[-1:]
        if not short and steps != self.steps:
            raise InvalidTrace(
                f"layer {first.layer} has steps {_span(steps)}, this pass {_span(self.steps)}", cure=_CURE
            )

    def _event(self, call: Call) -> Event:
        first, kept = call[0][0], [[row for row in cell if not row.dropped] for cell in call]
        if any(len(row) < len(cell) for row, cell in zip(kept, call, strict=True)) and not self.notes:
            self.notes.append("selections that the engine dropped are left out: rows may be shorter than top_k")
        weights = tuple(tuple(row.weight for row in cell if row.weight is not None) for cell in kept)
        return Event(
            first.layer,
            tuple(tuple(row.expert for row in cell) for cell in kept),
            first.turn,
            max(self.number, 0),
            _PHASES[first.phase],
            weights=None if first.weight is None else weights,
            positions=tuple(cell[0].step for cell in call),
            recorded=_recorded(kept, self.geometry),
        )


def _recorded(kept: Call, geometry: Geometry) -> Recorded:
    """Residency and bytes of each distinct expert of the call, by its first row."""
    seen: dict[int, Row] = {}
    for row in (row for cell in kept for row in cell):
        first = seen.setdefault(row.expert, row)
        size = geometry.size(row.layer)
        wanted = size if first is row and not row.residency else 0
        if row.read != wanted or row.residency != first.residency:
            raise InvalidTrace(
                f"expert {row.expert} in line {row.line}: residency {row.residency} and {row.read} bytes, "
                f"where {first.residency} and {wanted} follow from line {first.line} and the preamble",
                cure="the first row of a miss reads one record of the preamble's size, later rows copy its residency "
                "and read 0 bytes",
            )
    return Recorded(tuple(row.residency != 0 for row in seen.values()), tuple(row.read for row in seen.values()))


def _span(steps: tuple[int, ...]) -> str:
    return f"{steps[0]} to {steps[-1]}" if steps else "none"
