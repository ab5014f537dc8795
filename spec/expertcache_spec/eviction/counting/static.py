"""Static: a frozen set stays; what else is resident takes turns in the room that is left.

What it is: the pinned profile, as a policy. The set is named once, by the parameter `keys` or by seed lists, and never
learns. Under admission `refusable` nothing else is kept where it would take room from anything: the pure form.
State: the set with its priorities; the stamp of each resident's latest touch.
Order: (whether the key is in the set, priority, stamp of the latest touch), rising. With `rest=key` the last resort
(layer, expert) takes the place of the stamp.
Transitions: a seed list puts each key that it names into the set with its priority (0 unless it says more), resident
or not; a later list may name it again. The members of `keys` have priority 0 from the start. Hits, misses and
prefetches only move the recency. Neither an eviction nor a reset of history changes the set; a reset of contents or a
rebind leaves `keys` and forgets the lists.
Laws: no member leaves while anything else could, so none ever leaves where the set and one event fit together. With an
empty set it is `lru`, and with a set of everything too. Under `refusable` what is kept is displaced by members only.
Under touch `router` a stack policy.
Engines that differ: arXiv 2608.07911 serves every miss uncached (`refusable`, seeded); kimi-k3-in-c and imp pin a part
and run LRU beside it (`always`); colibri's and ds4's lists decay and are no static sets.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from expertcache_spec.errors import UnknownName
from expertcache_spec.eviction.base import Past, Policy
from expertcache_spec.eviction.cards import Card, Parameter, Value
from expertcache_spec.eviction.counting.stating import Stated
from expertcache_spec.eviction.index import Heap, Ranks
from expertcache_spec.model import Geometry, Key

_ITEM = re.compile(r"(\*|[0-9]{1,9})\.([0-9]{1,9})(?:-([0-9]{1,9}))?")


@attrs.define
class Profile:
    """The frozen set: what the parameter names, in spans of experts by layer, and what seed lists have named."""

    spans: dict[int, list[range]]
    """Layer to spans; -1 for every layer."""
    listed: dict[Key, int] = attrs.field(factory=dict)

    def standing(self, key: Key) -> tuple[int, ...]:
        """(0,) outside the set, (1, priority) inside."""
        if key in self.listed:
            return (1, self.listed[key])
        if not self.spans:
            return (0,)
        spans = (*self.spans.get(key.layer, ()), *self.spans.get(-1, ()))
        return (1, 0) if any(key.expert in span for span in spans) else (0,)


def parse(text: str) -> Profile:
    """Read `LAYER.EXPERT` or `LAYER.FIRST-LAST`, several joined by `+` or spaces; `*` is every layer (XC-EVICT-086).

    Raises `UnknownName` for anything else: a set that is silently smaller than meant looks like a bad policy.
    """
    spans: dict[int, list[range]] = {}
    for item in re.split(r"[\s+]+", text.strip()) if text.strip() else ():
        match = _ITEM.fullmatch(item)
        if match is None or (match[3] is not None and int(match[3]) < int(match[2])):
            raise UnknownName(
                f"keys = {text!r}", where=f"policy static, at {item!r}", cure="write 3.17+3.20-29+*.0-7: LAYER.EXPERT"
            )
        span = range(int(match[2]), int(match[3] or match[2]) + 1)
        spans.setdefault(-1 if match[1] == "*" else int(match[1]), []).append(span)
    return Profile(spans)


def _objections(values: Mapping[str, Value], model: Geometry | None) -> Iterator[tuple[str, str]]:
    """Members that the model does not have; raises as `parse` does, model or none."""
    named = parse(str(values["keys"])).spans
    if model is None:
        return
    for layer, spans in named.items():
        for span in spans:
            if layer >= 0 and layer not in model.routed:
                known = f"{model.routed[0]} to {model.routed[-1]}"
                yield f"keys {_shown(layer, span)}: no routed layer {layer}", f"routed layers are {known}"
            if span[-1] >= model.experts:
                yield f"keys {_shown(layer, span)}: no expert {span[-1]}", f"experts are 0 to {model.experts - 1}"


def _shown(layer: int, span: range) -> str:
    last = f"-{span[-1]}" if len(span) > 1 else ""
    return f"{'*' if layer < 0 else layer}.{span[0]}{last}"


@attrs.define(slots=False, kw_only=True)
class StaticRule(Stated):
    """The rule (XC-EVICT-083)."""

    profile: Profile = attrs.field(alias="keys", converter=parse)
    rest: str
    can_refuse: bool = attrs.field(default=True, init=False)

    def prioritize(self, key: Key, priority: int) -> None:
        """Put the key into the set."""
        self.profile.listed[key] = priority

    def place(self, past: Past, key: Key) -> tuple[Any, ...]:
        """Strangers before members, low priorities before high ones; then least recent."""
        return (self.profile.standing(key), past.touched[key] if self.rest == "recency" else 0)

    def refuses(self, incoming: Key, victim: Key) -> bool:
        """Whether the incoming key stands no higher than what would leave."""
        return self.profile.standing(incoming) <= self.profile.standing(victim)


@attrs.define(slots=False)
class Static(Policy):
    """The indexed form: a list by recency for each standing, or a heap of (standing, key)."""

    name: ClassVar[str] = "static"
    stamped: ClassVar[bool] = False
    can_refuse = True
    profile: Profile = attrs.field(alias="keys", converter=parse)
    rest: str
    index: Ranks | Heap = attrs.field(init=False)
    outdated: bool = attrs.field(default=False, init=False)
    """Whether residents may have a standing other than the one that they are filed under."""

    def __attrs_post_init__(self) -> None:
        self.index = Ranks() if self.rest == "recency" else Heap()

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Nothing yet: `settle` moves them."""

    def insert(self, key: Key, now: int) -> None:
        """File under its standing."""
        self.index.file(key, self.profile.standing(key))

    def inserts(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        """Each."""
        for key in keys:
            self.insert(key, 0)

    def settle(self, keys: Sequence[Key]) -> None:
        """Move the touched keys to the recent end, in touch order."""
        if isinstance(self.index, Ranks):
            self.index.touch(keys)

    def prioritize(self, key: Key, priority: int) -> None:
        """Put the key into the set; a resident is filed again before the next victim, its recency unchanged."""
        self.profile.listed[key] = priority
        self.outdated |= key in self.index.filed

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least recent of the lowest standing."""
        if self.outdated:
            self.index.rank_again(self.profile.standing)
            self.outdated = False
        return self.index.first(held)

    def refuses(self, incoming: Key, victim: Key) -> bool:
        """Whether the incoming key stands no higher than what would leave."""
        return self.profile.standing(incoming) <= self.profile.standing(victim)

    def evict(self, key: Key) -> None:
        """Remove from the index; the set stays."""
        self.index.remove(key)


CARD = Card(
    "static",
    "XC-EVICT-083",
    StaticRule,
    Static,
    "what is not in the frozen set, least recent first",
    "arXiv 2608.07911; kimi-k3-in-c, imp",
    "O(1); O(log resident) with rest=key; O(resident) after a seed list",
    (
        Parameter("keys", "", "the set, as 3.17+3.20-29+*.0-7 (layer.experts); seed lists add to it"),
        Parameter("rest", "recency", "what orders keys of one standing", ("recency", "key")),
    ),
    can_refuse=True,
    objections=_objections,
)
