"""The rule domain: rules of the registry shown, linked and checked.

`rule` shows rules in the chapter that explains them, `:rule:id:` links to a rule's own page. The build warns (types
`rule.unknown`, `rule.undocumented`, `rule.untested`, `rule.subject`) about an id that no rule has, a rule that no
chapter shows or that two do, a MUST without a test, and a subject that does not exist; under `-W` each fails it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import nodekit as kit
import rulefacts
from docutils import nodes
from sphinx.domains import Domain, ObjType
from sphinx.roles import XRefRole
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

if TYPE_CHECKING:
    from docutils.nodes import Element, Node
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.builders import Builder
    from sphinx.config import Config
    from sphinx.environment import BuildEnvironment

LOG = logging.getLogger(__name__)


def registry(config: Config) -> Mapping[str, Any]:
    """Rule id to rule, as `rule_registry` names it."""
    found: Mapping[str, Any] = rulefacts.load(config.rule_registry)
    return found


def citations(config: Config) -> Mapping[str, tuple[rulefacts.Citation, ...]]:
    """Rule id to the tests that cite it, as found when the build began."""
    found: Mapping[str, tuple[rulefacts.Citation, ...]] = config.rule_citations
    return found


def warn(subtype: str, message: str, location: Any = None) -> None:
    """One finding, as a warning that can be told from all others."""
    LOG.warning(message, type="rule", subtype=subtype, location=location)


def badge(level: str) -> Node:
    """The level of a rule, as text that the style sheet frames."""
    return nodes.inline(text=level, classes=["rule-level", f"rule-{level.lower()}"])


class RuleDirective(SphinxDirective):
    """`rule ID [ID ...]`: the rules' sentences in place, each linked to its page."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[Node]:
        return [node for rule_id in self.arguments[0].split() for node in self._show(rule_id)]

    def _show(self, rule_id: str) -> list[Node]:
        rule = registry(self.config).get(rule_id)
        if rule is None:
            warn("unknown", f"no rule {rule_id}", self.get_location())
            return []
        domain = self.env.get_domain("rule")
        assert isinstance(domain, RuleDomain)
        domain.note("shown", rule_id, self.env.docname, self.get_location())
        link = kit.reference("rule", "id", rule_id, self.env.docname)
        head = kit.paragraph([link, nodes.Text(" "), badge(rule.level)], "rule-head")
        body = kit.paragraph(rule.text, "rule-text")
        return [nodes.container("", head, body, ids=[rule_id], classes=["rule", f"rule-{rule.level.lower()}"])]


class RuleRole(XRefRole):
    """`:rule:id:`: a link to the page of a rule; unknown ids warn, nitpicky or not."""

    def __init__(self) -> None:
        super().__init__(warn_dangling=True, innernodeclass=nodes.inline)


class RuleDomain(Domain):
    """Rules as targets: `shown` in a chapter, described on a page of their own."""

    name = "rule"
    label = "Rule"
    object_types: ClassVar[dict[str, ObjType]] = {"rule": ObjType("rule", "id")}
    roles: ClassVar[dict[str, Any]] = {"id": RuleRole()}
    initial_data: ClassVar[dict[str, Any]] = {"shown": {}, "pages": {}}
    dangling_warnings: ClassVar[dict[str, str]] = {
        "id": "no rule %(target)s",
        "place": "no chapter explains %(target)s",
    }
    data_version = 1

    def note(self, kind: str, rule_id: str, docname: str, location: Any = None) -> None:
        """Record that `docname` shows or describes the rule; showing it twice is a warning."""
        known = self.data[kind].setdefault(rule_id, docname)
        if known != docname:
            warn("undocumented", f"{rule_id} is shown in {known} and again in {docname}", location)

    def clear_doc(self, docname: str) -> None:
        """Forget what `docname` shows."""
        for kind in self.data["shown"], self.data["pages"]:
            for rule_id in [rule_id for rule_id, place in kind.items() if place == docname]:
                del kind[rule_id]

    def merge_domaindata(self, docnames: Set[str], otherdata: dict[str, Any]) -> None:
        """Take over what a parallel reader found in `docnames`."""
        for kind in "shown", "pages":
            for rule_id, docname in otherdata[kind].items():
                if docname in docnames:
                    self.note(kind, rule_id, docname, docname)

    def resolve_xref(
        self, env: BuildEnvironment, fromdocname: str, builder: Builder, typ: str, target: str,
        node: pending_xref, contnode: Element,
    ) -> nodes.reference | None:  # fmt: skip
        """The link to a rule's page, or for `place` to the chapter that shows it."""
        place = self.data["shown" if typ == "place" else "pages"].get(target)
        if place is None:
            return None
        if typ == "place":
            title = nodes.inline(text=env.titles[place].astext())
            return make_refnode(builder, fromdocname, place, target, title)
        return make_refnode(builder, fromdocname, place, "", contnode, registry(env.config)[target].text)

    def resolve_any_xref(
        self, env: BuildEnvironment, fromdocname: str, builder: Builder, target: str,
        node: pending_xref, contnode: Element,
    ) -> list[tuple[str, nodes.reference]]:  # fmt: skip
        """Rules are named by their own role only."""
        return []

    def get_objects(self) -> Iterable[tuple[str, str, str, str, str, int]]:
        """Every rule page, for objects.inv and the search."""
        for rule_id, docname in self.data["pages"].items():
            yield rule_id, rule_id, "rule", docname, "", 1

    def check_consistency(self) -> None:
        """Hold the registry against the chapters, the tests and the code."""
        rules, tests, pages = registry(self.env.config), citations(self.env.config), self.data["pages"]
        for rule_id, rule in rules.items():
            if rule_id not in self.data["shown"]:
                warn("undocumented", f"no chapter shows {rule_id}", pages.get(rule_id))
            if rule.level == "MUST" and rule_id not in tests:
                warn("untested", f"no test cites {rule_id}, a MUST", pages.get(rule_id))
            try:
                rulefacts.load(rule.subject)
            except LookupError as error:
                warn("subject", f"{rule_id} has no subject: {error}", pages.get(rule_id))
        for rule_id in tests.keys() - rules.keys():
            first = tests[rule_id][0]
            warn("unknown", f"{first.file}::{first.name} cites {rule_id}, which is no rule")


def read_tests(app: Sphinx, config: Config) -> None:
    """Scan the tests once. What the pages show becomes configuration, so that a change of it rebuilds them."""
    base = Path(app.confdir, config.rule_project).resolve()
    config.rule_citations = rulefacts.cited(base, config.rule_test_roots)
    config.rule_digest = repr(registry(config))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("rule_registry", "", "env", str, "module:attribute of the mapping from id to rule")
    app.add_config_value("rule_project", "..", "env", str, "folder that test files are named from, seen from conf.py")
    app.add_config_value("rule_test_roots", [], "env", list, "folders of tests inside the project")
    app.add_config_value("rule_contracts", "", "env", str, "package whose contracts state rules")
    app.add_config_value("rule_citations", {}, "env", dict, "filled at the start of every build")
    app.add_config_value("rule_digest", "", "env", str, "filled at the start of every build")
    app.add_domain(RuleDomain)
    app.add_directive("rule", RuleDirective)
    app.connect("config-inited", read_tests)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
