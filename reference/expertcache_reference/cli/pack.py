"""`expertcache pack`: a model's experts from one format of files into another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from expertcache_reference.cli import Ended, options
from expertcache_reference.cli.console import count, measured
from expertcache_reference.cli.failures import printable
from expertcache_reference.stores import KINDS, open_store, pack, verify
from expertcache_reference.stores.work import kept
from expertcache_spec.model import parse_size

ModelPath = Annotated[
    str, typer.Argument(metavar="MODEL", help="A GGUF or safetensors file or folder, or what `pack` wrote.")
]
TopK = Annotated[
    int | None, typer.Option("--top-k", help="Experts a token asks for, where the files do not say it.", min=1)
]


def pack_command(
    model: ModelPath,
    target: Annotated[str, typer.Argument(metavar="OUT", help="A file (gguf, safetensors) or folder to make.")],
    to: Annotated[str, typer.Option("--to", help=f"One of {', '.join(KINDS)}.")],
    align: Annotated[
        str, typer.Option("--align", metavar="SIZE", help="The page on which records begin: 4KiB, 16KiB or 64KiB.")
    ] = "16KiB",
    top_k: TopK = None,
    restart: Annotated[bool, typer.Option("--restart", help="Give up what an unfinished pack has done.")] = False,
    check: Annotated[bool, typer.Option("--verify", help="Read everything again at the end and compare.")] = False,
) -> None:
    """Copy the experts of a model into another format; killed or interrupted, the same command continues."""
    source, alignment, path = open_store(model, top_k=top_k), parse_size(align).bytes, Path(target)
    try:
        with measured(f"packing {options.shown(target)}") as progress:
            store = pack(source, path, to, alignment=alignment, restart=restart, progress=progress)
    except Ended as end:
        if left := kept(path):
            end.said = f"{end.said.partition(';')[0]}; {left}"
        raise
    if check:
        with measured(f"verifying {options.shown(target)}") as progress:
            verify(store, progress=progress)
    records = count(len(store.layout.extents), "record")
    typer.echo(f"{printable(target)}: {records}, {store.fingerprint}{', verified' if check else ''}")
