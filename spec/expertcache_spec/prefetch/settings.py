"""What a prefetch is, in one object: who predicts, how far, where the bytes wait, and how long reads take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import attrs

from expertcache_spec.errors import InvalidBudget, UnknownName
from expertcache_spec.eviction.cards import Value
from expertcache_spec.model import Budget, Key
from expertcache_spec.prefetch.registry import PredictorCard, predictor

Home = Literal["staging", "slot"]
Displace = Literal["nothing", "stale", "any"]

BOUNDS = (("lookahead", 1, 1024), ("latency", 0, None), ("width", 1, None), ("idle", 1, None), ("queue", 1, None))
"""Name, least and most of every number. Each event costs as many predictions as it looks ahead: 1024 layers are
several passes of the deepest models."""


@attrs.frozen(slots=False)
class Prefetch:
    """One way to prefetch; `replay` takes it.

    predictor, parameters: who predicts. lookahead: for how many routed layers ahead, each event anew; at most 1024.
    wrap: whether beyond the last layer it goes on in the next pass. home: `staging` keeps the bytes outside the cache,
    `slot` in it. cap: of staging, slots or bytes; charged from the moment a prediction is taken; `none` needs none.
    displace: what a prefetch into slots may evict: nothing, what is stale, or anything that nothing holds. idle: how
    many events of its layer make a record stale. stamps: whether a prefetch into slots counts as a touch. latency:
    events that a speculative read takes when nothing delays it; 0 for none, as simulators have it. width: reads in
    service at once, those on demand first. queue: tickets that may wait for their read. profile: keys to seed before
    the first event.

    Raises `UnknownName` for a value that does not exist, `InvalidBudget` for a staging home without a cap.
    """

    predictor: str | PredictorCard = "none"
    parameters: Mapping[str, Value] = attrs.field(factory=dict)
    lookahead: int = 1
    wrap: bool = True
    home: Home = "staging"
    cap: Budget | None = attrs.field(
        default=attrs.Factory(
            lambda self: Budget(0) if (self.predictor, self.home) == ("none", "staging") else None, takes_self=True
        )
    )
    displace: Displace = "nothing"
    idle: int = 1
    stamps: bool = True
    latency: int = 1
    width: int = 8
    queue: int = 64
    profile: tuple[Key, ...] = ()

    def __attrs_post_init__(self) -> None:
        predictor(self.predictor).complete(self.parameters)
        for name, known in (("home", get_args(Home)), ("displace", get_args(Displace))):
            if getattr(self, name) not in known:
                raise UnknownName(
                    f"{name} {getattr(self, name)!r}", where="prefetch", cure=f"one of {', '.join(known)}"
                )
        for name, least, most in BOUNDS:
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= (value if most is None else most):
                cure = f"a whole number from {least}" + ("" if most is None else f" to {most}")
                raise UnknownName(f"{name} = {value!r}", where="prefetch", cure=cure)
        if self.home == "staging" and self.cap is None:
            raise InvalidBudget("staging without a cap", where="prefetch", cure="give slots or bytes, charged apart")
        if self.home == "staging" and (self.displace != "nothing" or not self.stamps):
            raise UnknownName(
                "staging displaces and stamps nothing", where="prefetch", cure="leave displace and stamps, or home slot"
            )
        if self.home == "slot" and self.cap is not None:
            raise InvalidBudget(
                "a cap beside home slot", where="prefetch", cure="leave slots and bytes out: the budget is the cache's"
            )

    def described(self) -> dict[str, Any]:
        """Everything that the result depends on, as plain data for the manifest."""
        card = predictor(self.predictor)
        said = attrs.asdict(self, recurse=False)
        return {
            **said,
            "predictor": card.name,
            "parameters": card.complete(self.parameters),
            "cap": None if self.cap is None else attrs.asdict(self.cap),
            "profile": [list(key) for key in self.profile],
        }
