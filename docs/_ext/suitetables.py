"""Tables out of the conformance suite's own objects: capabilities and options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nodekit as kit
from sphinx.util.docutils import SphinxDirective

from expertcache_conformance import plugin
from expertcache_conformance.adapters import CAPABILITIES

if TYPE_CHECKING:
    from docutils.nodes import Node
    from sphinx.application import Sphinx


class CapabilityTable(SphinxDirective):
    """`capability-table`: each capability with the methods that it needs."""

    def run(self) -> list[Node]:
        rows = [(f"`{name}`", ", ".join(f"`{method}`" for method in needed)) for name, needed in CAPABILITIES.items()]
        return [kit.table(("Capability", "Methods"), rows)]


class _Options:
    """Stands in for pytest's parser and keeps what the plugin adds."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str]] = []

    def getgroup(self, name: str, description: str = "") -> _Options:
        return self

    def addoption(self, name: str, **details: Any) -> None:
        value = f" {details['metavar']}" if "metavar" in details else ""
        default = f"; `{details['default']}` unless given" if details.get("default") else ""
        self.rows.append((f"`{name}{value}`", kit.sentence(details["help"]) + default))


class ImplOptions(SphinxDirective):
    """`impl-options`: the options that the plugin adds to pytest."""

    def run(self) -> list[Node]:
        options = _Options()
        plugin.pytest_addoption(options)  # type: ignore[arg-type]
        return [kit.table(("Option", "Meaning"), options.rows)]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("capability-table", CapabilityTable)
    app.add_directive("impl-options", ImplOptions)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
