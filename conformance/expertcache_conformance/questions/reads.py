"""Questions about reads: which requests fetch records, and the window of a direct read. Some of it is free."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import attrs

from expertcache_conformance.questions.base import Question, Wrong, call, rows
from expertcache_conformance.questions.layouts import LayoutQuestion
from expertcache_spec.layout import Extent, Layout, reads_of, resident_prefix, window
from expertcache_spec.model import Key


def _meet(one: Extent, other: Extent) -> bool:
    return one.file == other.file and one.offset < other.end and other.offset < one.end


@attrs.frozen
class ReadsQuestion(Question):
    """The requests that fetch some records of a declared layout, of which the first `resident` layers are resident."""

    kind: ClassVar[str] = "reads"
    where: LayoutQuestion
    keys: tuple[Key, ...]
    resident: int = 0

    @property
    def layout(self) -> Layout:
        """The layout with its resident layers."""
        declared = self.where.declared()
        assert declared is not None
        return resident_prefix(declared, self.resident)

    @property
    def size(self) -> tuple[int, ...]:
        """Records asked for, then those that there are."""
        return len(self.keys), self.resident, sum(map(sum, self.keys)), *self.where.size

    def ask(self, target: Any) -> list[Extent]:
        """The requests."""
        request = attrs.evolve(self.where.request(), resident=self.resident)
        return [Extent(*row) for row in rows("plan_reads", call(target, "plan_reads", request, list(self.keys)), "snn")]

    def judge(self, answer: list[Extent]) -> Wrong | None:
        """Every wanted extent in exactly one request, and no request that is for a resident record alone.

        Which extents share a request, and what is read between them, is free.
        """
        layout = self.layout
        wanted = [e for key in self.keys if key.layer not in layout.resident for e in layout.place(key)]
        for extent in wanted:
            holding = [read for read in answer if _meet(read, extent)]
            if len(holding) != 1 or holding[0].offset > extent.offset or holding[0].end < extent.end:
                note = f"{list(extent)} is not in exactly one request"
                return self._wrong("XC-LAYOUT-006", answer, note)
        kept = [e for key in layout.extents if key.layer in layout.resident for e in layout.place(key)]
        for read in answer:
            if any(_meet(read, e) for e in kept) and not any(_meet(read, e) for e in wanted):
                return self._wrong("XC-LAYOUT-010", answer, f"{list(read)} reads a resident record on demand")
        return None

    def _wrong(self, rule: str, answer: list[Extent], note: str) -> Wrong:
        expected = [list(read.extent) for read in reads_of(self.layout, self.keys)]
        return Wrong(rule, expected, [list(read) for read in answer], note)

    def smaller(self) -> Iterator[ReadsQuestion]:
        """Fewer records asked for, fewer resident layers, a smaller model."""
        for n in range(len(self.keys)):
            yield attrs.evolve(self, keys=self.keys[:n] + self.keys[n + 1 :])
        if self.resident:
            yield attrs.evolve(self, resident=self.resident - 1)
        for where in self.where.smaller():
            if all(key.layer < len(where.parts) and key.expert < where.experts for key in self.keys):
                yield attrs.evolve(self, where=where, resident=min(self.resident, len(where.parts)))

    def encode(self) -> dict[str, Any]:
        """Its fields; the layout is a question of its own."""
        return {"where": self.where.encode(), "keys": [list(key) for key in self.keys], "resident": self.resident}

    def __str__(self) -> str:
        keys = ", ".join(f"({key.layer},{key.expert})" for key in self.keys)
        resident = f", of which the first {self.resident} resident" if self.resident else ""
        return f"reads of {keys or 'nothing'} under {self.where}{resident}"


@attrs.frozen
class WindowQuestion(Question):
    """The window of a direct read: `offset`, `length` of the extent, the grain, and the bytes of the file."""

    kind: ClassVar[str] = "window"
    offset: int
    length: int
    grain: int
    file_size: int

    @property
    def size(self) -> tuple[int, ...]:
        """Its numbers."""
        return self.grain, self.offset, self.length, self.file_size

    def ask(self, target: Any) -> tuple[int, ...]:
        """Where the window begins, its length, and where the extent begins in it."""
        raw = call(target, "read_window", self.offset, self.length, self.grain, self.file_size)
        return rows("read_window", [raw], "nnn")[0]

    def judge(self, answer: tuple[int, ...]) -> Wrong | None:
        """Begin and end on the grain or with the file, and the extent in it; a larger window is free."""
        start, length, skipped = answer
        end = start + length
        note = ""
        if start < 0 or start % self.grain or (end % self.grain and end != self.file_size):
            note = "an end is not on the grain"
        elif end > self.file_size:
            note = "passes the end of the file"
        elif start > self.offset or end < self.offset + self.length:
            note = "does not hold the extent"
        elif skipped != self.offset - start:
            note = "delivers other bytes than the extent's"
        if not note:
            return None
        expected, at = window(Extent("file", self.offset, self.length), self.grain, self.file_size)
        return Wrong("XC-LAYOUT-008", [expected.offset, expected.length, at], list(answer), note)

    def smaller(self) -> Iterator[WindowQuestion]:
        """Smaller numbers."""
        for name in ("grain", "offset", "length", "file_size"):
            value = getattr(self, name)
            for less in {1, value // 2, value - 1}:
                found = attrs.evolve(self, **{name: less})
                if (
                    0 <= less < value
                    and found.grain
                    and found.length
                    and found.offset + found.length <= found.file_size
                ):
                    yield found

    def encode(self) -> dict[str, Any]:
        """Its four numbers."""
        return attrs.asdict(self)

    def __str__(self) -> str:
        numbers = f"offset {self.offset}, length {self.length}, grain {self.grain}"
        return f"read_window({numbers}, file of {self.file_size} bytes)"
