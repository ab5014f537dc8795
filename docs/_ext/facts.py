"""Published numbers beside ours: docs/facts.toml, and the tables that tests keep as data.

`fact-table GROUP` shows the entries of one group; `fact-series NAME` the table that a test checks cell by cell.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nodekit as kit
import ruledomain
from docutils import nodes
from factseries import ROOT, SERIES, Fact
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from docutils.nodes import Node
    from sphinx.application import Sphinx

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
