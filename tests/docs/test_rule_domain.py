"""The rule domain of the book fails a build for each of the things that it promises to notice."""

from __future__ import annotations

from typing import Any

import pytest


def test_a_project_in_order_builds_without_a_warning(project: Any) -> None:
    built = project.build()
    assert not built.failed, built.warnings
    assert "rules/XC-TINY-001.html" in built.pages


@pytest.mark.parametrize("how", [".. rule:: XC-TINY-999", "See :rule:id:`XC-TINY-999`."], ids=["directive", "role"])
def test_an_unknown_id_fails(project: Any, how: str) -> None:
    project.chapter = f"Chapter\n=======\n\n.. rule:: XC-TINY-001\n\n{how}\n"
    built = project.build()
    assert built.failed
    assert "no rule XC-TINY-999" in built.warnings


def test_a_rule_that_no_chapter_shows_fails(project: Any, rule: Any) -> None:
    project.rules.append(rule("XC-TINY-002"))
    project.cited.append("XC-TINY-002")
    project.chapter = "Chapter\n=======\n\n.. rule:: XC-TINY-001\n"
    built = project.build()
    assert built.failed
    assert "no chapter shows XC-TINY-002 [rule.undocumented]" in built.warnings
    assert "no chapter shows XC-TINY-001" not in built.warnings


def test_a_rule_that_two_chapters_show_fails(project: Any) -> None:
    project.extra["docs/other.rst"] = ":orphan:\n\nOther\n=====\n\n.. rule:: XC-TINY-001\n"
    built = project.build()
    assert built.failed
    assert "XC-TINY-001 is shown in" in built.warnings


def test_a_must_without_a_test_fails(project: Any) -> None:
    project.cited = []
    built = project.build()
    assert built.failed
    assert "no test cites XC-TINY-001, a MUST [rule.untested]" in built.warnings


def test_a_should_without_a_test_passes(project: Any, rule: Any) -> None:
    project.rules, project.cited = [rule("XC-TINY-001", level="SHOULD")], []
    built = project.build()
    assert not built.failed, built.warnings


@pytest.mark.parametrize("subject", ["tinyspec:question", "nowhere:answer", "tinyspec:answer.more", ""])
def test_a_subject_that_does_not_resolve_fails(project: Any, rule: Any, subject: str) -> None:
    project.rules = [rule("XC-TINY-001", subject=subject)]
    built = project.build()
    assert built.failed
    assert "XC-TINY-001 has no subject" in built.warnings


def test_a_subject_without_an_entry_in_the_reference_fails(project: Any, rule: Any) -> None:
    project.rules = [rule("XC-TINY-001", subject="tinyspec:RULES")]
    built = project.build()
    assert built.failed
    assert "tinyspec.RULES" in built.warnings


def test_a_test_that_cites_no_rule_of_the_registry_fails(project: Any) -> None:
    project.cited.append("XC-TINY-777")
    built = project.build()
    assert built.failed
    assert "test_the_answer_is_right cites XC-TINY-777, which is no rule [rule.unknown]" in built.warnings


def test_a_rule_page_shows_sentence_contract_and_tests_and_links_to_the_chapter(project: Any) -> None:
    page = project.build().pages["rules/XC-TINY-001.html"]
    assert "The answer is 42." in page
    assert 'href="../chapter.html#XC-TINY-001"' in page
    assert 'href="../index.html#tinyspec.answer"' in page
    assert "result</span>" in page
    assert "42</span>" in page
    assert "tests/test_tiny.py" in page
    assert "test_the_answer_is_right" in page


def test_the_role_links_across_pages_to_the_page_of_the_rule(project: Any) -> None:
    project.extra["docs/index.rst"] = (
        "Tiny\n====\n\nSee :rule:id:`XC-TINY-001`.\n\n.. py:module:: tinyspec\n.. py:function:: answer()\n\n"
        ".. toctree::\n\n   chapter\n   rules/TINY\n"
    )
    built = project.build()
    assert not built.failed, built.warnings
    assert 'href="rules/XC-TINY-001.html"' in built.pages["index.html"]


def test_the_inventory_names_every_rule(project: Any) -> None:
    from sphinx.util.inventory import InventoryFile

    project.build()
    inventory = InventoryFile.loads((project.root / "docs/_build/html/objects.inv").read_bytes(), uri="")
    assert inventory.data["rule:rule"]["XC-TINY-001"].uri == "rules/XC-TINY-001.html"


def test_parallel_reading_finds_what_one_reader_finds(project: Any, rule: Any) -> None:
    project.rules = [rule(f"XC-TINY-{number:03}") for number in range(1, 13)]
    project.cited = [each["id"] for each in project.rules]
    project.extra["docs/other.rst"] = ":orphan:\n\nOther\n=====\n\n.. rule:: XC-TINY-012\n"
    built = project.build(parallel=2)
    assert "XC-TINY-012 is shown in" in built.warnings
    assert "no chapter shows" not in built.warnings
    assert "XC-TINY-007.html" in built.pages["chapter.html"]


def test_a_rule_that_is_gone_leaves_no_page(project: Any, rule: Any) -> None:
    stale = project.root / "docs" / "rules" / "XC-TINY-009.rst"
    stale.parent.mkdir(parents=True)
    stale.write_text("XC-TINY-009\n===========\n\n.. rule-page:: XC-TINY-009\n")
    built = project.build()
    assert not stale.exists()
    assert not built.failed, built.warnings


def test_the_matrix_counts_the_tests_of_each_file_and_changes_go_by_version(project: Any, rule: Any) -> None:
    project.rules = [rule("XC-TINY-001", since="0.9"), rule("XC-TINY-002", since="0.10", level="SHOULD")]
    project.extra["docs/tables.rst"] = (
        ":orphan:\n\nTables\n======\n\n.. rule-matrix::\n\n.. rule-table:: TINY\n\n.. rule-changes::\n"
    )
    built = project.build()
    assert not built.failed, built.warnings
    page = built.pages["tables.html"]
    assert page.index("Version 0.10") < page.index("Version 0.9")
    assert "<strong>none</strong>" in page
