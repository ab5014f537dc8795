"""`expertcache store info`: what a model's files hold and how it lies in them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from expertcache_reference.cli import options
from expertcache_reference.cli.console import count, measured, print_json, print_table
from expertcache_reference.cli.failures import printable
from expertcache_reference.cli.pack import ModelPath, TopK
from expertcache_reference.stores import FileStore, open_store, verify
from expertcache_spec.layout import reads_of
from expertcache_spec.model import Key, format_size


def store_info(
    model: ModelPath,
    top_k: TopK = None,
    check: Annotated[bool, typer.Option("--verify", help="Read every record and compare.")] = False,
    as_json: options.Json = False,
) -> None:
    """Print the shape, records, sizes, alignment, reads for a record and fingerprint of a store."""
    store = open_store(model, top_k=top_k)
    content = store.fingerprint if store.recorded is not None else None
    if check:
        with measured(f"verifying {options.shown(model)}") as progress:
            content = verify(store, progress=progress)
    facts = described(store) | {"content": content, "verified": check and store.recorded is not None}
    if as_json:
        print_json(facts)
    else:
        _print(store, facts)


def described(store: FileStore) -> dict[str, Any]:
    """What there is to say of a store without reading its records."""
    geometry, layout = store.geometry, store.layout
    reads = {layer: len(reads_of(layout, [Key(layer, 0)])) for layer in geometry.routed}
    return {
        "kind": store.kind,
        "fingerprint": store.fingerprint,
        "layers": geometry.layers,
        "routed": list(geometry.routed),
        "experts": geometry.experts,
        "top_k": geometry.top_k,
        "records": len(layout.extents),
        "record_bytes": {str(layer): geometry.size(layer) for layer in geometry.routed},
        "reads_per_record": {str(layer): count for layer, count in reads.items()},
        "alignment": layout.alignment,
        "bytes": sum(geometry.size(key.layer) for key in layout.extents),
        "files": dict(layout.files),
        "parts": {
            str(layer): [
                {"name": part.name, "dtype": part.dtype, "shape": list(part.shape), "bytes": part.bytes}
                for part in parts
            ]
            for layer, parts in store.model.parts.items()
        },
    }


def _print(store: FileStore, facts: dict[str, Any]) -> None:
    size, files = facts["bytes"], sum(facts["files"].values())
    checked = "every record is as recorded" if facts["verified"] else "not read; --verify reads every record"
    if store.recorded is None:
        checked = "no digests are recorded; pack records them"
    lines = {
        "format": facts["kind"],
        "fingerprint": facts["fingerprint"],
        "content": facts["content"] or "unknown without --verify",
        "geometry": f"{facts['layers']} layers ({len(facts['routed'])} routed), {facts['experts']} experts, "
        f"top-{facts['top_k']}",
        "records": f"{facts['records']}, {size} bytes ({format_size(size)})",
        "files": f"{count(len(facts['files']), 'file')}, {files} bytes ({format_size(files)})",
        "alignment": f"{facts['alignment']} bytes",
        "checked": checked,
    }
    for label, value in lines.items():
        typer.echo(printable(f"{label:12} {value}"))
    print_table("by layers", ("layers", "part", "dtype", "shape", "bytes", "reads for a record"), _rows(facts), left=4)


def _rows(facts: dict[str, Any]) -> list[list[str]]:
    """One row for each part of a run of layers that are alike."""
    runs: list[tuple[list[int], list[dict[str, Any]], int]] = []
    for layer in facts["routed"]:
        parts, reads = facts["parts"][str(layer)], facts["reads_per_record"][str(layer)]
        if runs and runs[-1][1:] == (parts, reads):
            runs[-1][0].append(layer)
        else:
            runs.append(([layer], parts, reads))
    return [
        [
            f"{layers[0]}" if len(layers) == 1 else f"{layers[0]} to {layers[-1]}",
            part["name"],
            part["dtype"],
            " x ".join(map(str, part["shape"])),
            str(part["bytes"]),
            str(reads),
        ]
        for layers, parts, reads in runs
        for part in parts
    ]
