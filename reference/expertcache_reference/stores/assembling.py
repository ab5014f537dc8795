"""Assembling a store from the headers of its files, with everything checked that can be without reading a record."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from expertcache_reference.stores.contents import Files, check_found, probe
from expertcache_reference.stores.manifest import Manifest, decode
from expertcache_reference.stores.reading import Opener, compact, parsed
from expertcache_reference.stores.stacked import Held, experts_of, held, layout_of, parts_of
from expertcache_reference.stores.store import FileStore, Model, geometry_of
from expertcache_reference.stores.tensors import DAMAGED, Header
from expertcache_spec.errors import InvalidModel
from expertcache_spec.layout import FoundFile, Layout, broken_laws, fingerprint
from expertcache_spec.layout.files import WrongFile

RECORDS = "records"
"""What the one file of a format with its manifest inside is called in the probes: it may be renamed."""


def assembled(
    kind: str, folder: Path, headers: Sequence[Header], numbers: Mapping[str, int], top_k: int | None, machine: Opener
) -> FileStore:
    """The store of these files.

    numbers: what files beside them or they themselves state of experts, top_k and layers. Raises `WrongFile` where they
    do not hold the experts of one model, whole, or not what their manifest says.
    """
    where = str(folder / headers[0].file)
    tensors = held((tensor for header in headers for tensor in header.tensors), where)
    manifest = _manifest(kind, headers, where)
    model = _plain(tensors, headers[0].about, numbers, top_k, where) if manifest is None else manifest.model
    if manifest is not None:
        _check_manifest(manifest, tensors, where)
    layout = layout_of(model.shape, tensors, {header.file: header.expected for header in headers})
    _check_sizes(layout, folder, headers)
    broken = broken_laws(layout)
    if broken:
        raise WrongFile(f"its tensors break {', '.join(broken)}", where=where, cure=DAMAGED)
    with Files(folder, machine) as files:
        probes = {name: probe(layout, name, files[name]) for name in layout.files}
    if manifest is None:
        name = _name(headers, probes)
        return FileStore(kind, folder, model, layout, name)
    if list(probes.values()) != [manifest.probes.get(RECORDS)]:
        raise WrongFile("holds other bytes than were recorded", where=where, cure=DAMAGED)
    return FileStore(kind, folder, model, layout, manifest.content, manifest.records)


def _manifest(kind: str, headers: Sequence[Header], where: str) -> Manifest | None:
    text = headers[0].manifest
    if text is None:
        return None
    found = decode(parsed(text.encode(), where), where)
    if found.kind != kind or len(headers) > 1:
        raise WrongFile("has the manifest of another file", where=where, cure=DAMAGED)
    return found


def _check_manifest(manifest: Manifest, tensors: Held, where: str) -> None:
    """The tensors are those of the manifest: as many experts, and parts of as many bytes."""
    experts = experts_of(tensors, where)
    found = {
        layer: {part.name: part.bytes for part in parts} for layer, parts in parts_of(tensors, experts, where).items()
    }
    if experts != manifest.model.geometry.experts or found != manifest.model.shape.parts:
        raise WrongFile("its tensors are not those of its manifest", where=where, cure=DAMAGED)


def _plain(
    tensors: Held, about: Mapping[str, str], numbers: Mapping[str, int], given: int | None, where: str
) -> Model:  # fmt: skip
    """The model of files that `pack` did not write."""
    experts = experts_of(tensors, where)
    parts = parts_of(tensors, experts, where)
    top_k = numbers.get("top_k", given)
    if top_k is None:
        raise WrongFile(
            "does not say how many experts a token asks for",
            where=where,
            cure="put its config.json beside it, or state it with --top-k",
        )
    if "top_k" not in numbers and not 1 <= top_k <= experts:
        raise WrongFile(f"has {experts} experts", where=where, cure=f"state a --top-k from 1 to {experts}, not {top_k}")
    if numbers.get("experts", experts) != experts:
        raise WrongFile(f"says {numbers['experts']} experts, holds {experts}", where=where, cure=DAMAGED)
    layers = max(numbers.get("layers", 0), max(tensors) + 1)
    if layers > 10**6:
        raise WrongFile(f"says {layers} layers", where=where, cure=DAMAGED)
    try:
        return Model(geometry_of(layers, experts, top_k, parts), parts, about)
    except InvalidModel as error:
        raise WrongFile(f"describes no model: {error.what}", where=where, cure=DAMAGED) from error


def _check_sizes(layout: Layout, folder: Path, headers: Sequence[Header]) -> None:
    """Every file has the size that its header asks for; the first record that a short one lacks is named."""
    name = fingerprint(layout, "")
    check_found(folder, layout, "", {header.file: FoundFile(header.size, name) for header in headers})
    for header in headers:
        if header.size != header.expected:
            raise WrongFile(
                f"{header.size} bytes, expected {header.expected}", where=str(folder / header.file), cure=DAMAGED
            )


def _name(headers: Sequence[Header], probes: Mapping[str, str]) -> str:
    """A name for files that record none: of their headers and the ends of their records, not of every byte."""
    found = hashlib.sha256()
    for header in headers:
        rows = [[t.name, t.dtype, t.shape, t.offset, t.bytes] for t in header.tensors]
        found.update(compact([header.size, rows, probes.get(header.file)]).encode())
    return f"header:{found.hexdigest()}"
