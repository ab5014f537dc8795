"""Record the routing traces that ship: `python training/record.py [--out FOLDER]`, with the weights that ship.

Of each domain one stream on text that was held out: a prompt, read in chunks, then its continuation byte by byte, as if
the model had chosen it. Every event has weights, the scores of all experts, and those that the next layer's router
gives on the same hidden state. Scores are rounded to as few digits as keep their order in each row.
"""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager
from importlib.resources import files
from pathlib import Path

import attrs
import numpy as np
from rich.progress import Progress

from corpora import corpora
from expertcache_reference.compute import Resident, Served
from expertcache_reference.tinymoe import TINY, Network, Session, loaded
from expertcache_reference.traces import write_trace
from expertcache_spec.trace import Event, Matrix, Trace

PROMPT, CHUNK, DECODE = 256, 64, 768
"""Bytes of the prompt, of a prefill pass, and after it."""
DIGITS = range(4, 18)


def order(scores: tuple[float, ...]) -> list[int]:
    """Experts, the best first, of equal ones the lower id."""
    return sorted(range(len(scores)), key=lambda expert: (-scores[expert], expert))


def rounded(scores: Matrix) -> Matrix:
    """Each row in as few significant digits, from four, as keep its order."""
    rows = []
    for row in scores:
        tries = (tuple(float(f"{score:.{digits}g}") for score in row) for digits in DIGITS)
        rows.append(next(tried for tried in tries if order(tried) == order(row)))
    return tuple(rows)


def short(event: Event) -> Event:
    """The event with rounded numbers."""
    assert event.weights is not None, "the model gives them"
    assert event.scores is not None, "the model gives them"
    ahead = None if event.lookahead is None else tuple(map(rounded, event.lookahead))
    weights = tuple(tuple(float(f"{weight:.6g}") for weight in row) for row in event.weights)
    return attrs.evolve(event, weights=weights, scores=rounded(event.scores), lookahead=ahead)


def recorded(network: Network, resident: Resident, text: bytes, progress: Progress) -> tuple[list[Event], float]:
    """The events of the prompt and of what follows, and the bits a byte of what follows."""
    events: list[Event] = []

    def serve(event: Event) -> AbstractContextManager[Served]:
        events.append(short(event))
        return resident.serve(event)

    session, bits = Session(network, serve), 0.0
    for start in range(0, PROMPT, CHUNK):
        last = session.feed(text[start : start + CHUNK], "prefill")[-1]
    for place in progress.track(range(PROMPT, PROMPT + DECODE)):
        logits = last.astype(np.float64) - last.max()
        bits += (np.log(np.exp(logits).sum()) - logits[text[place]]) / np.log(2)
        last = session.feed(text[place : place + 1], "decode")[-1]
    return events, bits / DECODE


def main() -> None:
    """Record all three."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(str(files("expertcache_reference.tinymoe") / "traces")))
    given = parser.parse_args()
    given.out.mkdir(exist_ok=True)
    with loaded() as model, Progress() as progress:
        network, resident = Network(model.network.dense, model.network.backend, look=1), model.resident()
        for domain in corpora():
            events, bits = recorded(network, resident, domain.test[: PROMPT + DECODE], progress)
            about = {
                "source": f"the tiny model that ships with expertcache, weights {model.sha256}",
                "licence": "Apache-2.0",
                "capture": f"{domain.name}: held-out text, {PROMPT} bytes of prompt, {DECODE} decoded as written",
                "changes": "scores rounded, their order kept; lookahead is of the next layer",
                "bits per byte": f"{bits:.4f}",
            }
            trace = Trace(TINY.geometry, tuple(events), f"tinymoe-{domain.name}", about)
            path = given.out / f"{trace.name}.jsonl.gz"
            write_trace(trace, path, force=True)
            progress.console.print(f"{path.name}: {path.stat().st_size} bytes, {bits:.3f} bits a byte")


if __name__ == "__main__":
    main()
