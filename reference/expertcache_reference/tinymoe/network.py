"""The tiny model in numpy: bytes in, logits out, one event of routing a layer and call."""

from __future__ import annotations

from typing import Any

import numpy as np

from expertcache_reference.compute import Backend, Serve, mixture
from expertcache_reference.compute.records import Array
from expertcache_reference.tinymoe.attention import Window
from expertcache_reference.tinymoe.weights import Dense, Layer
from expertcache_spec.trace import Event, Phase


def normed(x: Array, weight: Array, epsilon: float) -> Array:
    """Each row divided by its root mean square."""
    square: Any = np.mean(x * x, axis=-1, keepdims=True, dtype=np.float32)
    found: Array = x / np.sqrt(square + np.float32(epsilon)) * weight
    return found


def softmax(x: Array) -> Array:
    """Of each row."""
    raised = np.exp(x - x.max(-1, keepdims=True))
    found: Array = raised / raised.sum(-1, keepdims=True)
    return found


class Network:
    """The model: its dense part, and a backend for its experts.

    look: for how many layers ahead an event carries the scores of their routers (`Event.lookahead`).
    """

    def __init__(self, dense: Dense, backend: Backend, look: int = 0) -> None:
        self.dense, self.backend, self.look = dense, backend, look

    def scores(self, x: Array, layer: Layer) -> tuple[Array, Array]:
        """A layer's inputs to its experts, (rows, width), and its router's logits, (rows, experts)."""
        inputs = normed(x, layer.experts_norm, self.dense.shape.epsilon)
        return inputs, inputs @ layer.router.T

    def event(self, x: Array, number: int, session: Session, phase: Phase) -> tuple[Event, Array]:
        """What the layer asks for with hidden states `x`, and its experts' inputs.

        Scores are softmax over all experts; a row's experts are the best, of equal ones the lower id, and its weights
        the softmax over their logits.
        """
        dense = self.dense
        inputs, logits = self.scores(x, dense.layers[number])
        best = np.argsort(-logits, axis=-1, kind="stable")[:, : dense.shape.top_k]
        weights = softmax(np.take_along_axis(logits, best, -1))
        ahead = [softmax(self.scores(x, layer)[1]) for layer in dense.layers[number + 1 : number + 1 + self.look]]
        event = Event(
            number, tuple(map(tuple, best.tolist())), session.stream, session.passes, phase,
            weights=_matrix(weights), scores=_matrix(softmax(logits)),
            lookahead=tuple(map(_matrix, ahead)) if self.look else None,
            positions=tuple(range(session.position, session.position + len(x))),
        )  # fmt: skip
        return event, inputs


def _matrix(values: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, values.tolist()))


class Session:
    """One stream: what it has read so far, and who serves its experts."""

    def __init__(self, network: Network, serve: Serve, stream: int = 0) -> None:
        self.network, self.serve, self.stream = network, serve, stream
        self.position = self.passes = 0
        self._windows = [Window(network.dense.shape) for _ in network.dense.layers]

    def feed(self, text: bytes, phase: Phase) -> Array:
        """One pass over the bytes, all rows at once; the logits of (rows, 256), each for the byte that follows.

        Raises what serving raises; then the session is spoiled, as some layers have seen the bytes and some have not.
        """
        network, dense = self.network, self.network.dense
        x: Array = dense.embedding[np.frombuffer(text, np.uint8)]
        for number, (layer, window) in enumerate(zip(dense.layers, self._windows, strict=True)):
            x = x + window.attend(normed(x, layer.attention_norm, dense.shape.epsilon), layer, self.position)
            event, inputs = network.event(x, number, self, phase)
            x = x + mixture(event, inputs, self.serve, network.backend)
        self.position, self.passes = self.position + len(text), self.passes + 1
        logits: Array = normed(x, dense.norm, dense.shape.epsilon) @ dense.head.T
        return logits
