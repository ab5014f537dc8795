"""The pages that are made from the registry: one page a rule, one a chapter, the matrix, the changes by version.

Their sources are written into `rules/` at the start of the build: a title and one directive each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import nodekit as kit
import ruledomain
import rulefacts
from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from docutils.nodes import Node
    from sphinx.application import Sphinx
    from sphinx.config import Config

FOLDER = "rules"


class RulePage(SphinxDirective):
    """`rule-page ID`: everything that is known about one rule."""

    required_arguments = 1

    def run(self) -> list[Node]:
        rule_id, docname = self.arguments[0], self.env.docname
        rule = ruledomain.registry(self.config)[rule_id]
        domain = self.env.get_domain("rule")
        assert isinstance(domain, ruledomain.RuleDomain)
        domain.note("pages", rule_id, docname)
        text = kit.paragraph([ruledomain.badge(rule.level), nodes.Text(f" {rule.text}")], "rule-sentence")
        facts: list[tuple[str, kit.Content]] = [("Why", rule.rationale)] if rule.rationale else []
        facts += [
            ("Source", [nodes.Text(rule.source)]),
            ("Stated by", self._subject(rule.subject)),
            ("Explained in", kit.reference("rule", "place", rule_id, docname)),
            ("Since", f"specification {rule.since}"),
        ]
        return [text, kit.facts(facts), *self._contracts(rule_id), *self._tests(rule_id)]

    def _subject(self, subject: str) -> Node:
        try:
            return kit.reference("py", "obj", rulefacts.dotted(subject), self.env.docname)
        except LookupError:  # the domain's check reports it
            return nodes.literal(text=subject)

    def _contracts(self, rule_id: str) -> Iterator[Node]:
        package = self.config.rule_contracts
        found = rulefacts.contracts(package).get(rule_id, ()) if package else ()
        if found:
            yield nodes.rubric(text="Checked at run time")
        for kind, holder, source in found:
            yield kit.paragraph([nodes.Text(f"{kind} "), kit.reference("py", "obj", holder, self.env.docname)])
            yield kit.code(source)

    def _tests(self, rule_id: str) -> Iterator[Node]:
        found = ruledomain.citations(self.config).get(rule_id, ())
        yield nodes.rubric(text="Tests")
        if not found:
            yield kit.paragraph("No test cites this rule.")
        for file in dict.fromkeys(test.file for test in found):
            yield kit.paragraph(f"`{file}`")
            yield kit.bullets(f"`{test.name}`" for test in found if test.file == file)


class RuleTable(SphinxDirective):
    """`rule-table [CHAPTER]`: id, level and sentence of a chapter's rules, or of all."""

    optional_arguments = 1

    def run(self) -> list[Node]:
        chapter = self.arguments[0] if self.arguments else None
        rules = ruledomain.registry(self.config).values()
        rows = [
            (kit.reference("rule", "id", rule.id, self.env.docname), ruledomain.badge(rule.level), rule.text)
            for rule in rules
            if chapter in (None, rule.chapter)
        ]
        return [kit.table(("Rule", "Level", "Sentence"), rows, "rule-table")]


class RuleMatrix(SphinxDirective):
    """`rule-matrix`: for each rule and each folder of tests, the files that cite it and in how many tests."""

    def run(self) -> list[Node]:
        tests = ruledomain.citations(self.config)
        folders = sorted({PurePosixPath(test.file).parent for found in tests.values() for test in found})
        rows = []
        for rule in ruledomain.registry(self.config).values():
            found = [PurePosixPath(test.file) for test in tests.get(rule.id, ())]
            link = kit.reference("rule", "id", rule.id, self.env.docname)
            count = str(len(found)) if found else nodes.strong(text="none")
            cells = [_files(file for file in found if file.parent == folder) for folder in folders]
            rows.append((link, ruledomain.badge(rule.level), count, *cells))
        tops = Counter(folder.parts[0] for folder in folders)
        heads = [folder.parts[0] if tops[folder.parts[0]] == 1 else str(folder) for folder in folders]
        return [kit.table(("Rule", "Level", "Tests", *heads), rows, "rule-matrix")]


def _files(files: Iterable[PurePosixPath]) -> str:
    counts = Counter(file.stem.removeprefix("test_") for file in files)
    return ", ".join(f"{name} {count}" if count > 1 else name for name, count in counts.items())


class RuleChanges(SphinxDirective):
    """`rule-changes`: the rules that each version of the specification introduced, newest first."""

    def run(self) -> list[Node]:
        rules = list(ruledomain.registry(self.config).values())
        found: list[Node] = []
        for since in sorted({rule.since for rule in rules}, key=_version, reverse=True):
            new = [rule for rule in rules if rule.since == since]
            section = nodes.section("", nodes.title(text=f"Version {since}"), ids=[f"version-{since}"])
            section += kit.paragraph(f"{len(new)} rules are new.")
            rows = [(kit.reference("rule", "id", rule.id, self.env.docname), rule.text) for rule in new]
            section += kit.table(("Rule", "Sentence"), rows, "rule-table")
            found.append(section)
        return found


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


class RuleTree(SphinxDirective):
    """`rule-tree`: the hidden table of contents of the chapters of rules."""

    def run(self) -> list[Node]:
        rules = ruledomain.registry(self.config).values()
        pages = [f"{FOLDER}/{chapter}" for chapter in dict.fromkeys(rule.chapter for rule in rules)]
        return [
            addnodes.toctree(
                parent=self.env.docname, entries=[(None, page) for page in pages], includefiles=pages,
                maxdepth=-1, hidden=True, glob=False, titlesonly=True, includehidden=False, numbered=0,
                caption=None, rawentries=[], rawcaption="",
            )
        ]  # fmt: skip


def write_sources(app: Sphinx, config: Config) -> None:
    """Write the source of every generated page that has changed, and remove those whose rule is gone."""
    titles: dict[str, str] = rulefacts.load(config.rule_chapters) if config.rule_chapters else {}
    pages: dict[str, str] = {}
    for rule in ruledomain.registry(config).values():
        title = titles.get(rule.chapter) or rule.chapter
        pages[rule.chapter] = _source(title, f"rule-table:: {rule.chapter}")
        # Outside the table of contents, which stands beside every page: 300 ids there help nobody, and cost minutes.
        pages[rule.id] = ":orphan:\n\n" + _source(rule.id, f"rule-page:: {rule.id}")
    folder = Path(app.srcdir, FOLDER)
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.rst"):
        if path.stem not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _source(title: str, *directives: str) -> str:
    return "\n".join([title, "=" * len(title), "", *(f".. {directive}\n" for directive in directives)])


def setup(app: Sphinx) -> dict[str, Any]:
    app.setup_extension("ruledomain")
    app.add_config_value("rule_chapters", "", "env", str, "module:attribute of the mapping from chapter to title")
    for name, directive in (
        ("rule-page", RulePage), ("rule-table", RuleTable), ("rule-matrix", RuleMatrix),
        ("rule-changes", RuleChanges), ("rule-tree", RuleTree),
    ):  # fmt: skip
        app.add_directive(name, directive)
    app.connect("config-inited", write_sources)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
