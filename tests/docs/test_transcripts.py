"""What the book shows of a terminal is what the terminal shows."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```\{code-block\} console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PROGRAMS = {"pytest": ["pytest", "-p", "no:cacheprovider"], "expertcache": ["expertcache_reference.cli"]}
PARTIAL = {"-k", "--impl-list", "--impl-replay"}


def transcripts() -> Iterator[tuple[str, str, str]]:
    """Page, command and output of every terminal block."""
    for page in sorted(DOCS.rglob("*.md")):
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            command, _, output = block.partition("\n")
            yield page.relative_to(DOCS).as_posix(), command.removeprefix("$ "), output


def parameters() -> Iterator[object]:
    for page, command, output in transcripts():
        whole_suite = command.startswith("pytest") and not PARTIAL & set(command.split())
        yield pytest.param(command, output, id=f"{page}: {command}", marks=[pytest.mark.nightly] if whole_suite else [])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader's folder with the files of the tutorial; later commands see what earlier ones wrote."""
    return Path(shutil.copytree(DOCS / "tutorial", tmp_path_factory.mktemp("reader") / "here"))


@cache
def run(command: str, folder: Path) -> str:
    """The output of a command of the book, file patterns expanded as a shell would."""
    program, *words = shlex.split(command)
    arguments = [found for word in words for found in (sorted(map(str, folder.glob(word))) if "*" in word else [word])]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    environment |= {"COLUMNS": "100", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", *PROGRAMS[program], *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
    ).stdout  # fmt: skip


def matches(shown: str, got: str) -> bool:
    """Whether the block, `...` standing for anything, is what was printed."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(shown, got, flags)


@pytest.mark.parametrize(("command", "shown"), list(parameters()))
def test_the_command_prints_what_the_page_shows(folder: Path, command: str, shown: str) -> None:
    if "--impl-replay" in command:
        run("pytest --pyargs expertcache_conformance -q --impl firstcache -k judged_and_protected", folder)
    got = run(command, folder)
    assert matches(shown, got), got


def test_there_are_transcripts_to_check_and_the_check_can_fail() -> None:
    found = list(transcripts())
    assert len(found) >= 6
    assert all(output.strip() for _, _, output in found)
    assert not matches("a ... c\n", "a b d\n")
