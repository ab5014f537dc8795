"""What is installed with the packages is what they import, no more and no less."""

from __future__ import annotations

import ast
import re
import sys
import tomllib

from .running import ROOT

SHIPPED = ("spec", "reference", "conformance")


def imported() -> set[str]:
    """The top-level packages that anything that ships imports, wherever in it."""
    found: set[str] = set()
    for path in (path for folder in SHIPPED for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add(node.module or "")
    tops = {name.partition(".")[0] for name in found}
    return {name for name in tops - sys.stdlib_module_names if not name.startswith("expertcache_")}


def test_runtime_reader_and_slots_ask_the_system_for_nothing_beside_the_seam() -> None:
    above = ROOT / "reference" / "expertcache_reference"
    for path in (*(above / "runtime").rglob("*.py"), *(above / "reader").rglob("*.py"), above / "slots.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        found = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        found |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        assert not found & {"os", "mmap", "time", "threading", "fcntl", "ctypes"}, path


def test_every_dependency_is_imported_and_every_import_is_a_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed, plot, mlx = (
        {re.split(r"[^\w-]", line)[0] for line in lines}
        for lines in (project["dependencies"], extras["plot"], extras["mlx"])
    )
    assert imported() - plot - mlx == needed
