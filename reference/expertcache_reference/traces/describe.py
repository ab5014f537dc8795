"""What a trace contains, in integers: passes, lookups, distinct keys, route overlap, token cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from expertcache_spec.model import Geometry
from expertcache_spec.trace import Event, encode_geometry


@attrs.define
class Description:
    """Counts of a trace, taken while its events go by; memory for the model's keys and one pass of each stream.

    passes, events, rows, lookups and selections are by phase. overlap_shared is the sum, over pairs of consecutive
    decode passes of a stream, layer by layer, of the experts that both ask for; overlap_pairs counts the pairs. The
    mean overlap of adjacent passes is overlap_shared / (overlap_pairs x top_k): |S_t and S_t-1| / k.
    """

    geometry: Geometry
    passes: Counter[str] = attrs.field(factory=Counter)
    events: Counter[str] = attrs.field(factory=Counter)
    rows: Counter[str] = attrs.field(factory=Counter)
    lookups: Counter[str] = attrs.field(factory=Counter)
    selections: Counter[str] = attrs.field(factory=Counter)
    recorded: int = 0
    weighted: int = 0
    overlap_shared: int = 0
    overlap_pairs: int = 0
    _touched: dict[int, set[int]] = attrs.field(factory=dict)
    _before: dict[tuple[int, int], tuple[int, frozenset[int]]] = attrs.field(factory=dict)
    _streams: set[int] = attrs.field(factory=set)

    def through(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events, counted."""
        first = self.geometry.routed[0]
        for event in events:
            phase, experts = event.phase, frozenset(key.expert for key in event.keys)
            self._streams.add(event.stream)
            self.passes[phase] += event.layer == first
            self.events[phase] += 1
            self.rows[phase] += len(event.rows)
            self.lookups[phase] += len(experts)
            self.selections[phase] += sum(map(len, event.rows))
            self.recorded += event.recorded is not None
            self.weighted += event.weights is not None
            self._touched.setdefault(event.layer, set()).update(experts)
            if phase == "decode":
                self._overlap(event, experts)
            yield event

    def _overlap(self, event: Event, experts: frozenset[int]) -> None:
        place = (event.stream, event.layer)
        number, before = self._before.get(place, (-2, experts))
        if number == event.pass_index - 1:
            self.overlap_shared += len(experts & before)
            self.overlap_pairs += 1
        self._before[place] = (event.pass_index, experts)

    def as_dict(self) -> dict[str, Any]:
        """The counts as plain data; bytes are None where the model's record sizes are unknown."""
        geometry, phases = self.geometry, sorted(self.events)
        by_phase = {
            name: {phase: getattr(self, name)[phase] for phase in phases}
            for name in ("passes", "events", "rows", "lookups", "selections")
        }
        return {
            "geometry": encode_geometry(geometry),
            "streams": len(self._streams),
            **by_phase,
            "keys_touched": sum(map(len, self._touched.values())),
            "keys_total": len(geometry.routed) * geometry.experts,
            "overlap_shared": self.overlap_shared,
            "overlap_pairs": self.overlap_pairs,
            "token_cycle_slots": geometry.token_cycle_slots,
            "token_cycle_bytes": None if geometry.record_bytes is None else geometry.token_cycle_bytes,
            "events_with_weights": self.weighted,
            "events_with_recording": self.recorded,
        }

    @property
    def overlap(self) -> float | None:
        """The mean overlap of adjacent decode passes, from 0 to 1; None without such passes."""
        return self.overlap_shared / (self.overlap_pairs * self.geometry.top_k) if self.overlap_pairs else None
