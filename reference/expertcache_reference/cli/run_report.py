"""What `expertcache run` says at the end: the text, what it took, and what the verification found."""

from __future__ import annotations

from typing import Any

import attrs
import typer

from expertcache_reference.cli.console import count, print_json, rate
from expertcache_reference.cli.run_view import Shown, percent, safe, text_of
from expertcache_reference.runtime import Report
from expertcache_reference.tinymoe import Compared


def as_dict(shown: Shown, facts: dict[str, Any], compared: Compared | None) -> dict[str, Any]:
    """All of it as plain data; times in nanoseconds."""
    return {
        "text": text_of(shown.text), "prompt_bytes": shown.prompt, "decoded_bytes": len(shown.text),
        "elapsed": shown.elapsed, "prefill": shown.prefill, **facts, "report": attrs.asdict(shown.report),
        "verified": None if compared is None else compared._asdict(),
    }  # fmt: skip


def say(shown: Shown, facts: dict[str, Any], compared: Compared | None, *, as_json: bool) -> None:
    """Print it on stdout."""
    if as_json:
        print_json(as_dict(shown, facts, compared))
        return
    typer.echo(safe(shown.text) + "\n")
    for name, value in _lines(shown, facts, compared):
        typer.echo(f"{name:<9} {value}")


def _lines(shown: Shown, facts: dict[str, Any], compared: Compared | None) -> list[tuple[str, str]]:
    speed = "-" if shown.speed is None else f"{shown.speed:.1f}"
    budget = " and ".join(f"{value} {name}" for name, value in facts["budget"].items() if value is not None)
    lines = [
        ("weights", facts["weights"]),
        ("cache", f"{facts['policy']}, budget {budget}, {facts['discipline']}, {facts['way']}, {facts['compute']}"),
        ("prompt", f"{count(shown.prompt, 'byte')} in {_milliseconds(shown.prefill)}"),
        ("decoded", f"{count(len(shown.text), 'byte')}, {speed} a second"),
        *_read(shown.report),
        *_prefetched(facts["prefetch"]),
    ]
    if compared is not None:
        same = "all bit-identical"
        if compared.first is not None:
            same = f"{compared.differ} DIFFER, the first in pass {compared.first}"
        lines.append(("verified", f"{compared.logits} logits against the same model all in memory: {same}"))
    return lines


def _prefetched(told: dict[str, Any] | None) -> list[tuple[str, str]]:
    if told is None:
        return []
    counts = ", ".join(f"{name} {number}" for name, number in told["counts"].items() if number)
    return [("prefetch", f"{told['predictor']}, {counts or 'nothing'}")]


def _read(report: Report) -> list[tuple[str, str]]:
    lookups = report.hits + report.misses + report.bypassed
    physical = "unknown" if report.device_bytes is None else f"{report.device_bytes} bytes"
    return [
        ("lookups", f"{lookups}: {report.hits} hits ({rate(report.hits, lookups)}), {report.misses} misses, "
                    f"{report.bypassed} bypassed, {report.evictions} evictions"),
        ("read", f"{report.application_bytes} bytes in {count(report.requests, 'request')}, "
                 f"from the device {physical}"),
        ("time", f"reading {_milliseconds(report.read_wall)}, waited for bytes {_milliseconds(report.exposed)}, "
                 f"overlap {percent(report.overlap)}"),
        ("memory", f"{report.peak_slots} bytes of slots at most"),
    ]  # fmt: skip


def _milliseconds(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.1f} ms"
