"""The book: chapters in prose, rules and tables out of the code, API pages out of its docstrings."""

import os
import sys
from importlib.metadata import version as installed
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), *(str(HERE.parent / name) for name in ("spec", "reference", "conformance"))]
os.environ["EXPERTCACHE_CONTRACTS"] = "on"  # the rule pages quote them

from expertcache_spec import SPEC_VERSION  # noqa: E402

project = "expertcache"
author = "the expertcache authors"
copyright = "2026 the expertcache authors"
version = SPEC_VERSION
release = f"{SPEC_VERSION} (package {installed('expertcache')})"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    *(() if os.environ.get("EXPERTCACHE_BOOK") == "quick" else ("sphinx.ext.viewcode",)),
    "sphinx.ext.doctest",
    "ruledomain",
    "rulepages",
    "spectables",
    "recordings",
    "facts",
    "benchtables",
    "suitetables",
    "docstrings",
]
exclude_patterns = ["_build", "_ext"]
root_doc = "index"
nitpicky = True
suppress_warnings = ["ref.python"]  # short names that several modules have: any of them will do
# The build needs no network, so nothing outside the project can be linked: these are the packages that signatures name.
nitpick_ignore_regex = [
    ("py:.*", r"(collections|typing|pathlib|types|enum|io|argparse|os|abc|re|contextlib)(\..*)?"),
    ("py:class", r"Stage|Needs|Kind|Temperature|Half|Phase|Array"),  # aliases of literals
    ("py:.*", r"(attrs?|icontract|numpy|sortedcontainers|typer|rich|pytest|hypothesis|jsonschema)(\..*)?"),
]

rule_registry = "expertcache_spec.rules:RULES"
rule_chapters = "expertcache_spec.rules:CHAPTERS"
rule_test_roots = ["tests", "conformance"]
rule_contracts = "expertcache_spec"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True}
default_role = "code"
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries = False  # pages stand in the list beside every page, not members: it is made anew for each

html_theme = "furo"
html_title = f"expertcache {SPEC_VERSION}"
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_show_sphinx = False
