"""Folders that `pack` writes: one file a layer (`layers`), or one file of blocks with an index (`blocks`).

The records of a layer lie in one file, each whole, its parts end to end; `manifest.json` says at which offsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from expertcache_reference.stores.contents import Files, check_found, probe
from expertcache_reference.stores.manifest import Fields, Manifest, decode
from expertcache_reference.stores.reading import MAX_HEADER, Opened, Opener, parsed
from expertcache_reference.stores.store import FileStore
from expertcache_spec.layout import Extent, FoundFile, Layout, Shape, broken_laws, fingerprint
from expertcache_spec.layout.files import WrongFile
from expertcache_spec.model import Key

INDEX = "manifest.json"
NAMES = {"layers": "packed-layers", "blocks": "record-blocks"}
"""The kinds that are folders, and what the specification calls their layouts."""

Offsets = Mapping[int, tuple[str, list[int]]]
"""For every routed layer its file, and where in it each record begins."""


def laid(kind: str, shape: Shape, offsets: Offsets, files: Mapping[str, int], alignment: int) -> Layout:
    """The layout of records that lie whole at the offsets."""

    def place(key: Key) -> tuple[Extent, ...]:
        file, starts = offsets[key.layer]
        start, found = starts[key.expert], []
        for size in shape.parts[key.layer].values():
            found.append(Extent(file, start, size))
            start += size
        return tuple(found)

    return Layout(NAMES[kind], shape, place, files, alignment)


def index(manifest: Manifest, layout: Layout) -> dict[str, Any]:
    """The JSON object of `manifest.json`."""
    experts = range(layout.shape.experts)
    starts = {layer: [layout.place(Key(layer, expert))[0] for expert in experts] for layer in layout.shape.parts}
    return {
        **manifest.as_json(),
        "offsets": {str(layer): [found[0].file, [each.offset for each in found]] for layer, found in starts.items()},
        "sizes": dict(layout.files),
        "fingerprint": fingerprint(layout, manifest.content),
    }


def open_folder(folder: Path, machine: Opener) -> FileStore:
    """The store of a folder with a manifest; raises `WrongFile` unless everything is as recorded (XC-LAYOUT-009)."""
    where = str(folder / INDEX)
    with Opened(folder / INDEX, machine) as file:
        if file.size > MAX_HEADER:
            raise WrongFile(f"a manifest of {file.size} bytes", where=where, cure=f"at most {MAX_HEADER}: is it one?")
        fields = Fields(parsed(file.read(0, file.size), where), where)
    manifest = decode(fields.value, where)
    if manifest.kind not in NAMES:
        raise fields.wrong(f"kind {manifest.kind!r} is no folder")
    layout = laid(manifest.kind, manifest.model.shape, _offsets(fields, manifest), _sizes(fields), manifest.alignment)
    broken = broken_laws(layout) if manifest.alignment else ["XC-LAYOUT-003"]
    if broken:
        raise fields.wrong(f"its offsets break {', '.join(broken)}")
    if fields.take("fingerprint", str) != fingerprint(layout, manifest.content):
        raise fields.wrong("its offsets, sizes or shapes do not have its fingerprint")
    check_found(folder, layout, manifest.content, _found(folder, layout, manifest, machine))
    return FileStore(manifest.kind, folder, manifest.model, layout, manifest.content, manifest.records)


def _offsets(fields: Fields, manifest: Manifest) -> Offsets:
    found: dict[int, tuple[str, list[int]]] = {}
    for layer, row in fields.layers("offsets").items():
        file, starts = row if isinstance(row, list) and len(row) == 2 else ("", None)
        if not isinstance(file, str) or not isinstance(starts, list) or len(starts) != manifest.model.geometry.experts:
            raise fields.wrong(f"layer {layer} does not say where its records lie")
        if any(type(start) is not int for start in starts):
            raise fields.wrong(f"layer {layer} has an offset that is no whole number")
        found[layer] = (file, starts)
    if list(found) != list(manifest.model.parts):
        raise fields.wrong("the layers of its offsets are not those of its parts")
    return found


def _sizes(fields: Fields) -> dict[str, int]:
    sizes: dict[str, int] = fields.take("sizes", dict)
    for name, size in sizes.items():
        if type(size) is not int or size < 1 or Path(name).name != name or name in ("", ".", ".."):
            raise fields.wrong(f"{name!r} is no file in the folder, or has no size")
    return sizes


def _found(folder: Path, layout: Layout, manifest: Manifest, machine: Opener) -> dict[str, FoundFile]:
    """What lies where the files should be: a file with other bytes at its ends carries another fingerprint."""
    found, expected = {}, fingerprint(layout, manifest.content)
    with Files(folder, machine) as files:
        for name, size in layout.files.items():
            try:
                opened = files[name]
            except WrongFile as error:
                if isinstance(error.__cause__, FileNotFoundError):
                    continue  # `check_files` says so
                raise
            whole = opened.size == size  # of a file of another size, the size is what is wrong
            same = not whole or probe(layout, name, opened) == manifest.probes.get(name)
            found[name] = FoundFile(opened.size, expected if same else "damaged")
    return found
