"""Decoding: the prompt in chunks, then byte after byte, each step with its logits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from expertcache_reference.compute import Serve
from expertcache_reference.compute.records import Array
from expertcache_reference.tinymoe.network import Network, Session
from expertcache_reference.tinymoe.sampling import Sampler
from expertcache_spec.errors import InvalidModel
from expertcache_spec.trace import Phase


class Step(NamedTuple):
    """One pass: the bytes that it read, its logits for what follows each of them, and the byte chosen (or None)."""

    phase: Phase
    text: bytes
    logits: Array
    chosen: int | None


class Decoder:
    """Decodes `tokens` bytes after a prompt; `for step in decoder:` does it step by step, once.

    chunk: bytes of the prompt that one prefill pass reads. Raises `InvalidModel` for an empty prompt (there is nothing
    to begin from), a negative count or a chunk below 1.
    """

    def __init__(
        self, network: Network, serve: Serve, prompt: bytes, tokens: int, sampler: Sampler, *, chunk: int = 64,
        stream: int = 0,
    ) -> None:  # fmt: skip
        if not prompt or tokens < 0 or chunk < 1:
            raise InvalidModel(
                f"{len(prompt)} bytes of prompt, {tokens} tokens, chunks of {chunk}",
                where="decode",
                cure="give a prompt, 0 or more tokens, chunks of 1 byte or more",
            )
        self._session, self._sampler = Session(network, serve, stream), sampler
        self._prompt, self._tokens, self._chunk = prompt, tokens, chunk

    def __iter__(self) -> Iterator[Step]:
        """Prefill passes, the last of which chooses the first byte; then a decode pass for each byte but the last."""
        starts = range(0, len(self._prompt), self._chunk)
        chosen: int | None = None
        for start in starts:
            text = self._prompt[start : start + self._chunk]
            logits = self._session.feed(text, "prefill")
            if start == starts[-1] and self._tokens:
                chosen = self._sampler.choose(logits[-1])
            yield Step("prefill", text, logits, chosen)
        for left in range(self._tokens - 1, 0, -1):
            assert chosen is not None, "there were tokens to choose"
            text = bytes([chosen])
            logits = self._session.feed(text, "decode")
            chosen = self._sampler.choose(logits[-1])
            yield Step("decode", text, logits, chosen)
            del left
