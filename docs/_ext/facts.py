"""Published numbers beside ours: docs/facts.toml, and the tables that tests keep as data.

`fact-table GROUP` shows the entries of one group; `fact-series NAME` the table that a test checks cell by cell.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import nodekit as kit
import ruledomain
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from docutils.nodes import Node
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))


class Fact(NamedTuple):
    """One published figure, what is found here, and where that is asserted."""

    what: str
    published: str
    ours: str
    mode: str
    test: str
    differs: str = "none"
    group: str = ""


FIELDS = {"group", "what", "published", "ours", "mode", "test", "differs"}
REQUIRED = FIELDS - {"ours", "differs"}


def written(path: Path = ROOT / "docs" / "facts.toml") -> list[Fact]:
    """The entries of the file. Raises `ValueError` for one that lacks a field, has another, or hides a difference."""
    facts = []
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))["fact"]:
        if entry.keys() - FIELDS or REQUIRED - entry.keys():
            raise ValueError(f"fact {entry.get('what')!r}: fields are {', '.join(sorted(FIELDS))}")
        if "ours" in entry and "differs" not in entry:
            raise ValueError(f"fact {entry['what']!r}: explain the difference, or say that it is unexplained")
        facts.append(Fact(**{"ours": entry["published"]} | entry))
    return facts


MODELS = {"qwen": "Qwen3", "gemma": "Gemma"}
POINTS = "within 0.25 points"


def _data(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def decode_hits() -> Iterator[Fact]:
    """Table 9.2: decode hits at a byte budget."""
    test = "tests/spec/test_engines.py::test_published_decode_hit_rates_are_reproduced"
    for row in _data("tests.spec.test_engines", "PUBLISHED"):
        name, policy, percent, hits = row.values
        rounded = f"{percent:.2f} %"
        yield Fact(f"{MODELS[name]}, {policy}", rounded, f"{hits:,} hits", "event, profile bigmoe-on-edge", test)


NEAR_MISS = ("qwen", 25, "heat-lru", 4)
"""The one row of the survey that is not met to its last digit; the test has ours."""


def slot_hits() -> Iterator[Fact]:
    """Table 9.2b: decode hits at equal slots."""
    test = "tests/spec/test_counting.py::test_the_surveys_hit_rates_come_out_to_the_digit"
    for name, percent, policy, values, found in _data("tests.spec.test_counting", "SURVEY"):
        said = ", ".join(f"{key}={value}" for key, value in values.items())
        published, why = f"{found:.2f} %", "none"
        if (name, percent, policy, values.get("hot")) == NEAR_MISS:
            published, why = "one more in the last digit", "unexplained"
        what = f"{MODELS[name]}, {percent} %, {policy} ({said})"
        yield Fact(what, published, f"{found:.2f} %", "event, room trim, overflow bypass, repeats ignored", test, why)


def atomic() -> Iterator[Fact]:
    """Section 10: atomic replay."""
    module = "tests.spec.test_survey_tables"
    test = "tests/spec/test_survey_tables.py::test_every_cell_of_the_table_of_atomic_replay_is_met"
    for (name, percent), cells in _data(module, "TABLE").items():
        lru, lfu, lfru, belady, forced = (f"{cell:.2f}" for cell in cells)
        what = (
            f"{MODELS[name]}, {percent} %: decode misses in percent of LRU / LFU / Belady with bypass / Belady forced"
        )
        both = f"{lru} / {lfu} / {belady} / {forced}"
        why = "none; ties to the higher expert. Forced: a hit of the event may leave there, so the test simulates it"
        yield Fact(what, both, both, "event, room retain, scope layer", test, why)
        near = f"within {_data(module, 'LFRU_POINTS')} points"
        yield Fact(
            f"{MODELS[name]}, {percent} %: LFRU", lfru, near, "the same", test, "unexplained: how it breaks ties"
        )


def missed() -> Iterator[Fact]:
    """The counts of the traces, and Belady with the event held."""
    node = "tests/reference/test_counts.py::test_the_replay_counts_the_"
    for table, test in (("COUNTS", "published_misses"), ("NIGHTLY", "rest_of_the_published_misses")):
        for source, policy, slots, scope, mode, misses in _data("tests.reference.test_counts", table):
            name = source.name.split(".")[0].removeprefix("gptoss20b_")
            what = f"{MODELS.get(name, name)}, {policy}, {slots:,} slots, {scope}"
            yield Fact(what, f"{misses:,}", f"{misses:,}", mode, node + test)
    node = "tests/spec/test_survey_tables.py::test_belady_with_the_event_held_misses_what_was_published_"
    for name, slots, by_row, by_call in _data("tests.spec.test_survey_tables", "PINNED"):
        why = "a row of the prompt is an event there, a layer's call is one here; replayed by rows, ours is the same"
        what = f"{MODELS[name]}, belady, {slots:,} slots, global"
        same = "none" if by_row == by_call else why
        yield Fact(what, f"{by_row:,}", f"{by_call:,}", "event", f"{node}where_a_row_is_an_event", same)


def stale() -> Iterator[Fact]:
    """Table 4.4."""
    module, file = "tests.spec.test_engine_policies_table", "tests/spec/test_engine_policies_table.py"
    test = f"{file}::test_without_prefetch_every_cell_of_the_table_is_met_to_a_quarter_of_a_point"
    for (name, policy), (_, cells) in _data(module, "WITHOUT").items():
        yield Fact(f"{MODELS[name]}, {policy}", cells, POINTS, "event, room trim, overflow waves", test)
    mode = "event, then evict; synthetic prefetch that evicts"
    test = f"{file}::test_with_prefetch_the_cells_of_the_table_are_met_to_a_point_and_a_half"
    for (name, policy), (_, cells) in _data(module, "WITH").items():
        ours, why = "within 1.5 points", "its random draws are its own"
        if policy == "LFU":
            ours, why = "within 1.5 points at the largest size", "two cells more hits here, unexplained: see below"
        yield Fact(f"{MODELS[name]}, {policy}, prefetch", cells, ours, mode, test, why)


SERIES: dict[str, Callable[[], Iterator[Fact]]] = {
    "decode-hits": decode_hits, "slot-hits": slot_hits, "atomic": atomic, "misses": missed, "least-stale": stale,
}  # fmt: skip
HEADER = ("What", "Published", "Here", "Replay mode", "Test", "Difference")
ROLE = re.compile(r"\{doc\}`([^`]+)`")


class FactTable(SphinxDirective):
    """`fact-table GROUP`: the written entries of one group; one that does not exist warns."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[Node]:
        path = ROOT / "docs" / "facts.toml"
        self.env.note_dependency(str(path))
        found = [fact for fact in written(path) if fact.group == self.arguments[0]]
        if not found:
            ruledomain.warn("facts", f"no fact of group {self.arguments[0]!r}", self.get_location())
            return []
        return table(found, self.env.docname)


