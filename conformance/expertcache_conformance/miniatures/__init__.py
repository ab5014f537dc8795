"""The suite's own test subjects: tiny wrong implementations, a sentence each, and odd ones that are right.

`MINIATURES` lists the wrong ones with exactly the rules that must be found broken, `ODDITIES` the legal ones. Each is
an implementation: `--impl expertcache_conformance.miniatures:fifo_sold_as_lru`.
"""

from __future__ import annotations

from typing import Any

from expertcache_conformance.miniatures.odd import ODDITIES
from expertcache_conformance.miniatures.subject import Miniature
from expertcache_conformance.miniatures.wrong import MINIATURES

__all__ = ["MINIATURES", "ODDITIES", "Miniature"]


def __getattr__(name: str) -> Any:
    """A miniature or an oddity by name."""
    for subject in (*MINIATURES, *ODDITIES):
        if subject.name == name:
            return subject
    raise AttributeError(name)
