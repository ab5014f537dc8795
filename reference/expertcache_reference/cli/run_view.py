"""What `expertcache run` shows while it decodes: a live view on stderr, where that is a terminal."""

from __future__ import annotations

import sys
from types import TracebackType

import attrs
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from expertcache_reference.cli.console import rate
from expertcache_reference.cli.failures import printable
from expertcache_reference.runtime import Report
from expertcache_reference.tinymoe import Step
from expertcache_spec.model import format_size

_TAIL = 600
"""Characters of the text that the live view shows."""


@attrs.frozen
class Shown:
    """A moment of a run.

    prompt, tokens: bytes of the prompt, bytes wanted. text: bytes decoded. elapsed: nanoseconds since the start.
    prefill: nanoseconds until the prompt was read.
    """

    prompt: int
    tokens: int
    report: Report
    text: bytes = b""
    elapsed: int = 0
    prefill: int = 0

    def after(self, step: Step, report: Report, elapsed: int) -> Shown:
        """The moment after one more pass."""
        text = self.text if step.chosen is None else self.text + bytes([step.chosen])
        prefill = elapsed if step.phase == "prefill" else self.prefill
        return attrs.evolve(self, report=report, text=text, elapsed=elapsed, prefill=prefill)

    @property
    def speed(self) -> float | None:
        """Decode passes a second; None before the first."""
        decoding = self.elapsed - self.prefill
        return (len(self.text) - 1) * 1e9 / decoding if decoding > 0 else None


def text_of(text: bytes) -> str:
    """The bytes as text; what is no UTF-8 becomes a replacement character."""
    return text.decode("utf-8", "replace")


def safe(text: bytes) -> str:
    """The text line by line, with what a terminal would act on escaped."""
    return "\n".join(map(printable, text_of(text).split("\n")))


class View:
    """The live view; nothing where stderr is no terminal."""

    def __init__(self, shown: Shown) -> None:
        console = Console(stderr=True)
        self._live = Live(_drawn(shown), console=console, transient=True, refresh_per_second=8, auto_refresh=False)
        self._on = sys.stderr.isatty()
        self._drawn_at = 0

    def __enter__(self) -> View:
        if self._on:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:  # fmt: skip
        if self._on:
            self._live.stop()

    def show(self, shown: Shown) -> None:
        """Draw it, at most eight times a second."""
        if self._on and shown.elapsed - self._drawn_at >= 125_000_000:
            self._drawn_at = shown.elapsed
            self._live.update(_drawn(shown), refresh=True)


def _drawn(shown: Shown) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for _ in range(8):
        table.add_column(no_wrap=True)
    cells = [cell for name, value in _live_facts(shown) for cell in (Text(name, style="dim"), Text(value))]
    for start in range(0, len(cells), 8):
        table.add_row(*cells[start : start + 8])
    bar = Table.grid(expand=True)  # a bar alone does not end its line
    bar.add_row(ProgressBar(total=max(1, shown.tokens), completed=len(shown.text)))
    return Group(Panel(Text(safe(shown.text)[-_TAIL:]), title="tinymoe"), bar, table)


def _live_facts(shown: Shown) -> list[tuple[str, str]]:
    report = shown.report
    lookups = report.hits + report.misses + report.bypassed
    return [
        ("hits", f"{report.hits} of {lookups}"), ("hit rate", rate(report.hits, lookups)),
        ("misses", str(report.misses)), ("evictions", str(report.evictions)),
        ("read", format_size(report.application_bytes)), ("overlap", percent(report.overlap)),
        ("tokens/s", "-" if shown.speed is None else f"{shown.speed:.1f}"),
        ("decoded", f"{len(shown.text)} of {shown.tokens}"),
    ]  # fmt: skip


def percent(share: float | None) -> str:
    """A share in words; a dash where there is none."""
    return "-" if share is None else f"{100 * share:.1f} %"
