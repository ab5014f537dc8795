"""Metrics: integers with identities that hold exactly after any run.

Everything is counted in rows by (phase, first token, layer) and summed into whatever view is asked for; prefill,
decode and verify are never blended silently.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

import attrs


@attrs.define
class Row:
    """Counts of one layer in one phase, or any sum of such rows.

    selections: what the rows asked for, repeats included. lookups: distinct keys of events. hits, misses: judged
    against the state at the start of the event. bypassed: lookups of absent keys that found no room and were served
    without being kept. dropped: lookups that a lossy mode did not serve with the expert's own record. joined: misses
    whose read another request, or a staged prefetch, had started. adopted: misses whose read a staged prefetch had
    done. refused: misses that admission did not keep. compulsory: misses on a key never asked for before.
    reloads: misses on a key that was resident before. collisions: misses on a key evicted earlier in the same pass.
    admissions: records that demand has made resident. evictions: residents displaced, booked at the victim's layer
    and the evicting phase. reads: records read for demand. bytes_read: their bytes.
    """

    selections: int = 0
    lookups: int = 0
    hits: int = 0
    misses: int = 0
    bypassed: int = 0
    dropped: int = 0
    joined: int = 0
    adopted: int = 0
    refused: int = 0
    compulsory: int = 0
    reloads: int = 0
    collisions: int = 0
    admissions: int = 0
    evictions: int = 0
    reads: int = 0
    bytes_read: int = 0

    @property
    def capacity_misses(self) -> int:
        """Misses that a large enough cache would not have had (XC-METRIC-002)."""
        return self.misses - self.compulsory

    def add(self, other: Row) -> None:
        """Add `other` to this row."""
        for name in ROW_FIELDS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


ROW_FIELDS: tuple[str, ...] = tuple(field.name for field in attrs.fields(Row))


class RowKey(NamedTuple):
    """Where a row is booked: `phase` (`verify-rejected` for rows a verifier threw away), first token or not, layer."""

    phase: str
    first_token: bool
    layer: int


@attrs.define
class Counters:
    """All counters of one machine, and the peaks.

    seeds and prefetches count records installed by no demand, seed_bytes and prefetch_bytes what they read;
    cleared counts residents dropped by a reset or rebind; failed counts reads that failed. peak_slots and peak_bytes
    are the most that was ever held, reserved and in-flight records included.
    """

    buckets: dict[tuple[str, bool], defaultdict[int, Row]] = attrs.field(factory=dict)
    seeds: int = 0
    seed_bytes: int = 0
    prefetched: int = 0
    prefetch_bytes: int = 0
    prefetch_issued: int = 0
    prefetch_useful: int = 0
    prefetch_late: int = 0
    prefetch_wasted: int = 0
    prefetch_refused: int = 0
    prefetch_failed: int = 0
    prefetch_duplicate: int = 0
    cleared: int = 0
    failed: int = 0
    peak_slots: int = 0
    peak_bytes: int = 0

    def bucket(self, phase: str, first_token: bool) -> defaultdict[int, Row]:
        """Layer to row, for one phase and kind of token; rows are made on first use."""
        found = self.buckets.get((phase, first_token))
        if found is None:
            found = self.buckets[phase, first_token] = defaultdict(Row)
        return found

    @property
    def rows(self) -> dict[RowKey, Row]:
        """Every row under its full key."""
        return {RowKey(*kind, layer): row for kind, bucket in self.buckets.items() for layer, row in bucket.items()}

    def _sum(self, chosen: Iterable[Row]) -> Row:
        total = Row()
        for row in chosen:
            total.add(row)
        return total

    def total(self) -> Row:
        """Everything in one row."""
        return self._sum(self.rows.values())

    def by(self, name: Callable[[RowKey], object]) -> dict[object, Row]:
        """Rows summed by `name` of their key, in order of name."""
        groups: dict[object, list[Row]] = {}
        for key, row in sorted(self.rows.items(), key=lambda item: item[0]):
            groups.setdefault(name(key), []).append(row)
        return {group: self._sum(rows) for group, rows in groups.items()}

    def per_layer(self) -> dict[object, Row]:
        """One row for each layer (XC-METRIC-006)."""
        by_layer = self.by(lambda key: key.layer)
        return {layer: by_layer[layer] for layer in sorted(by_layer, key=lambda x: int(str(x)))}

    def per_phase(self) -> dict[object, Row]:
        """One row for each phase; the first token of a stream's decode stands apart (XC-METRIC-005, XC-METRIC-007)."""
        return self.by(lambda key: f"{key.phase}-first-token" if key.first_token else key.phase)


def broken_identities(counters: Counters, occupancy_change: int, outstanding_prefetches: int = 0) -> list[str]:
    """The ids of the identity rules that do not hold; empty after any run (XC-METRIC-001 to XC-METRIC-004).

    `occupancy_change` is resident records now minus at the time the counters were last reset,
    `outstanding_prefetches` the prefetched records that nothing has asked for yet.
    """
    broken = []
    rows = [*counters.rows.values(), counters.total()]
    if any(row.lookups != row.hits + row.misses + row.bypassed + row.dropped for row in rows):
        broken.append("XC-METRIC-001")
    if any(not 0 <= row.compulsory <= row.misses for row in rows):
        broken.append("XC-METRIC-002")
    total = rows[-1]
    installed = total.admissions + counters.seeds + counters.prefetched
    if total.evictions != installed - counters.cleared - occupancy_change:
        broken.append("XC-METRIC-003")
    spent = counters.prefetch_useful + counters.prefetch_late + counters.prefetch_wasted + counters.prefetch_failed
    if counters.prefetch_issued != spent + outstanding_prefetches:
        broken.append("XC-METRIC-004")
    return broken
