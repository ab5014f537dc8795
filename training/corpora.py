"""The three domains as bytes, split into train, validation and test."""

from __future__ import annotations

import hashlib
import lzma
import sysconfig
from pathlib import Path

import attrs

HERE = Path(__file__).parent / "corpora"
STRIPE = 32 * 1024
"""Bytes of a stripe of text; of every 16 in turn one is for validation, one for test, the others train."""
ROLES = {4: "validation", 12: "test"}


@attrs.frozen
class Corpus:
    """One domain: its bytes by role, and what the recipe says of it."""

    name: str
    train: bytes
    validation: bytes
    test: bytes
    about: dict[str, object]


def _split(name: str, text: bytes, about: dict[str, object]) -> Corpus:
    roles: dict[str, list[bytes]] = {"train": [], "validation": [], "test": []}
    for number, start in enumerate(range(0, len(text), STRIPE)):
        roles[ROLES.get(number % 16, "train")].append(text[start : start + STRIPE])
    joined = {role: b"".join(stripes) for role, stripes in roles.items()}
    about |= {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    about |= {f"{role}_bytes": len(found) for role, found in joined.items()}
    return Corpus(name, about=about, **joined)


def _packed(name: str, file: str) -> Corpus:
    return _split(name, lzma.decompress((HERE / file).read_bytes()), {"file": file})


def _python() -> Corpus:
    """The top-level modules of the running interpreter's standard library, by name, with their hashes."""
    paths = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"), key=lambda path: path.name)
    found = {path.name: path.read_bytes() for path in paths}
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in found.items()}
    about: dict[str, object] = {"version": sysconfig.get_python_version(), "files": hashes}
    return _split("python", b"\n".join(found.values()), about)


def corpora() -> list[Corpus]:
    """Italian, Python and English, in this order."""
    return [_packed("italian", "promessi_sposi.txt.xz"), _python(), _packed("english", "kjv_narrative.txt.xz")]
