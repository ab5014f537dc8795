"""Dirt that is well formed: start-up dummies, doubled tokens, copied layers. Suspicious, so warned about, not refused.

Each of the three was found in public captures: profiling passes of thousands of identical rows before the first
request, tokens logged twice, and files in which later layers are byte for byte the earlier ones. Short rows repeat by
chance; nothing is said about fewer than `ENOUGH` selections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from expertcache_spec.trace import Event, Matrix

ENOUGH = 16
"""Selections that must agree before it is called no coincidence."""

DUMMIES = 32
"""Identical rows from the start of a layer before they are called dummies."""


@attrs.define
class _Layer:
    """What is remembered of one layer: its first row, how many repeat it from the start on, and a hash of all rows."""

    first: tuple[int, ...]
    leading: int = 0
    ended: bool = False
    selections: int = 0
    digest: int = 0


@attrs.define
class _Tokens:
    """What is remembered of one stream: the token rows of the present pass as hashes, and the last token before it."""

    number: int = -1
    rows: int = 0
    selections: int = 0
    hashes: list[int] = attrs.field(factory=list)
    last: int | None = None


@attrs.define
class Watch:
    """Sees every event once and then says what is suspicious; memory for one row of each layer and stream.

    Hashes are Python's own; they are compared within one run only.
    """

    layers: dict[int, _Layer] = attrs.field(factory=dict)
    streams: dict[int, _Tokens] = attrs.field(factory=dict)
    doubled: int = 0
    where_doubled: str = ""

    def through(self, events: Iterable[Event], notes: list[str]) -> Iterator[Event]:
        """The events, watched; the findings are added to `notes` at the end."""
        for event in events:
            self._see_layer(event)
            self._see_token(event)
            yield event
        for stream in self.streams:
            self._close(stream)
        notes += self.findings()

    def _see_layer(self, event: Event) -> None:
        layer = self.layers.setdefault(event.layer, _Layer(event.rows[0]))
        layer.digest = hash((layer.digest, event.stream, event.pass_index, event.rows, event.weights))
        for row in event.rows:
            layer.selections += len(row)
            layer.ended = layer.ended or row != layer.first
            layer.leading += not layer.ended

    def _see_token(self, event: Event) -> None:
        tokens = self.streams.setdefault(event.stream, _Tokens())
        if event.pass_index != tokens.number:
            self._close(event.stream)
            tokens.number, tokens.rows, tokens.selections = event.pass_index, len(event.rows), 0
            tokens.hashes = [0] * len(event.rows)
        if event.phase == "verify" or len(event.rows) != tokens.rows:
            return  # the last layer of a prompt routes one row; a verifier may see a rejected token again
        tokens.selections += len(event.rows[0])
        weights: Matrix = event.weights or ((),) * tokens.rows
        tokens.hashes = [
            hash((before, event.layer, row, weight))
            for before, row, weight in zip(tokens.hashes, event.rows, weights, strict=True)
        ]

    def _close(self, stream: int) -> None:
        """The present pass of the stream is over: compare each of its tokens with the one before."""
        tokens = self.streams[stream]
        for value in tokens.hashes:
            if value == tokens.last and tokens.selections >= ENOUGH:
                self.doubled += 1
                self.where_doubled = self.where_doubled or f"stream {stream} pass {tokens.number}"
            tokens.last = value
        tokens.hashes = []

    def findings(self) -> list[str]:
        """One sentence for each kind of dirt that was seen."""
        found = []
        if self.doubled:
            found.append(
                f"{self.doubled} tokens are exactly the token before, in every layer, first in {self.where_doubled}: "
                "doubled in the capture?"
            )
        dummies = {number: x.leading for number, x in self.layers.items() if x.leading >= DUMMIES}
        if dummies:
            most = max(dummies.values())
            found.append(
                f"rows 1 to {most} are identical in layer {min(dummies)} and {len(dummies) - 1} others: "
                "start-up dummies? remove them before trusting a hit rate"
            )
        copies: dict[int, list[int]] = {}
        for number, layer in sorted(self.layers.items()):
            if layer.selections >= ENOUGH:
                copies.setdefault(layer.digest, []).append(number)
        found += [
            f"layers {', '.join(map(str, same))} are identical, row for row: copied in the capture?"
            for same in copies.values()
            if len(same) > 1
        ]
        return found
