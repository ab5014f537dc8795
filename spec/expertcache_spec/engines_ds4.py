"""ds4 at its start: how a hotlist becomes seeds, and how a byte budget becomes slots. Arithmetic, beside the policy.

Two public versions differ: [A] of August 2026 (b0309611) and [B] of September (30ac654f). What they seed goes through
`Residency.seed`, and what they keep is the policy `route-hotness`; here is only what happens before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

import attrs

from expertcache_spec.errors import InvalidBudget, InvalidTrace, UnknownName
from expertcache_spec.model import Budget, Geometry, Key

Formula = Literal["scaled", "rank", "hits"]
UINT32_MAX = (1 << 32) - 1
GIB = 1 << 30
AUTO_PRELOAD = 4096
"""The most records that are preloaded where nobody says how many."""
GROUP = 6
"""How many records are seeded with one read batch."""


BUILT_IN = ["layer", "expert"]
"""The first line of a list without counts."""


class Entry(NamedTuple):
    """One line of a hotlist; a built-in list has no counts."""

    layer: int
    expert: int
    hits: int = 1


class Seed(NamedTuple):
    """One record to preload, and the hotness that it is lent."""

    key: Key
    priority: int


@attrs.frozen(slots=False)
class Version:
    """What a version of ds4 does with its built-in hotlists.

    built_in: the formula on Apple; elsewhere both use `rank`. auto_full_layers: whether GLM keeps whole prefix layers
    without being asked.
    """

    built_in: Formula
    auto_full_layers: bool


VERSIONS: Mapping[str, Version] = MappingProxyType({"A": Version("rank", True), "B": Version("scaled", False)})
"""The two versions by their letter."""


# ---------------------------------------------------------------------------------------------- hotlists


def hotlist(lines: Iterable[str]) -> Iterator[Entry]:
    """The entries of a hotlist file, `layer expert hits [weight]` a line, in the order of the file (XC-EVICT-191).

    Comments, blank lines and lines without hits are skipped. A built-in list, which has no counts, begins with the line
    `layer expert` and goes on so. Raises `InvalidTrace`, naming the line, for another.
    """
    widths: tuple[int, ...] = (3, 4)
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if fields == BUILT_IN and number == 1:
            widths = (2,)
        elif fields and not fields[0].startswith("#"):
            if len(fields) not in widths or not all(_is_number(field) for field in fields[:3]):
                form = "layer expert hits" if 3 in widths else "layer expert"
                raise InvalidTrace(
                    f"no hotlist entry {line.strip()[:60]!r}", where=f"line {number}", cure=f"write: {form}"
                )
            entry = Entry(*map(int, fields[:3]))
            if entry.hits:
                yield entry


def _is_number(field: str) -> bool:
    return field.isascii() and field.isdigit() and len(field) <= 20


def priority(formula: Formula, remaining: int, total: int, hits: int = 1) -> int:
    """The hotness that an entry is lent while `remaining` of `total` places are left, its own included (XC-EVICT-190).

    scaled: 1 + floor(31 x remaining / total), from 32 down to 1. rank: the places left. hits: the count of the file,
    as it is. Raises `UnknownName` for another formula.
    """
    if formula not in get_args(Formula):
        raise UnknownName(f"formula {formula!r}", where="hotlist", cure=f"one of {', '.join(get_args(Formula))}")
    return {"scaled": 1 + 31 * remaining // total, "rank": remaining, "hits": min(hits, UINT32_MAX)}[formula]


def seeds(entries: Iterable[Entry], geometry: Geometry, limit: int, formula: Formula) -> list[Seed]:
    """The first `limit` keys of the model that the list names, with their priorities, hottest first (XC-EVICT-191).

    Keys that the model does not have, and keys named before, are passed over and use no place.
    """
    found: dict[Key, int] = {}
    for layer, expert, hits in entries:
        if len(found) >= limit:
            break
        key = Key(layer, expert)
        if layer in geometry.routed and 0 <= expert < geometry.experts and key not in found:
            found[key] = priority(formula, limit - len(found), limit, hits)
    return [Seed(key, lent) for key, lent in found.items()]


def seeding_order(listed: Sequence[Seed]) -> list[Seed]:
    """The order in which ds4 loads them: layers rising, each from its tail in groups of six (XC-EVICT-192).

    So the hottest of a layer are loaded last and are the most recent. Inside a group the order is that of the list.
    """
    found: list[Seed] = []
    for layer in sorted({seed.key.layer for seed in listed}):
        own = [seed for seed in listed if seed.key.layer == layer]
        for end in range(len(own), 0, -GROUP):
            found += own[max(0, end - GROUP) : end]
    return found


def preload_count(slots: int, geometry: Geometry, *, asked: int | None = None, cold: bool = False) -> int:
    """How many records are preloaded into that many slots: what was asked for, else at most 4096 (XC-EVICT-193).

    Never more than the slots or than the model has; none in cold mode, which changes nothing else.
    """
    if cold:
        return 0
    wanted = AUTO_PRELOAD if asked is None else asked
    return max(0, min(wanted, slots, len(geometry.routed) * geometry.experts))


# ---------------------------------------------------------------------------------------------- budgets


def cache_size(text: str) -> Budget:
    """`4342`: that many slots; `32GB`: that many GiB, which is what ds4 means by it (XC-EVICT-194).

    Raises `InvalidBudget` for anything else: no fraction, no other unit, nothing below 1.
    """
    match = re.fullmatch(r"([0-9]{1,18})(gb)?", text, re.IGNORECASE | re.ASCII)
    number = int(match[1]) if match else 0
    if match is None or not number:
        raise InvalidBudget(f"no cache size {text!r}", where="ds4", cure="a whole number of records, or of GiB as NGB")
    return Budget(bytes=number * GIB) if match[2] else Budget(slots=number)


def common_size(sizes: Iterable[int]) -> int:
    """The record size of most layers, of equally common ones the earliest; other layers bypass the cache."""
    return Counter(sizes).most_common(1)[0][0]


class Plan(NamedTuple):
    """What a byte budget is spent on: prefill headroom, whole prefix layers, and the slots of the cache."""

    headroom_bytes: int
    full_layers: int
    full_bytes: int
    slots: int


def plan(total: int, record: int, layers: int, experts: int, full_layers: int = 0) -> Plan:
    """Spend `total` bytes on a model of so many cacheable layers of records of `record` bytes (XC-EVICT-194).

    `full_layers` is what was asked for. Raises `InvalidBudget` when the headroom leaves nothing, or less than a record.
    """
    headroom = min(2, layers) * experts * record
    full = whole_layers(full_layers, total - headroom, record, layers, experts)
    rest = total - headroom - full * experts * record
    if rest < record or rest // record > UINT32_MAX:
        raise InvalidBudget(
            f"{total} bytes are too few or too many", where="ds4",
            cure=f"more than {headroom} bytes of prefill headroom and at least one record of {record}",
        )  # fmt: skip
    return Plan(headroom, full, full * experts * record, min(rest // record, layers * experts))


def whole_layers(asked: int, after_headroom: int, record: int, layers: int, experts: int) -> int:
    """How many prefix layers stay resident outside the cache: fewer than asked until one more layer fits beside them.

    Only GLM has them; for other models ds4 warns and keeps none (XC-EVICT-195).
    """
    layer_bytes = experts * record
    return max(0, min(asked, layers, after_headroom // layer_bytes - 1))


def auto_whole_layers(total: int, record: int, layers: int, experts: int) -> int:
    """How many [A] asks for by itself on Metal: a seventh of the budget, 10 GiB at most; [B] asks for none."""
    return min(layers, min(total // 7, 10 * GIB) // (experts * record))
