"""The books of a checked log: the machine that follows it, and the line where each fact was said."""

from __future__ import annotations

from typing import Any

import attrs
from sortedcontainers import SortedDict

from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.eviction import POLICIES, make
from expertcache_spec.history.header import Header
from expertcache_spec.history.script import Script, Scripted
from expertcache_spec.history.verdict import Offence
from expertcache_spec.model import Key
from expertcache_spec.residency import Residency, Selection
from expertcache_spec.trace import Event, TraceChecker


@attrs.define
class Coverage:
    """The bytes of one record that were or are being read: `ranges` from start to end, `pending` numbers of reads."""

    line: int
    ranges: Any = attrs.field(factory=SortedDict)
    pending: set[int] = attrs.field(factory=set)
    delivered: int = 0

    def overlaps(self, start: int, end: int) -> bool:
        """Whether some byte of the run was asked for before."""
        after = self.ranges.bisect_left(start)
        before = after > 0 and self.ranges.peekitem(after - 1)[1] > start
        return bool(before or (after < len(self.ranges) and self.ranges.peekitem(after)[0] < end))


@attrs.define
class Open:
    """One selected wave until its release.

    scratch: records that are read for it alone. waiting, computing: keys whose work has not begun, or not executed.
    order: its keys in slot order, those whose reads failed left out.
    """

    selection: Selection
    line: int
    order: list[Key]
    scratch: dict[Key, Coverage]
    waiting: set[Key]
    computing: dict[Key, int] = attrs.field(factory=dict)
    combined: bool = False


@attrs.define
class Running:
    """One read under way: its key, its run, what it counts for, where it began."""

    key: Key
    offset: int
    length: int
    coverage: Coverage
    line: int


@attrs.define(slots=False)
class Books:
    """Everything that the checker knows; its size is bounded by the model, by what is under way, and by the streams.

    tickets, waves: open waves by the log's and by the machine's ticket. deferring: waves to resume. flights: coverage
    of the records in flight. staged: coverage of prefetches outside the cache. runs: reads under way. slots, places:
    slot to key and back. published, touched, pinned, states: the line that said so last, of each key. failed: the
    event of a stream whose read has failed, or that was given up, and which may come again. trace: where each stream
    stands.
    """

    header: Header
    machine: Residency = attrs.field(init=False)
    script: Script | None = attrs.field(init=False)
    trace: TraceChecker = attrs.field(init=False)
    tickets: dict[int, Open] = attrs.field(factory=dict)
    waves: dict[int, Open] = attrs.field(factory=dict)
    deferring: dict[int, tuple[Selection, int]] = attrs.field(factory=dict)
    flights: dict[Key, Coverage] = attrs.field(factory=dict)
    staged: dict[Key, Coverage] = attrs.field(factory=dict)
    runs: dict[int, Running] = attrs.field(factory=dict)
    slots: dict[int, Key] = attrs.field(factory=dict)
    places: dict[Key, int] = attrs.field(factory=dict)
    published: dict[Key, int] = attrs.field(factory=dict)
    touched: dict[Key, int] = attrs.field(factory=dict)
    pinned: dict[Key, int] = attrs.field(factory=dict)
    states: dict[Key, tuple[str, int]] = attrs.field(factory=dict)
    failed: dict[int, Event] = attrs.field(factory=dict)
    last_ticket: int = -1
    last_read: int = -1
    undecided: dict[str, str] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        header = self.header
        self.trace = TraceChecker(header.geometry)
        factory = self._declared()
        self.script = None if factory else Script()
        script = self.script or Script()
        self.machine = Residency(header.geometry, header.budget, factory or (lambda: Scripted(script)), header.settings)
        for kind, rules in _NEEDS.items():
            if kind not in header.observes:
                self.undecided |= dict.fromkeys(rules, f"the log does not observe {kind}")
        if header.geometry.record_bytes is None:
            self.undecided["XC-RES-015"] = "the sizes of the records are not known"

    def _declared(self) -> Any:
        """The factory of the declared policy; None where only the log itself can say whom it evicts."""
        name, why = self.header.policy, ""
        if name is None:
            why = "the log declares no policy"
        elif name not in POLICIES:
            why = f"policy {name[:80]!r} is not in the specification"
        elif POLICIES[name].offline:
            why = f"policy {name} must know the future"
        if not why:
            try:
                return make(str(name), parameters=self.header.parameters)
            except (ExpertCacheError, TypeError) as error:
                why = f"policy {name}: {error}"[:200]
        self.undecided["XC-HIST-005"] = why
        return None

    @property
    def rule_of_victims(self) -> str:
        """The rule that the declared policy's victims obey."""
        return POLICIES[str(self.header.policy)].rule if self.script is None else "XC-HIST-005"

    def observes(self, kind: str) -> bool:
        """Whether the log records that kind of line."""
        return kind in self.header.observes

    def key(self, record: dict[str, Any], line: int) -> Key:
        """The key that a line names (XC-HIST-004)."""
        layer, expert = record["key"]
        if layer not in self.machine.sizes or expert >= self.header.geometry.experts:
            raise Offence("XC-HIST-004", line, f"the model has no expert {expert} of layer {layer}")
        return Key(layer, expert)

    def size(self, key: Key) -> int | None:
        """Bytes of the record, where they are known."""
        sizes = self.header.geometry.record_bytes
        return None if sizes is None else sizes[key.layer]

    def is_resident(self, key: Key) -> bool:
        """Whether the record is published."""
        return key in self.machine.part_of(key.layer).resident

    def open(self, record: dict[str, Any], line: int) -> Open:
        """The open wave of a line's ticket; raises the offence of a ticket that is not open (XC-RES-017)."""
        found = self.tickets.get(record["ticket"])
        if found is None:
            said = "was released before" if record["ticket"] <= self.last_ticket else "was never selected"
            raise Offence("XC-RES-017", line, f"ticket {record['ticket']} {said}")
        return found

    def leave(self, key: Key) -> None:
        """The record is gone: its slot is free, its facts are forgotten."""
        self.slots.pop(self.places.pop(key, -1), None)
        self.published.pop(key, None)

    def lines_of(self, key: Key) -> tuple[int, ...]:
        """The lines that hold the key: selections, pin."""
        leases = [wave.line for wave in self.tickets.values() if key in wave.order]
        return (*leases[:1], self.pinned.get(key, 0))


_NEEDS = {
    "reads": ("XC-HIST-006", "XC-RES-015", "XC-FANOUT-005"),
    "slots": ("XC-HIST-007",),
    "computes": ("XC-HIST-008",),
    "combines": ("XC-HIST-009",),
}
"""What a log must observe for a rule to be judged."""
