"""The book understands docstrings as the packages write them."""

from __future__ import annotations

from typing import Any

import pytest

from expertcache_spec.metrics import ROW_FIELDS, Row
from expertcache_spec.residency import SETTINGS, Settings


@pytest.fixture(name="docstrings")
def _docstrings(rulefacts: Any) -> Any:
    return pytest.importorskip("docstrings")


def test_python_and_indented_text_are_code_and_english_is_not(docstrings: Any) -> None:
    assert docstrings.language(["machine = make()", "for key in machine:", "    use(key)"]) == "python"
    assert docstrings.language(["    anything, as it stands"]) == "text"
    assert docstrings.language(["    x = 1", "    y = 2"]) == "python"
    assert docstrings.language(["A sentence over", "two lines."]) == ""
    assert docstrings.language(["word"]) == ""


def test_every_setting_and_every_count_says_what_it_is(docstrings: Any) -> None:
    tables = pytest.importorskip("spectables")
    assert tables.meanings(Settings).keys() == SETTINGS.keys()
    assert set(tables.meanings(Row)) == set(ROW_FIELDS)


def test_a_field_ends_where_the_next_begins_and_shared_names_share_the_meaning(docstrings: Any) -> None:
    text = "Counts. hits, misses: judged at the start: once. reads: records read."
    assert docstrings.split_fields(Row, text) == (
        "Counts.",
        [("hits, misses", "judged at the start: once."), ("reads", "records read.")],
    )