class FactSeries(SphinxDirective):
    """`fact-series NAME`: a table that a test keeps as data."""

    required_arguments = 1

    def run(self) -> list[Node]:
        return table(list(SERIES[self.arguments[0]]()), self.env.docname)


def table(found: list[Fact], docname: str) -> list[Node]:
    """One row a fact; of replay mode, test and difference, what is the same for all rows is said once, above them."""
    said: list[Node] = []
    columns = [[fact.what, fact.published, linked(fact.ours, docname)] for fact in found]
    header = list(HEADER)
    for name, values in zip(HEADER[3:], zip(*((f.mode, short(f), f.differs) for f in found), strict=True), strict=True):
        if len(set(values)) == 1:
            said += [*kit.inline(f"{name}: {values[0]}"), nodes.Text(". ")]
            header.remove(name)
        else:
            for row, value in zip(columns, values, strict=True):
                row.append(value)
    above = [kit.paragraph(said)] if said else []
    return [*above, kit.table(header, columns, "facts")]


def short(fact: Fact) -> str:
    """The test as code, without the folders."""
    file, _, name = fact.test.partition("::")
    return f"`{Path(file).name}` `{name}`"


def linked(text: str, docname: str) -> list[Node]:
    """Text in which a `doc` role links."""
    found: list[Node] = []
    for place, part in enumerate(ROLE.split(text)):
        found += [kit.reference("std", "doc", f"/{part}", docname)] if place % 2 else kit.inline(part)
    return found


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("fact-table", FactTable)
    app.add_directive("fact-series", FactSeries)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
