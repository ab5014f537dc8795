"""A tiny Sphinx project with rules of its own, built with the book's rule domain."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

sphinx_testing = pytest.importorskip("sphinx.testing.util", reason="the book's tools are in the extra `docs`")

EXTENSIONS = Path(__file__).parents[2] / "docs" / "_ext"

SPEC = '''
import icontract
from expertcache_spec.rules import Rule

@icontract.ensure(lambda result: result == 42, "XC-TINY-001: The answer is 42.")
def answer():
    """The answer."""
    return 42

RULES = {{rule.id: rule for rule in [
{rules}
]}}
CHAPTERS = {{"TINY": "A tiny chapter"}}
'''
RULE = '    Rule("{id}", "{level}", "{text}", "A reason.", "nobody#1", "{subject}", "{since}"),'
CONF = """
extensions = ["ruledomain", "rulepages"]
rule_registry, rule_chapters, rule_contracts = "tinyspec:RULES", "tinyspec:CHAPTERS", "tinyspec"
rule_test_roots = ["tests"]
"""
INDEX = """
Tiny
====

.. py:module:: tinyspec
.. py:function:: answer()

.. toctree::

   chapter
   rules/TINY
"""
TEST = """
import pytest

@pytest.mark.rule({ids})
def test_the_answer_is_right(): ...
"""


@attrs.frozen
class Built:
    """What a build left: whether it failed under `-W`, its warnings, its HTML pages by name."""

    failed: bool
    warnings: str
    pages: Mapping[str, str]


@attrs.define
class Project:
    """The parts of the project that a test may change before it builds."""

    root: Path
    rules: list[dict[str, str]] = attrs.field(factory=lambda: [tiny("XC-TINY-001")])
    chapter: str = ""
    cited: list[str] = attrs.field(factory=lambda: ["XC-TINY-001"])
    extra: dict[str, str] = attrs.field(factory=dict)

    def build(self, **options: Any) -> Built:
        """Write the project and build it as HTML, warnings being errors."""
        spec = SPEC.format(rules="\n".join(RULE.format(**rule) for rule in self.rules))
        shown = f"Chapter\n=======\n\n.. rule:: {' '.join(rule['id'] for rule in self.rules)}\n"
        files = {
            "tinyspec.py": spec,
            "docs/conf.py": CONF,
            "docs/index.rst": INDEX,
            "docs/chapter.rst": self.chapter or shown,
            "tests/test_tiny.py": TEST.format(ids=", ".join(map(repr, self.cited))) if self.cited else "",
            **self.extra,
        }
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        app = sphinx_testing.SphinxTestApp(srcdir=self.root / "docs", warningiserror=True, **options)
        try:
            app.build()
            pages = {path.relative_to(app.outdir).as_posix(): path.read_text("utf-8") for path in _html(app.outdir)}
            return Built(app.statuscode != 0, app.warning.getvalue(), pages)
        finally:
            app.cleanup()


def tiny(rule_id: str, **changes: str) -> dict[str, str]:
    """The fields of one tiny rule."""
    fields = {"id": rule_id, "level": "MUST", "text": "The answer is 42.", "subject": "tinyspec:answer", "since": "0.1"}
    return fields | changes


def _html(folder: Path) -> Iterator[Path]:
    return folder.rglob("*.html")


@pytest.fixture(name="rulefacts")
def _rulefacts(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    return pytest.importorskip("rulefacts")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rulefacts: Any) -> Iterator[Project]:
    """A project of one MUST that a chapter shows and a test cites."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Project(tmp_path)
    sys.modules.pop("tinyspec", None)
    rulefacts.contracts.cache_clear()


@pytest.fixture
def rule() -> Callable[..., dict[str, str]]:
    """Makes the fields of a rule."""
    return tiny
