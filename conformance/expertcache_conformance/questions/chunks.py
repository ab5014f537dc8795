"""Questions about chunk plans. The rules determine the whole answer (chapter fan-out)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import attrs

from expertcache_conformance.program import count
from expertcache_conformance.questions.base import Question, Wrong, call, rows
from expertcache_spec.fanout import chunk_plan, starts

Plan = list[tuple[int, int]]


@attrs.frozen
class ChunkQuestion(Question):
    """The plan of a record of `size` bytes, asked for right after that of a record of `before` bytes."""

    kind: ClassVar[str] = "chunks"
    size_of_record: int
    page: int
    wanted: int
    before: int

    @property
    def size(self) -> tuple[int, ...]:
        """Pages and bytes, and whether two records are asked for."""
        sizes = {self.size_of_record, self.before}
        return len(sizes), sum(sizes) // self.page, abs(self.wanted), sum(sizes), self.page

    def ask(self, target: Any) -> tuple[Plan, Plan]:
        """The plan of this record, right after the one before and once more."""
        _, first, second = (
            rows("plan_chunks", call(target, "plan_chunks", size, self.page, self.wanted), "nn")
            for size in (self.before, self.size_of_record, self.size_of_record)
        )
        return first, second

    def judge(self, answer: tuple[Plan, Plan]) -> Wrong | None:
        """Whose plan it is, then coverage, the count, and where the cuts are."""
        expected = [(chunk.offset, chunk.length) for chunk in chunk_plan(self.size_of_record, self.wanted, self.page)]
        got = answer[0] if answer[0] != expected else answer[1]
        if got == expected:
            return None
        rule, note = self._rule(expected, got)
        if answer[1] == expected:
            rule, note = "XC-FANOUT-004", "the plan depends on the record that was asked for before"
        return Wrong(rule, [list(each) for each in expected], [list(each) for each in got], note)

    def _rule(self, expected: Plan, got: Plan) -> tuple[str, str]:
        lengths = [length for _, length in got]
        if [offset for offset, _ in got] != starts(lengths)[:-1] or sum(lengths) != self.size_of_record:
            return "XC-FANOUT-001", f"not {self.size_of_record} bytes in order, once each"
        if self.size_of_record and min(lengths) < 1:
            return "XC-FANOUT-001", "a chunk is empty"
        if len(got) != len(expected):
            return "XC-FANOUT-002", f"{count(len(got), 'chunk')}, not {len(expected)}"
        if any(length % self.page for length in lengths):
            return "XC-FANOUT-003", "a chunk is no whole number of pages"
        return "XC-FANOUT-003", "the remainder is elsewhere"

    def smaller(self) -> Iterator[ChunkQuestion]:
        """The same record before, pages of a few bytes, fewer pages, fewer chunks."""
        size, page, wanted, before = self.size_of_record, self.page, self.wanted, self.before
        alone = before == size
        if not alone:
            yield attrs.evolve(self, before=size)
        for small in (1, 2, page // 2):
            if 0 < small < page:
                scaled = [n // page * small + min(n % page, small - 1) for n in (size, before)]
                yield ChunkQuestion(scaled[0], small, wanted, scaled[1])
        for n in (size // 2 // page * page, size - page, size - size % page, size - 1):
            if 0 <= n < size:
                yield attrs.evolve(self, size_of_record=n, before=n if alone else before)
        for n in (before // 2 // page * page, before - page, before - 1):
            if 0 <= n < before and not alone:
                yield attrs.evolve(self, before=n)
        for n in (wanted // 2, wanted - 1, wanted + 1):
            if abs(n) < abs(wanted):
                yield attrs.evolve(self, wanted=n)

    def encode(self) -> dict[str, Any]:
        """Its four numbers."""
        return attrs.asdict(self)

    def __str__(self) -> str:
        after = "" if self.before == self.size_of_record else f", after that of a record of {self.before} bytes"
        return f"plan_chunks(size {self.size_of_record}, page {self.page}, wanted {self.wanted}){after}"
