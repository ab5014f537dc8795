"""Lossy modes in a replay: opt-in, decode only, counted, and marked in every result."""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress
from typing import Any, ClassVar, Literal, get_args

import attrs

from expertcache_spec.errors import ExpertCacheError, InvalidTrace, UnknownName
from expertcache_spec.misses import decisions
from expertcache_spec.model import Geometry, Key
from expertcache_spec.trace import Event

Mode = Literal["fetch", "drop-weight", "drop-rank", "substitute", "lower-precision", "reroute", "fewer"]
Delta = Literal["mean", "range", "own_range"]


class ChangesTrace(ExpertCacheError):
    """An open-loop replay of a mode that would have changed the trace it replays."""

    code: ClassVar[str] = "changes-trace"


@attrs.frozen(slots=False)
class Misses:
    """What is done about misses; `replay` takes it.

    mode: `fetch` reads every miss; the others lose something. factor: of `drop-weight`, absent experts below factor / k
    are dropped. rank: of `drop-rank`, the first rank, counted from 1, that may be dropped. tolerance: of `substitute`,
    in units of score. high, low: of `lower-precision`, the weight before an expert up to which it is read in full, and
    in low precision. bits, low_bits: of its records. bias, delta: of `reroute`, what residents gain: bias times the
    running mean of mean scores (`mean`) or of score ranges (`range`), or the token's own range. k: of `fewer`.
    open_loop: run `reroute` all the same, and mark the result invalid.

    Raises `UnknownName` for a value that does not exist, `ChangesTrace` for `reroute` without `open_loop`.
    """

    mode: Mode = "fetch"
    factor: float = 0.5
    rank: int = 3
    tolerance: float = 0.0
    high: float = 0.6
    low: float = 0.9
    bits: int = 4
    low_bits: int = 2
    bias: float = 0.3
    delta: Delta = "range"
    k: int = 1
    open_loop: bool = False

    def __attrs_post_init__(self) -> None:
        for name, known in (("mode", get_args(Mode)), ("delta", get_args(Delta))):
            if getattr(self, name) not in known:
                raise UnknownName(f"{name} {getattr(self, name)!r}", where="misses", cure=f"one of {', '.join(known)}")
        for name in ("factor", "tolerance", "high", "low", "bias"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 <= value < 1e9:
                raise UnknownName(f"{name} = {value!r}", where="misses", cure="a number from 0")
        for name in ("rank", "bits", "low_bits", "k"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise UnknownName(f"{name} = {value!r}", where="misses", cure="a whole number from 1")
        if self.low_bits > self.bits or self.high > self.low:
            raise UnknownName("low precision above the full one", where="misses", cure="low_bits <= bits, high <= low")
        if self.mode == "reroute" and not self.open_loop:
            raise ChangesTrace(
                "rerouting changes what later events ask for, and a replay asks for what the trace says",
                where="misses",
                cure="measure it on a model, or set open_loop for a result that is marked invalid",
            )

    @property
    def is_lossy(self) -> bool:
        """Whether the model's output may differ."""
        return self.mode != "fetch"

    def described(self) -> dict[str, Any]:
        """Everything that the result depends on, as plain data for the manifest (XC-MISS-001)."""
        return {"lossy": self.is_lossy, "valid": self.mode != "reroute", **attrs.asdict(self)}

    def warnings(self) -> list[str]:
        """What every report says of a lossy result (XC-MISS-001, XC-MISS-010)."""
        if not self.is_lossy:
            return []
        found = [f"LOSSY: misses {self.mode}: the model's output differs; later routing is the trace's all the same"]
        return [*found, "INVALID: an open-loop replay of rerouting"] if self.mode == "reroute" else found


@attrs.define
class Losses:
    """What a lossy mode did; whole numbers, weights in millionths.

    events: that were changed. dropped: lookups not served with the expert's own record. substituted: lookups of other
    experts instead. degraded: dropped lookups that a low-precision record served. degraded_bytes: read for them.
    weight: of all selections with a weight. weight_lost: of those dropped and not degraded.
    """

    events: int = 0
    dropped: int = 0
    substituted: int = 0
    degraded: int = 0
    degraded_bytes: int = 0
    weight: int = 0
    weight_lost: int = 0


def millionths(weight: float) -> int:
    """A weight as a whole number."""
    return round(weight * 1_000_000)


@attrs.define
class Lossy:
    """One lossy mode at work on one replay; `apply` says what is asked for instead of an event."""

    misses: Misses
    geometry: Geometry
    losses: Losses = attrs.field(factory=Losses)
    tokens: int = 0
    spreads: float = 0.0

    def apply(self, event: Event, there: Callable[[Key], bool]) -> tuple[Event, list[Key]]:
        """The event to serve, and the keys of `event` that it does not ask for; `there` says what need not be read.

        Raises `InvalidTrace` where the trace lacks the weights or scores that the mode decides by.
        """
        mode = self.misses.mode
        if mode == "fetch" or (event.phase != "decode" and mode != "fewer"):
            return event, []
        if mode in ("substitute", "reroute"):
            rows = [self._chosen(event, number, there) for number in range(len(event.rows))]
            served = attrs.evolve(event, rows=tuple(map(tuple, rows)), recorded=None)
        else:
            serves = self._serves(event, there)
            cut = [list(compress(row, kept)) for row, kept in zip(event.rows, serves, strict=True)]
            weights = event.weights and tuple(map(decisions.renormalised, event.weights, serves))
            served = attrs.evolve(event, rows=tuple(map(tuple, cut)), weights=weights, recorded=None)
        return self._counted(event, served)

    def _chosen(self, event: Event, number: int, there: Callable[[Key], bool]) -> list[int]:
        row, scores = event.rows[number], self._need(event, "scores")[number]
        resident = {expert for expert in range(self.geometry.experts) if there(Key(event.layer, expert))}
        if self.misses.mode == "substitute":
            absent = [expert not in resident for expert in row]
            best = self._top(event, number)
            return decisions.substituted(row, absent, scores, resident, self.misses.tolerance, best)
        own = decisions.spread(scores, self.misses.delta)
        self.tokens, self.spreads = self.tokens + 1, self.spreads + own
        delta = own if self.misses.delta == "own_range" else self.spreads / self.tokens
        return decisions.rerouted(scores, resident, len(row), self.misses.bias * delta)

    def _top(self, event: Event, number: int) -> int:
        """The place in that row of the expert that is never given up."""
        return decisions.top(event.weights[number] if event.weights else None)

    def _serves(self, event: Event, there: Callable[[Key], bool]) -> list[list[bool]]:
        asked, found = self.misses, list[list[bool]]()
        for number, row in enumerate(event.rows):
            best = self._top(event, number)
            if asked.mode == "fewer":
                found.append(decisions.fewer(row, asked.k, best))
                continue
            absent = [not there(Key(event.layer, expert)) for expert in row]
            if asked.mode == "drop-rank":
                may = decisions.late_ranked(len(row), asked.rank, best)
            elif asked.mode == "drop-weight":
                may = decisions.light(self._need(event, "weights")[number], asked.factor)
            else:
                may = [precision != "high" for precision in self._precisions(event)[number]]
            found.append(decisions.kept(absent, may))
        if len(found) > 1 and asked.mode != "fewer":  # a record that any token needs is read, and then serves all
            needed = {expert for row, kept in zip(event.rows, found, strict=True) for expert in compress(row, kept)}
            found = [[expert in needed for expert in row] for row in event.rows]
        return found

    def _precisions(self, event: Event) -> list[list[decisions.Precision]]:
        weights = self._need(event, "weights")
        return [decisions.precisions(each, self.misses.high, self.misses.low) for each in weights]

    def _need(self, event: Event, name: Literal["weights", "scores"]) -> tuple[tuple[float, ...], ...]:
        found = event.weights if name == "weights" else event.scores
        if found is None:
            raise InvalidTrace(
                f"no {name}, by which misses {self.misses.mode} decides",
                where=f"stream {event.stream} pass {event.pass_index} layer {event.layer}",
                cure=f"use a trace with {name}, or another mode",
            )
        return found

    def _counted(self, event: Event, served: Event) -> tuple[Event, list[Key]]:
        losses = self.losses
        lost = [key for key in event.keys if key not in served.keys]
        low = self._low(event, lost) if self.misses.mode == "lower-precision" else set[int]()
        losses.events += served.rows != event.rows
        losses.dropped += len(lost)
        losses.degraded += len(low)
        losses.substituted += sum(key not in event.keys for key in served.keys)
        for row, weights, now in zip(event.rows, event.weights or (), served.rows, strict=False):
            losses.weight += sum(map(millionths, weights))
            gone = [w for expert, w in zip(row, weights, strict=True) if expert not in now and expert not in low]
            losses.weight_lost += sum(map(millionths, gone))
        return served, lost

    def _low(self, event: Event, lost: list[Key]) -> set[int]:
        """The lost experts that a low-precision record serves; one that any token wants so is read so, once."""
        wanted = self._precisions(event)
        low = {
            expert
            for row, found in zip(event.rows, wanted, strict=True)
            for expert, precision in zip(row, found, strict=True)
            if precision == "low"
        } & {key.expert for key in lost}
        size = 0 if self.geometry.record_bytes is None else self.geometry.size(event.layer)
        self.losses.degraded_bytes += len(low) * decisions.low_bytes(size, self.misses.bits, self.misses.low_bits)
        return low
