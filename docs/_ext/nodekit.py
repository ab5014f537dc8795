"""Small builders of document nodes: the directives build nodes, never markup, so that any host parser will do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from docutils import nodes
from sphinx import addnodes

Content: TypeAlias = str | nodes.Node | Sequence[nodes.Node]


def inline(content: Content) -> list[nodes.Node]:
    """Content as a list of inline nodes; text between backticks becomes code."""
    if isinstance(content, str):
        parts = content.split("`")
        return [nodes.literal(text=part) if odd % 2 else nodes.Text(part) for odd, part in enumerate(parts) if part]
    return [content] if isinstance(content, nodes.Node) else list(content)


def paragraph(content: Content, *classes: str) -> nodes.paragraph:
    """One paragraph."""
    return nodes.paragraph("", "", *inline(content), classes=list(classes))


def bullets(items: Iterable[Content]) -> nodes.bullet_list:
    """One bullet list."""
    return nodes.bullet_list("", *(nodes.list_item("", paragraph(item)) for item in items))


def sentence(text: str) -> str:
    """Text that begins with a capital letter, unless its first word is a name or code."""
    return text[:1].upper() + text[1:] if text.partition(" ")[0].strip(",").isalpha() else text


def facts(pairs: Iterable[tuple[str, Content]]) -> nodes.field_list:
    """A list of named facts about one thing."""
    return nodes.field_list(
        "",
        *(
            nodes.field(
                "",
                nodes.field_name(text=name),
                nodes.field_body("", paragraph(sentence(content) if isinstance(content, str) else content)),
            )
            for name, content in pairs
        ),
    )


def table(header: Sequence[Content], rows: Iterable[Sequence[Content]], *classes: str) -> nodes.table:
    """A table with one header row."""

    def row(cells: Sequence[Content]) -> nodes.row:
        return nodes.row("", *(nodes.entry("", paragraph(cell)) for cell in cells))

    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in header), cols=len(header))
    group += nodes.thead("", row(header))
    group += nodes.tbody("", *map(row, rows))
    return nodes.table("", group, classes=list(classes))


def code(source: str, language: str = "python") -> nodes.literal_block:
    """A highlighted block."""
    return nodes.literal_block(source, source, language=language)


def reference(domain: str, role: str, target: str, docname: str, text: str = "") -> addnodes.pending_xref:
    """A cross-reference that warns when its target does not exist."""
    name = nodes.literal(text=text or target) if domain == "py" else nodes.inline(text=text or target)
    return addnodes.pending_xref(
        "", name, refdomain=domain, reftype=role, reftarget=target, refdoc=docname, refexplicit=bool(text),
        refwarn=True,
    )  # fmt: skip
