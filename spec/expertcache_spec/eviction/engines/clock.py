"""The token clock: when what was counted is halved, and when the counts start again. ds4's, its quirks included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from expertcache_spec.eviction.base import NEVER
from expertcache_spec.eviction.cards import Parameter, Value
from expertcache_spec.model import Geometry
from expertcache_spec.trace import Event


@attrs.define
class TokenClock:
    """Counts decoded tokens at one layer, and says how many halvings are due (XC-EVICT-182).

    halve_every: tokens from one halving to the next, 0 for none. clock_layer: the layer at which a token is counted,
    -1 for the lowest layer that any event has had. clock_phases: `decode`, or `generation` to count the rows of
    verification passes too. reset_at: what starts the counts again besides an explicit reset of history: `prompt`, a
    prefill from position 0, or without positions the first pass of a stream; `stream`, any first pass of a stream,
    wherever it starts; `never`.
    """

    halve_every: int
    clock_layer: int
    clock_phases: str
    reset_at: str
    lowest: int = NEVER
    tokens: int = 0
    halved_at: int = 0

    def begins_anew(self, event: Event) -> bool:
        """Whether the event is the first of a new conversation (XC-EVICT-184). Call it first for every event."""
        self.lowest = min(self.lowest, event.layer)
        if event.layer != self.lowest or self.reset_at == "never":
            return False
        if self.reset_at == "stream" or event.positions is None:
            return event.pass_index == 0 and (self.reset_at == "stream" or event.phase == "prefill")
        return event.phase == "prefill" and event.positions[0] == 0

    def start_anew(self) -> None:
        """The next halving is counted from here."""
        self.halved_at = self.tokens

    def tick(self, event: Event) -> int:
        """Count the event's tokens if this is the layer for it; the halvings that are due."""
        counted = ("decode", "verify") if self.clock_phases == "generation" else ("decode",)
        if event.phase in counted and event.layer == (self.lowest if self.clock_layer < 0 else self.clock_layer):
            self.tokens += len(event.rows)
        return self.due()

    def due(self) -> int:
        """The halvings that are due now and have not been asked for; asking settles them.

        ds4 takes 0 for a clock that was never read, and then only notes the time: in its first conversation, and
        wherever no token was decoded before, the periods begin with the first token instead of before it.
        """
        if self.halved_at == 0 or not self.halve_every:
            self.halved_at = self.tokens
            return 0
        periods = (self.tokens - self.halved_at) // self.halve_every
        self.halved_at += periods * self.halve_every
        return periods


PARAMETERS = (
    Parameter("halve_every", 16, "decoded tokens from one halving to the next; 0 never halves", least=0),
    Parameter("clock_layer", -1, "the layer at which a token is counted; -1 is the lowest layer seen", least=-1),
    Parameter(
        "clock_phases", "generation", "whose rows are tokens: decode, or verify as well", ("decode", "generation")
    ),
    Parameter("reset_at", "prompt", "what starts the counts again", ("prompt", "stream", "never")),
)
"""The parameters that make a clock; a policy may give them other defaults."""


def objections(values: Mapping[str, Value], model: Geometry | None) -> Iterator[tuple[str, str]]:
    """A clock layer that the model does not have: the clock would stand still (for `Card.objections`).

    A dense layer is none of its events' either, but engines do count there (ds4 on GLM): that is theirs to say.
    """
    layer = int(values["clock_layer"])
    if model is not None and layer >= model.layers:
        yield f"clock_layer {layer}, and the model has no layer {layer}", f"a layer up to {model.layers - 1}, or -1"
