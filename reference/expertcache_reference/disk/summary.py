"""What may be said of a sweep: rates with their evidence, and whether a claimed rate can have come from the device."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import median_low
from typing import Literal, NamedTuple

from expertcache_reference.disk.evidence import Condition, Evidence
from expertcache_reference.disk.places import CannotMeasure
from expertcache_reference.disk.sweep import Point
from expertcache_spec.model import parse_size
from expertcache_spec.pagecache import Temperature

Verdict = Literal["unknown", "possible", "warm"]


class Line(NamedTuple):
    """All rounds of one point. `nanoseconds` is the median round's; `state` is mixed where rounds differ.

    `evidence` is summed over the rounds, None where one of them did not know.
    """

    condition: Condition
    chunks: int
    workers: int
    records: int
    nanoseconds: int
    fastest: int
    bytes: int
    evidence: Evidence
    state: Temperature

    @property
    def rate(self) -> float:
        """Bytes a second, of the median round."""
        return self.bytes * 1e9 / self.nanoseconds if self.nanoseconds else float("inf")

    @property
    def best(self) -> float:
        """Bytes a second, of the fastest round."""
        return self.bytes * 1e9 / self.fastest if self.fastest else float("inf")


class Claim(NamedTuple):
    """So many bytes in so many seconds, measured elsewhere."""

    bytes: int
    seconds: float


def read_claim(text: str) -> Claim:
    """`94.67GiB/4.97s`: bytes to the nearest one, and seconds. Raises `CannotMeasure`, `InvalidBudget`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*/\s*(\d+(?:\.\d+)?)\s*s?\s*", text)
    if not match or not float(match[3]):
        raise CannotMeasure(f"no claim {text!r}", where="claim", cure="write bytes and seconds, like 94.67GiB/4.97s")
    return Claim(round(float(match[1]) * parse_size(f"1{match[2]}").bytes), float(match[3]))


def summary(points: Iterable[Point]) -> list[Line]:
    """One line a point, in the order of condition, chunks and workers."""

    def key(point: Point) -> tuple[Condition, int, int]:
        return point.condition, point.chunks, point.workers

    return [_line(*where, list(rounds)) for where, rounds in groupby(sorted(points, key=key), key)]


def _sum(numbers: Iterable[int | None]) -> int | None:
    found = list(numbers)
    return None if None in found else sum(each for each in found if each is not None)


def _line(condition: Condition, chunks: int, workers: int, rounds: Sequence[Point]) -> Line:
    seen = [point.evidence for point in rounds]
    total = Evidence(
        sum(each.application for each in seen), _sum(each.physical for each in seen),
        _sum(each.resident for each in seen), _sum(each.witness for each in seen),
    )  # fmt: skip
    states, times = {each.state for each in seen}, [point.nanoseconds for point in rounds]
    state = seen[0].state if len(states) == 1 else "unknown" if "unknown" in states else "mixed"
    return Line(
        condition, chunks, workers, rounds[0].records, median_low(times), min(times), seen[0].application, total, state
    )


def verdict(lines: Sequence[Line], claim: Claim) -> tuple[Verdict, str]:
    """Whether reads at the claimed rate can all have come from the device that was measured, and why.

    Only runs that are cold by evidence say what the device can; a tenth is allowed for what a run's luck gives.
    """
    rate, cold = claim.bytes / claim.seconds, [line.best for line in lines if line.state == "cold"]
    said = f"{rate / 1e9:.3g} GB/s"
    if not cold:
        return "unknown", f"{said}: no run here is cold by evidence, so nothing says what the device can"
    fastest = max(cold)
    if rate > 1.1 * fastest:
        times = f"{said} is {rate / fastest:.1f} times the fastest cold run, {fastest / 1e9:.2f} GB/s"
        return "warm", f"{times}: on this disk such reads are warm, at least in part"
    return "possible", f"{said} is no more than the fastest cold run, {fastest / 1e9:.2f} GB/s, allows"
