"""`expertcache run`: a small real model decodes text while the runtime streams its experts from disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import attrs
import typer

from expertcache_reference.cli import axes, options
from expertcache_reference.cli.console import measured
from expertcache_reference.cli.failures import BAD_TRACE
from expertcache_reference.cli.run_report import say
from expertcache_reference.cli.run_view import Shown, View
from expertcache_reference.compute import BACKENDS
from expertcache_reference.compute.records import Array
from expertcache_reference.runtime import Ahead, Runtime
from expertcache_reference.runtime.ahead import check
from expertcache_reference.system import this_machine
from expertcache_reference.tinymoe import Compared, Decoder, Loaded, Sampler, compare, loaded
from expertcache_reference.traces.atomic import CannotWrite, written
from expertcache_spec.errors import EventTooLarge, InvalidModel

PROMPT = "Quel ramo del lago di Como, che volge a mezzogiorno, "
MOST = 1 << 16
"""Bytes of a prompt and of an answer, at most: the logits of each are kept for --verify, a KiB for every byte."""

Prompt = Annotated[str, typer.Option("--prompt", metavar="TEXT", help="What to go on from.")]
Tokens = Annotated[int, options.number("--tokens", f"Bytes to decode, at most {MOST}.")]
Chunk = Annotated[int, options.number("--chunk", "Bytes of the prompt that one pass reads.")]
Workers = Annotated[int, options.number("--workers", "Threads that read.")]
Chunks = Annotated[int, options.number("--chunks", "Reads that a record is cut into.")]
Seed = Annotated[int, options.number("--seed", "Of the draw.")]
Discipline = Annotated[
    str, typer.Option("--discipline", help="How reads and compute overlap: sync, split:N, staged[:N], pipelined[:N].")
]
Way = Annotated[str, typer.Option("--way", help="How bytes are got: pread or mmap.")]
Compute = Annotated[str, typer.Option("--compute", help=f"One of {', '.join(BACKENDS)}.")]
Temperature = Annotated[float, typer.Option("--temperature", help="0 takes the likeliest byte.")]
Store = Annotated[
    Path | None, typer.Option("--store", metavar="PATH", help="Stream from what `pack` made of the model.")
]
Prefetch = Annotated[
    str | None,
    typer.Option("--prefetch", metavar="PREDICTOR[:NAME=VALUE...]",
                 help="Read guesses behind all demand, into the cache's own slots, as in gate-top-k:displace=any."),
]  # fmt: skip
Log = Annotated[Path | None, typer.Option("--log", metavar="FILE", help="Write the event log, whole or not at all.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file of --log if it exists.")]
Verify = Annotated[
    bool, typer.Option("--verify", help="Decode again without a cache, all in memory, and compare every logit.")
]


def run(
    prompt: Prompt = PROMPT,
    tokens: Tokens = 256,
    policy: options.PolicyName = "lru",
    budget: options.SizeBudget = None,
    slots: options.Slots = None,
    scope: options.Scope = None,
    room: options.Room = None,
    touch: options.Touch = None,
    repeats: options.Repeats = None,
    overflow: options.Overflow = None,
    no_victim: options.NoVictim = None,
    admission: options.Admission = None,
    discipline: Discipline = "split:1",
    workers: Workers = 4,
    chunks: Chunks = 1,
    way: Way = "pread",
    compute: Compute = "numpy",
    temperature: Temperature = 0.0,
    seed: Seed = 0,
    chunk: Chunk = 32,
    store: Store = None,
    prefetch: Prefetch = None,
    log: Log = None,
    force: Force = False,
    verify: Verify = False,
    as_json: options.Json = False,
) -> None:
    """Decode text with the model that ships, its experts streamed through a cache, and report what that took."""
    text, limit = _text(prompt, tokens), options.budget(72 if slots is None and budget is None else slots, budget)[0]
    chosen = options.settings(
        None, scope=scope, room=room, touch=touch, repeats=repeats, overflow=overflow, no_victim=no_victim,
        admission=admission,
    )  # fmt: skip
    spelled, guesses = options.policy(policy, None), axes.prefetch(prefetch, home="slot")
    if guesses is not None:
        check(guesses)
    look = 0 if guesses is None else guesses.lookahead
    with loaded(compute, store, look) as model, _logged(log, force) as sink:

        def decoder(serve: Any) -> Decoder:
            return Decoder(model.network, serve, text, tokens, Sampler(temperature, seed), chunk=chunk)

        with Runtime(
            model.store, limit, spelled.card, chosen, discipline, workers=workers, chunks=chunks,
            way=way, log=sink, parameters=spelled.parameters,  # type: ignore[arg-type]
        ) as runtime:  # fmt: skip
            ahead = None if guesses is None else Ahead(runtime, guesses)
            serve = runtime.serve if ahead is None else ahead.serve
            with _fitting():
                kept, shown = _decode(decoder(serve), runtime, len(text), tokens, verify)
            told = None if ahead is None else {**ahead.prefetch.described(), "counts": attrs.asdict(ahead.counts)}
        compared = _verified(model, decoder, kept) if verify else None
    facts = {"policy": spelled.text, "budget": attrs.asdict(limit), "discipline": discipline, "way": way,
             "compute": compute, "seed": seed, "temperature": temperature, "weights": model.sha256,
             "prefetch": told}  # fmt: skip
    say(shown, facts, compared, as_json=as_json)
    if compared is not None and compared.first is not None:
        raise typer.Exit(BAD_TRACE)


def _text(prompt: str, tokens: int) -> bytes:
    """The prompt's bytes; raises `InvalidModel` for what is too long to be kept."""
    text = prompt.encode("utf-8", "surrogateescape")
    if len(text) > MOST or tokens > MOST:
        raise InvalidModel(f"{len(text)} bytes and {tokens} to come", where="run", cure=f"give {MOST} at most of each")
    return text


@contextmanager
def _logged(path: Path | None, force: bool) -> Iterator[Callable[[dict[str, Any]], object] | None]:
    """What takes the lines of the log, in a file that has its name when all is well; raises `CannotWrite`."""
    if path is None:
        yield None
        return
    if path.suffix == ".gz":
        raise CannotWrite("the log is plain text", where=str(path), cure="leave .gz out, and compress the file later")
    with written(path, force=force) as file:
        yield lambda line: file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")


@contextmanager
def _fitting() -> Iterator[None]:
    """A pass over fewer bytes asks for fewer experts: so the cure of `EventTooLarge` names that option too."""
    try:
        yield
    except EventTooLarge as error:
        cure = f"{error.cure}; or have a pass read fewer bytes of the prompt with --chunk"
        raise EventTooLarge(error.what, where=error.where, cure=cure) from None


def _decode(
    decoder: Decoder, runtime: Runtime, prompt: int, tokens: int, keep: bool
) -> tuple[list[tuple[Array, int | None]], Shown]:
    """The steps that were asked to be kept, and what to show of all."""
    kept: list[tuple[Array, int | None]] = []
    now = this_machine().now
    shown, since = Shown(prompt, tokens, runtime.report()), now()
    with View(shown) as view:
        for step in decoder:
            if keep:
                kept.append((step.logits, step.chosen))
            shown = shown.after(step, runtime.report(), now() - since)
            view.show(shown)
    return kept, shown


def _verified(model: Loaded, decoder: Callable[[Any], Decoder], kept: list[tuple[Array, int | None]]) -> Compared:
    with measured("decoding again, all in memory") as progress:

        def again() -> Iterator[Any]:
            for number, step in enumerate(decoder(model.resident().serve), 1):
                progress(number, len(kept))
                yield step

        return compare(kept, again())
