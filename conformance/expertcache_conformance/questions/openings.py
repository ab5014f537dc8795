"""Questions about files: whether those that are there are a layout's own, and where a side table stands in them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, ClassVar

import attrs

from expertcache_conformance.adapters.planning import Table
from expertcache_conformance.answers import Malformed
from expertcache_conformance.questions.base import Question, Wrong, call, rows
from expertcache_conformance.questions.layouts import LayoutQuestion, joined
from expertcache_spec.layout import Extent, Layout, with_side_table
from expertcache_spec.model import Key

EXPECTED, STALE = "a1" * 32, "b2" * 32
"""The fingerprint that the files of a layout carry, and that of another format or model."""
STATES = ("fine", "missing", "stale", "short", "long")
"""What may be with a file."""


def declared_by(where: LayoutQuestion) -> Layout:
    """The layout that is asked about, which is a declared one."""
    found = where.declared()
    assert found is not None
    return found


@attrs.frozen
class FilesQuestion(Question):
    """Whether files may be used as those of a declared layout; `states` says what is with each, in order."""

    kind: ClassVar[str] = "files"
    where: LayoutQuestion
    states: tuple[str, ...]

    @property
    def size(self) -> tuple[int, ...]:
        """Files that are not fine, then records."""
        return len(self.states) - self.states.count("fine"), *self.where.size

    @property
    def found(self) -> dict[str, tuple[int, str]]:
        """Every file that is there: its bytes and the fingerprint that it carries."""
        sizes = {"short": -1, "long": 1}
        return {
            name: (size + sizes.get(state, 0), STALE if state == "stale" else EXPECTED)
            for (name, size), state in zip(declared_by(self.where).files.items(), self.states, strict=True)
            if state != "missing"
        }

    def ask(self, target: Any) -> bool:
        """Whether the files are accepted."""
        raw = call(target, "accepts", self.where.request(), self.found, EXPECTED)
        if not isinstance(raw, bool):
            raise Malformed(f"accepts is {raw!r}"[:200] + ", neither true nor false")
        return raw

    def judge(self, answer: bool) -> Wrong | None:
        """All files are fine, or they are refused."""
        fine = set(self.states) == {"fine"}
        if answer is fine:
            return None
        note = "files that are whole and the layout's own are refused" if fine else "a wrong file is accepted"
        return Wrong("XC-LAYOUT-009", fine, answer, note)

    def smaller(self) -> Iterator[FilesQuestion]:
        """A file more that is fine, a smaller model."""
        for n, state in enumerate(self.states):
            if state != "fine":
                yield attrs.evolve(self, states=(*self.states[:n], "fine", *self.states[n + 1 :]))
        for where in self.where.smaller():
            if len(declared_by(where).files) <= len(self.states):
                yield attrs.evolve(self, where=where, states=self.states[: len(declared_by(where).files)])

    def encode(self) -> dict[str, Any]:
        """Its fields; the layout is a question of its own."""
        return {"where": self.where.encode(), "states": list(self.states)}

    def __str__(self) -> str:
        files = ", ".join(
            f"{name} {state}" for name, state in zip(declared_by(self.where).files, self.states, strict=True)
        )
        return f"accepts {files} as the files of {self.where}"


@attrs.frozen
class TableQuestion(Question):
    """Where records and the rows of a side table lie in a declared layout that has one."""

    kind: ClassVar[str] = "table"
    where: LayoutQuestion
    table: Table

    @property
    def size(self) -> tuple[int, ...]:
        """Rows, then records."""
        return *attrs.astuple(self.table), *self.where.size

    def ask(self, target: Any) -> tuple[list[Extent], dict[Key, list[Extent]]]:
        """The extent of every row, and those of every record."""
        request = attrs.evolve(self.where.request(), table=self.table)
        numbers = range(self.table.rows)
        table = [Extent(*rows("table_row", [call(target, "table_row", request, n)], "snn")[0]) for n in numbers]
        records = {
            key: joined(Extent(*row) for row in rows("extents", call(target, "extents", request, key), "snn"))
            for key in declared_by(self.where).extents
        }
        return table, records

    def judge(self, answer: tuple[list[Extent], dict[Key, list[Extent]]]) -> Wrong | None:
        """No record is moved; the table begins on a page behind its file's weights; rows share no byte.

        In which file it stands, and what lies between rows, is free.
        """
        layout, (table, records) = declared_by(self.where), answer
        expected = list(with_side_table(layout, "table", self.table.rows, self.table.row_bytes, self.table.page)
                        .tables["table"].row(0))  # fmt: skip
        moved = next((key for key, found in layout.extents.items() if joined(found) != records[key]), None)
        note = ""
        if moved is not None:
            note = f"record ({moved.layer},{moved.expert}) is moved to {[list(e) for e in records[moved]]}"
        elif any(row.length != self.table.row_bytes for row in table):
            note = f"a row is not {self.table.row_bytes} bytes"
        elif table[0].offset % self.table.page:
            note = "the table begins off the page"
        elif any(row.offset < layout.files.get(row.file, 0) for row in table):
            note = "the table does not stand after the weights"
        elif any(one.file == next_.file and one.end > next_.offset for one, next_ in pairwise(sorted(table))):
            note = "rows overlap"
        return Wrong("XC-LAYOUT-007", expected, [list(row) for row in table], note) if note else None

    def smaller(self) -> Iterator[TableQuestion]:
        """Fewer and shorter rows, smaller pages, a smaller model."""
        for name in ("rows", "row_bytes", "page"):
            value = getattr(self.table, name)
            for less in {1, value // 2, value - 1} - {0, value}:
                yield attrs.evolve(self, table=attrs.evolve(self.table, **{name: less}))
        for where in self.where.smaller():
            yield attrs.evolve(self, where=where)

    def encode(self) -> dict[str, Any]:
        """Its fields; the layout is a question of its own."""
        return {"where": self.where.encode(), "table": attrs.asdict(self.table)}

    def __str__(self) -> str:
        table = self.table
        return f"a table of {table.rows} rows of {table.row_bytes} bytes on a page of {table.page} beside {self.where}"
