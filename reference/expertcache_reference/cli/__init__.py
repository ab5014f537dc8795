"""The command line's entry: from its first moment on, whatever ends the program ends it in one line at most.

Exit codes: 0 well, 1 a bad trace or store, a mismatch with a recording or an illegal log, 2 usage, configuration or an
output that cannot be written, 3 a log that cannot be judged in full; 130 interrupted, 143 terminated, 141 a pipe that
its reader closed. Nothing but the standard library is imported before the handlers stand: the commands and what they
need take longer to import than a user takes to think better of it.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TextIO

CANNOT_WRITE = 2
BROKEN_PIPE = 128 + 13  # as a shell shows the end by SIGPIPE
SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class Ended(SystemExit):
    """An end that comes from outside, with what to say of it; it unwinds, so that nothing half-written stays."""

    def __init__(self, code: int, said: str = "") -> None:
        super().__init__(code)
        self.said = said


class Output(io.TextIOWrapper):
    """A standard stream that cannot be lost unnoticed: what it fails to write ends the program."""

    def write(self, text: str) -> int:
        """As the stream does; raises `Ended`."""
        with self._ending():
            return super().write(text)

    def flush(self) -> None:
        """As the stream does; raises `Ended`."""
        with self._ending():
            super().flush()

    @contextlib.contextmanager
    def _ending(self) -> Any:
        try:
            yield
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())  # or the interpreter says it all again at its end
            if isinstance(error, BrokenPipeError):
                raise Ended(BROKEN_PIPE) from None
            name = self.name.strip("<>")
            cure = "make room, or send the output elsewhere"
            raise Ended(CANNOT_WRITE, f"cannot write to {name}: {error.strerror}. Cure: {cure}") from None


def main() -> NoReturn:
    """The console script, and `python -m expertcache_reference.cli`."""
    try:
        try:
            for number in SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                    signal.signal(number, _end)
            _take_streams()
            from expertcache_reference.cli.commands import app

            app()
        finally:
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)  # it has ended already
    except Ended as end:
        _say(end)
        sys.exit(end.code)
    sys.exit(0)


def _end(number: int, _: FrameType | None) -> NoReturn:
    raise Ended(128 + number, f"{SIGNALS[signal.Signals(number)]}; nothing half-written is left")


def _take_streams() -> None:
    """Put an `Output` in the place of stdout and stderr; raises `Ended` where stdout is closed."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  and takes its descriptor, which the next file would
    else:
        sys.stderr = _output(sys.stderr, by_line=True)
    if sys.stdout is None:
        raise Ended(CANNOT_WRITE, "stdout is closed. Cure: leave it open, or send it to a file")
    sys.stdout = _output(sys.stdout, by_line=sys.stdout.isatty())


def _output(stream: TextIO, *, by_line: bool) -> TextIO:
    return Output(stream.buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=by_line)


def _say(end: Ended) -> None:
    """One line on stderr, if there is something to say and stderr takes it."""
    with contextlib.suppress(Ended):
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h")  # a progress bar may have been interrupted before it showed the cursor again
        if end.said:
            print(f"expertcache: {end.said}", file=sys.stderr)
        sys.stderr.flush()


__all__ = ["Ended", "Output", "main"]
