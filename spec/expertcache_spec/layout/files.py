"""Files: a layout is used on files that are its own, whole, and of its format, or not at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.layout.placing import Layout


class WrongFile(ExpertCacheError):
    """A file that is not what the layout says: missing, truncated, stale, or of another format."""

    code: ClassVar[str] = "wrong-file"


class FoundFile(NamedTuple):
    """What was found where a layout expects a file: its bytes, and the fingerprint that it carries."""

    size: int
    fingerprint: str


def fingerprint(layout: Layout, content: str) -> str:
    """SHA-256 of the layout's format, shape and placement and of `content`, the name of the model's own bytes.

    A file name says nothing about what is inside: two formats of one model have one name and two fingerprints.
    """
    head = [layout.name, layout.version, layout.alignment, content, dict(layout.files)]
    digest = hashlib.sha256(json.dumps(head).encode())
    for layer, parts in layout.shape.parts.items():
        digest.update(json.dumps([layer, list(parts.items())]).encode())
    for key, extents in layout.extents.items():
        digest.update(json.dumps([key, extents]).encode())
    digest.update(json.dumps([[n, t.base, t.row_bytes] for n, t in layout.tables.items()]).encode())
    return digest.hexdigest()


def check_files(layout: Layout, content: str, found: Mapping[str, FoundFile]) -> None:
    """Raise `WrongFile` unless every file of the layout is there, whole, and carries its fingerprint (XC-LAYOUT-009).

    No byte of a record is read before. The first record that a short file lacks is named.
    """
    expected = fingerprint(layout, content)
    for name, size in layout.files.items():
        if name not in found:
            raise WrongFile("the file is missing", where=name, cure="pack the model again, or name the right folder")
        if found[name].fingerprint != expected:
            raise WrongFile(
                f"damaged, or made for another model or layout: {found[name].fingerprint[:12]}, not {expected[:12]}",
                where=name,
                cure="pack the model again; a file of the same name may have another format",
            )
        if found[name].size != size:
            lacking = next((k for k, es in layout.extents.items() if any(_beyond(e, name, found) for e in es)), None)
            raise WrongFile(
                f"{found[name].size} bytes, expected {size}"
                + (f"; first incomplete record {lacking}" if lacking else ""),
                where=name,
                cure="the file is cut off or has a tail: copy or pack it again",
            )


def _beyond(extent: tuple[str, int, int], name: str, found: Mapping[str, FoundFile]) -> bool:
    return extent[0] == name and extent[1] + extent[2] > found[name].size
