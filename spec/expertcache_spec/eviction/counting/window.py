"""Window: evict what the latest tokens did not use; inside the window, what they used least.

What it is: the windowing of LLM in a Flash, which keeps what the last `window` tokens used, made a policy of a cache
of fixed size: nothing leaves for having left the window until room is lacking.
State: for every key the tokens of the window that asked for it; the stamp of each resident's latest touch.
Order: (uses inside the window, stamp of the latest touch), rising: what nobody in the window used comes first, least
recent first. With `inside=recency` the number of uses does not matter, only whether there are any.
Transitions: under `clock=tokens` each row of an event is a use by its token, under `passes` the event is one use by its
pass; requests of absent keys count. The window ends with the latest token begun, over all streams. A seed or a
prefetch is the most recent and no use. A reset of history empties the window; recency stays.
Laws: where the window fits, nothing that it used is evicted. A window over the whole trace is `lfu` under `passes`. A
window of one pass is `lru` for one stream; with `inside=recency` every window is: LRU is what windowing gives on
experts. Streams that interleave break that: a late layer of an early pass is recent, and outside the window. Under
touch `router` a stack policy.
Engines that differ: the paper drops what leaves the window at once, and has no order inside; DALI protects entries
with at least a tenth of the window's hits, over a window of 256.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, ClassVar

import attrs

from expertcache_spec.eviction.base import Past, Policy
from expertcache_spec.eviction.cards import Card, Parameter
from expertcache_spec.eviction.counting.clock import Clock
from expertcache_spec.eviction.counting.stating import Stated
from expertcache_spec.eviction.index import Heap
from expertcache_spec.model import Key
from expertcache_spec.trace import Event


def uses(clock: Clock, event: Event) -> Iterator[tuple[Key, int]]:
    """Begin the event: each use of a key with the number of the token or pass that it is by (XC-EVICT-081)."""
    since = clock.begin(event)
    if clock.unit == "passes":
        yield from ((key, since) for key in event.keys)
    else:
        for token, row in enumerate(event.rows, since):
            yield from ((Key(event.layer, expert), token) for expert in row)


@attrs.define(slots=False, kw_only=True)
class WindowRule(Stated):
    """The rule (XC-EVICT-080)."""

    window: int
    clock: Clock = attrs.field(converter=Clock)
    inside: str
    by: dict[Key, list[int]] = attrs.field(factory=dict)
    """The tokens or passes that used a key, ever."""

    def begin(self, event: Event) -> None:
        """Note the uses."""
        super().begin(event)
        for key, token in uses(self.clock, event):
            self.by.setdefault(key, []).append(token)

    def forget(self) -> None:
        """Nothing was used."""
        super().forget()
        self.by.clear()

    def place(self, past: Past, key: Key) -> tuple[Any, ...]:
        """Fewest uses inside the window, then least recent."""
        found = sum(token >= self.clock.total - self.window for token in self.by.get(key, ()))
        return (found if self.inside == "uses" else found > 0, past.touched[key])


@attrs.define(slots=False)
class Window(Policy):
    """The indexed form: a heap of (uses, stamp). Each use is counted once when it enters and once when it leaves."""

    name: ClassVar[str] = "window"
    window: int
    clock: Clock = attrs.field(converter=Clock)
    inside: str
    index: Heap = attrs.field(factory=Heap)
    stamps: dict[Key, int] = attrs.field(factory=dict)
    found: dict[Key, int] = attrs.field(factory=dict)
    """Uses inside the window."""
    by: dict[int, list[Key]] = attrs.field(factory=dict)
    """Token or pass inside the window to what it used."""
    edge: int = 0
    """The first token or pass inside the window."""

    def begin(self, event: Event) -> None:
        """Move the window, and count what enters and leaves."""
        changed: dict[Key, None] = {}
        for key, token in uses(self.clock, event):
            if token >= self.clock.total - self.window:
                self.by.setdefault(token, []).append(key)
                self.found[key] = self.found.get(key, 0) + 1
                changed[key] = None
        edge = max(0, self.clock.total - self.window)
        for token in range(self.edge, edge):
            for key in self.by.pop(token, ()):
                self.found[key] -= 1
                changed[key] = None
        self.edge = edge
        for key in changed:
            if not self.found[key]:
                del self.found[key]
            if key in self.stamps:
                self._file(key)

    def hit(self, key: Key, now: int) -> None:
        """File under the new stamp."""
        self.stamps[key] = now
        self._file(key)

    def insert(self, key: Key, now: int) -> None:
        """As a hit."""
        self.hit(key, now)

    def _file(self, key: Key) -> None:
        count = self.found.get(key, 0)
        self.index.file(key, (count if self.inside == "uses" else count > 0, self.stamps[key]))

    def victim(self, held: Collection[Key], incoming: Key | None) -> Key | None:
        """The least recent of the least used."""
        return self.index.first(held)

    def evict(self, key: Key) -> None:
        """Remove from the index; its uses stay in the window."""
        self.index.remove(key)
        del self.stamps[key]

    def forget(self) -> None:
        """Empty the window; the recency stays."""
        self.found.clear()
        self.by.clear()
        for key in self.stamps:
            self._file(key)


CARD = Card(
    "window",
    "XC-EVICT-080",
    WindowRule,
    Window,
    "least used by the latest tokens",
    "arXiv 2312.11514 (LLM in a Flash); DALI",
    "O(log resident)",
    (
        Parameter("window", 5, "how many tokens or passes are remembered, the present one included", least=1),
        Parameter("clock", "tokens", "what the window counts", ("tokens", "passes")),
        Parameter("inside", "uses", "what orders the window itself", ("uses", "recency")),
    ),
)
