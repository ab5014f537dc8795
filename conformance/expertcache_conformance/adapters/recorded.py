"""A recorded event log as the subject: `--impl log:run.jsonl`, plain or gzip. What it says is what was done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import attrs

from expertcache_conformance.adapters.loading import CannotLoad, Implementation
from expertcache_conformance.adapters.protocol import Profile
from expertcache_spec.history import Header, InvalidLog, Verdict, check, read_log
from expertcache_spec.history.reading import Line, split_lines
from expertcache_spec.history.unpacking import unpacked

PREFIX = "log:"


@attrs.frozen(slots=False, eq=False)
class RecordedLog:
    """What stands where an implementation's module would: a file that is read anew for each question.

    header: what the log declares. `verdict` is the history checker's, `counts` how many lines of each operation it
    took; a log that cannot be read to its end breaks XC-HIST-002.
    """

    path: Path
    header: Header

    @cached_property
    def judged(self) -> tuple[Verdict, Counter[str]]:
        """The verdict on the whole log, and the lines of each operation that were taken."""
        counts: Counter[str] = Counter()

        def watch(lines: Iterable[Line]) -> Iterator[Line]:
            for line, record in lines:
                counts[record["op"]] += 1
                yield line, record

        try:
            return check(self.header, self.lines(), watch), counts
        except InvalidLog as error:
            what = f"{error.what}; {error.cure}"
            number = error.where.rpartition(":")[2]
            line = int(number) if number.isdigit() else counts.total() + 2
            return Verdict("illegal", counts.total(), line, "XC-HIST-002", what, (line,)), counts

    def lines(self) -> Iterator[Line]:
        """The lines after the header; raises `InvalidLog` where one cannot be read."""
        with self.path.open("rb") as file:
            yield from read_log(unpacked(file.read, self.path.name), self.path.name)[1]

    def quoted(self, numbers: Iterable[int], longest: int = 200) -> dict[int, str]:
        """Those lines as they stand in the file, long ones cut."""
        wanted = set(numbers)
        found = dict[int, str]()
        with suppress(InvalidLog), self.path.open("rb") as file:  # what cannot be read cannot be shown
            for number, raw in enumerate(split_lines(unpacked(file.read, self.path.name), self.path.name), 1):
                if number in wanted:
                    found[number] = raw[:longest].decode(errors="replace")
                if number >= max(wanted, default=0):
                    break
        return found


def load_log(spelled: str, folder: Path | None = None) -> Implementation:
    """The log of `log:PATH`; raises `CannotLoad` where there is none, or its header is none."""
    path = (folder or Path()) / spelled.removeprefix(PREFIX)
    try:
        with path.open("rb") as file:
            header = read_log(unpacked(file.read, path.name), path.name)[0]
    except OSError as error:
        raise CannotLoad(f"cannot open {path}: {error.strerror or error}; name an event log, plain or gzip") from error
    except InvalidLog as error:
        raise CannotLoad(str(error)) from error
    claim = "no policy" if header.policy is None else header.policy
    profile = Profile(path.name, capabilities=(f"log of {claim}",))
    return Implementation(spelled, profile, RecordedLog(path, header))
