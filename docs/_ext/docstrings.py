"""Docstrings as the packages write them: code in blocks of its own, without `::`; fields as `name: meaning`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import groupby
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import attrs
from sphinx import addnodes

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

LONGEST_VALUE = 160
"""Characters of a constant's value beside its name."""


def language(block: list[str]) -> str:
    """The language of a paragraph that is code: several lines of Python, or an indented block; empty for English."""
    indented = all(line.startswith("    ") for line in block)
    try:
        python = len(block) > 1 and bool(ast.parse(dedent("\n".join(block))).body)
    except SyntaxError:
        python = False
    return "python" if python else "text" if indented else ""


def split_fields(cls: Any, text: str) -> tuple[str, list[tuple[str, str]]]:
    """What stands before the first `name: meaning` of the paragraph, and the fields of the class with their meanings.

    `name, name: meaning` gives both names the same one; a meaning ends where the next field's name begins.
    """
    names = "|".join(field.name for field in attrs.fields(cls) if field.init) if attrs.has(cls) else ""
    if not names:
        return text, []
    before, *parts = re.split(rf"(?:^|(?<=[.:] ))((?:{names})(?:, (?:{names}))*): ", text)
    return before.strip(), [(heads, said.strip()) for heads, said in zip(parts[::2], parts[1::2], strict=True)]


def structure(app: Sphinx, what: str, name: str, obj: Any, options: object, lines: list[str]) -> None:
    """Make code blocks of the paragraphs that are code, definitions of those that describe fields."""
    found: list[str] = []
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        block = list(group)
        found += block if blank else _structured(obj if what == "class" else None, block)
    lines[:] = found


def _structured(cls: Any, block: list[str]) -> Iterator[str]:
    before, fields = split_fields(cls, " ".join(block)) if cls else ("", [])
    if code := language(block):
        yield from (f".. code-block:: {code}", "")
        yield from (f"   {line}" for line in block)
    elif fields:
        yield from (before, "")
        for heads, said in fields:
            yield from (f"``{heads}``", f"   {said}", "")
    else:
        yield from block


def shield(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Keep napoleon from reading `words: more words` of a one-sentence docstring as a type: a comment goes first."""
    if what in {"attribute", "data", "property"}:
        lines[:0] = ["..", ""]


def shorten(app: Sphinx, doctree: nodes.document) -> None:
    """Take away values that nobody can read: those of whole tables, which say where objects lie in memory."""
    for said in list(doctree.findall(addnodes.desc_annotation)):
        text = said.astext().lstrip()
        if text.startswith("=") and (len(text) > LONGEST_VALUE or " at 0x" in text):
            said.parent.remove(said)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", shield, priority=400)
    app.connect("autodoc-process-docstring", structure)
    app.connect("doctree-read", shorten)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
