"""What is run: routes of traces that ship over records of other sizes, and policies with and without prefetch."""

from __future__ import annotations

from pathlib import Path

import attrs

from expertcache_reference.traces import load_trace
from expertcache_spec.layout.kinds import record_blocks
from expertcache_spec.layout.placing import Layout, Shape
from expertcache_spec.model import Geometry
from expertcache_spec.prefetch import Prefetch
from expertcache_spec.trace import Trace


@attrs.frozen(slots=False)
class Load:
    """Decode passes of a trace over records of `size` bytes; a store, once it has a file.

    slots: of the cache. looks: whether events carry the scores of the next layer's gate.
    """

    name: str
    trace: Trace
    size: int
    slots: int
    file: Path = Path("records")
    fingerprint: str = "generated"

    @property
    def geometry(self) -> Geometry:
        """Of the trace, with these sizes."""
        return self.trace.geometry

    @property
    def layout(self) -> Layout:
        """Records one after the other in one file."""
        model = self.geometry
        return record_blocks(
            Shape(model.experts, {layer: {"all": self.size} for layer in model.routed}), file=self.file.name
        )

    @property
    def folder(self) -> Path:
        """Where the file is."""
        return self.file.parent

    @property
    def looks(self) -> bool:
        """Whether a gate predictor has scores."""
        return self.trace.events[0].lookahead is not None

    @property
    def passes(self) -> int:
        """Tokens."""
        return len(self.trace.events) // len(self.geometry.routed)


def load(name: str, size: int, slots: int, passes: int, layers: int | None = None) -> Load:
    """The first decode passes of a trace, of its first layers where there are more."""
    whole = load_trace(f"builtin:{name}", drop_weights=True)[0]
    kept = [layer for layer in whole.geometry.routed if layers is None or layer < layers]
    events = [event for event in whole.events if event.phase == "decode" and event.layer in kept][: passes * len(kept)]
    model = Geometry(len(kept), whole.geometry.experts, whole.geometry.top_k, (size,) * len(kept))
    numbered = tuple(attrs.evolve(event, pass_index=at // len(kept)) for at, event in enumerate(events))
    return Load(name, Trace(model, numbered, name), size, slots)


@attrs.frozen(slots=False)
class Case:
    """A policy, and what reads ahead of it."""

    name: str
    policy: str = "lru"
    prefetch: Prefetch | None = None

    def needs_scores(self) -> bool:
        """Whether a gate predicts."""
        return self.prefetch is not None and str(self.prefetch.predictor).startswith("gate")


def reading(project: str) -> str:
    """Least-Stale as that project reads it, spelled."""
    return f"least-stale:reading={project}"


def ahead(name: str, displace: str = "any", **options: object) -> Prefetch:
    """Into slots of the cache."""
    return Prefetch(name, home="slot", displace=displace, **options)  # type: ignore[arg-type]


POLICIES = (
    Case("lru"),
    Case("least-stale", "least-stale"),
    *(Case(f"least-stale ({name})", reading(name)) for name in ("rnb", "spice", "join-3", "rustane")),
)
"""Without prefetch. Of the other readings tinyserve is the default, zhang is LRU here, hipfire is for one layer."""
GUESSES = (
    Case("lru, previous-token", prefetch=ahead("previous-token")),
    Case("lru, gate-top-k", prefetch=ahead("gate-top-k")),
    Case("lru, gate-top-k, stale", prefetch=ahead("gate-top-k", "stale", idle=8)),
    Case("lru, gate-percentile", prefetch=ahead("gate-percentile")),
    Case("lru, gate-percentile=50", prefetch=ahead("gate-percentile", parameters={"percentile": 50})),
    Case("least-stale, gate-top-k", "least-stale", ahead("gate-top-k")),
    Case("least-stale (rnb), gate-top-k", reading("rnb"), ahead("gate-top-k")),
    Case("lru, oracle", prefetch=ahead("oracle")),
)
"""With prefetch into slots; what it displaces is the policy's victim, or that only where it is stale."""


def cases(found: Load) -> list[Case]:
    """Those that the load has the scores for."""
    return [case for case in (*POLICIES, *GUESSES) if found.looks or not case.needs_scores()]
