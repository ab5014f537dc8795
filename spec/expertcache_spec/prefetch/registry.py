"""The predictors by name, with their parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import attrs

from expertcache_spec.errors import UnknownName
from expertcache_spec.eviction.cards import Parameter, Value, completed
from expertcache_spec.model import Geometry
from expertcache_spec.prefetch import gates, predictors
from expertcache_spec.prefetch.predictors import Predictor, target_of
from expertcache_spec.trace import Event


@attrs.frozen(slots=False)
class PredictorCard:
    """One named predictor.

    rule: id of the rule that states it. build: makes a fresh one, given the geometry and the parameters by name, and
    `future` (target to event) when `offline`.
    """

    name: str
    rule: str
    build: Callable[..., Predictor]
    summary: str
    source: str
    parameters: tuple[Parameter, ...] = ()
    offline: bool = False

    def complete(self, given: Mapping[str, Value]) -> dict[str, Value]:
        """Every parameter with its value; raises `UnknownName` for one that does not exist or is out of bounds."""
        return completed(self.parameters, given, f"predictor {self.name}")


_OVERFETCH = Parameter("overfetch", 1.0, "how many times top-k is fetched", least=0.0, most=1e6)

PREDICTORS: Mapping[str, PredictorCard] = MappingProxyType(
    {
        card.name: card
        for card in (
            PredictorCard("none", "XC-PREFETCH-010", lambda geometry: Predictor(), "nothing", "most engines"),
            PredictorCard(
                "previous-token", "XC-PREFETCH-001", predictors.PreviousToken,
                "what the stream's latest pass asked of the layer", "Flash-MoE, gorroai",
            ),
            PredictorCard(
                "pair-table", "XC-PREFETCH-002", predictors.PairTable,
                "followers of the present experts, counted online", "field report",
                parameters=(
                    Parameter("partners", 16, "followers that an expert keeps", least=1, most=1 << 20), _OVERFETCH,
                ),
            ),
            PredictorCard(
                "gate-top-k", "XC-PREFETCH-003", gates.GateTopK,
                "the next layers' gates on the present hidden state, top-k", "SpecMD, Mixtral-offloading, HOBBIT",
                parameters=(_OVERFETCH,),
            ),
            PredictorCard(
                "gate-percentile", "XC-PREFETCH-004", gates.GatePercentile,
                "the same gates, every score above a percentile", "SpecMD",
                parameters=(
                    Parameter("percentile", 80, "of the pool, in hundredths", least=0, most=100),
                    Parameter(
                        "pool", "own_layer", "whose percentile", choices=("own_layer", "running_global", "fixed")
                    ),
                    Parameter("threshold", 0.0, "the score to exceed, under pool fixed"),
                    Parameter("history", 65_536, "scores that the running pool holds", least=1, most=1 << 24),
                ),
            ),
            PredictorCard(
                "oracle", "XC-PREFETCH-006", predictors.Oracle, "what will be asked for: the upper bound",
                "SpecMD, field report", offline=True,
            ),
        )
    }
)  # fmt: skip
"""Predictor name to card."""


def predictor(name: str | PredictorCard) -> PredictorCard:
    """The card of a predictor, or the card itself; raises `UnknownName`, listing the known ones."""
    if isinstance(name, PredictorCard):
        return name
    if name not in PREDICTORS:
        raise UnknownName(f"predictor {name!r}", where="prefetch", cure=f"one of {', '.join(PREDICTORS)}")
    return PREDICTORS[name]


def build(
    name: str | PredictorCard, parameters: Mapping[str, Value], geometry: Geometry, events: Sequence[Event]
) -> Predictor:
    """A fresh predictor for one replay of `events`."""
    card = predictor(name)
    extra = {"future": {target_of(event): event for event in events}} if card.offline else {}
    return card.build(geometry=geometry, **card.complete(parameters), **extra)
