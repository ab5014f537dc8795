"""Transitions with consequences: a cause, the judgements and evictions that follow it, and what they had to be."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from expertcache_spec.errors import EventTooLarge, ExpertCacheError, InvalidTrace, NoVictim
from expertcache_spec.history.books import Books, Coverage, Open
from expertcache_spec.history.script import TooFewVictims
from expertcache_spec.history.verdict import Offence
from expertcache_spec.model import Key
from expertcache_spec.residency import Selection
from expertcache_spec.trace import Event

FOLLOWERS = frozenset({"hit", "miss", "bypass", "evict", "refuse"})
"""The operations that belong to the cause before them."""

Record = dict[str, Any]


@attrs.define
class Block:
    """A cause and what has followed it so far.

    keys: what a selection must judge. event, earlier: what is selected, or the wave before. freed: keys that one hold
    less is on when the cause has happened. missing: the rule that too few evictions break. judged: how, on which line.
    """

    record: Record
    line: int
    missing: str
    apply: Callable[[Block], None]
    keys: tuple[Key, ...] = ()
    event: Event | None = None
    earlier: Selection | None = None
    freed: frozenset[Key] = frozenset()
    judged: dict[Key, tuple[str, int]] = attrs.field(factory=dict)
    victims: dict[Key, int] = attrs.field(factory=dict)
    refused: dict[Key, int] = attrs.field(factory=dict)

    @property
    def ticket(self) -> int | None:
        """The ticket of the cause's event."""
        found: int | None = self.record.get("ticket")
        return found


@attrs.define(slots=False)
class Selecting(Books):
    """The checker's half that follows causes."""

    block: Block | None = attrs.field(default=None, init=False)

    def close(self) -> None:
        """Apply the cause that is complete, and compare."""
        block, self.block = self.block, None
        if block is not None:
            if self.script is not None:
                self.script.victims = deque(block.victims)
                self.script.refused = {key for key, (how, _) in block.judged.items() if how == "refuse"} | {
                    *block.refused
                }
            block.apply(block)
            for key in block.victims:
                self.leave(key)

    def follow(self, record: Record, line: int) -> None:
        """Take a line that belongs to the cause before it (XC-HIST-003)."""
        op, block = record["op"], self.block
        key = self.key(record, line)
        judges = op in ("hit", "miss", "bypass")
        if block is None or not self._belongs(block, record, judges):
            raise Offence("XC-HIST-003", line, f"a {op} that follows no cause of it")
        if judges:
            self._judge(block, record, key, line)
        elif op == "evict":
            self._evict(block, key, line)
        else:
            self._refuse(block, key, line)

    def _belongs(self, block: Block, record: Record, judges: bool) -> bool:
        cause: str = block.record["op"]
        ticket: int | None = record.get("ticket")
        if judges:
            return cause in ("select", "resume") and ticket == block.ticket
        if record["op"] == "refuse":
            return cause == "release" and ticket == block.ticket
        if block.ticket is not None or cause == "resize":
            return ticket in (None, block.ticket)
        return ticket is None or ticket in self.tickets

    def _judge(self, block: Block, record: Record, key: Key, line: int) -> None:
        op = record["op"]
        how = record["how"] if op == "miss" else op
        if key not in block.keys or key in block.judged:
            said = "judged twice" if key in block.judged else "not asked for by the event"
            raise Offence("XC-RES-002", line, f"{key} is {said}", block.line, block.judged.get(key, ("", 0))[1])
        flying = key in self.machine.flights
        if op == "hit" and not self.is_resident(key):
            if flying:
                raise Offence("XC-RES-015", line, f"a hit on {key}, which is still being read", self.flights[key].line)
            raise Offence("XC-RES-003", line, f"a hit on {key}, which is not resident", block.line)
        if op != "hit" and self.is_resident(key):
            raise Offence("XC-RES-003", line, f"a {op} on {key}, which is resident", self.published.get(key, 0))
        if op != "hit" and flying != (how == "join"):
            said = "is being read already" if flying else "is read by nobody"
            raise Offence(
                "XC-RES-027",
                line,
                f"{key} {said}, and the log says {how}",
                self.flights[key].line if flying else block.line,
            )
        block.judged[key] = (how, line)

    def _evict(self, block: Block, key: Key, line: int) -> None:
        part = self.machine.part_of(key.layer)
        published = block.record["op"] == "publish" and key == Key(*block.record["key"])
        if key in block.victims or not (self.is_resident(key) or published):
            flying = key in self.machine.flights
            raise Offence(
                "XC-RES-005", line, f"{key} is evicted and is {'in flight' if flying else 'not resident'}",
                block.victims.get(key, 0), self.flights[key].line if flying else block.line,
            )  # fmt: skip
        if part.holds.get(key, 0) - (key in block.freed) > 0 or key in block.keys:
            holder = "pinned" if key in part.pins else "leased"
            raise Offence("XC-RES-005", line, f"{key} is evicted and {holder}", *self.lines_of(key), block.line)
        block.victims[key] = line

    def _refuse(self, block: Block, key: Key, line: int) -> None:
        if key not in block.freed or key in block.refused or key in block.victims:
            raise Offence("XC-RES-026", line, f"{key} was not loaded by the event", block.line)
        if self.machine.part_of(key.layer).holds.get(key, 0) > 1:
            raise Offence("XC-RES-005", line, f"{key} is let go and held by others", *self.lines_of(key), block.line)
        block.refused[key] = line

    # ------------------------------------------------------------------------------------------ select, resume

    def select(self, record: Record, line: int) -> None:
        """An event is selected: the lines that follow judge its keys and make room for them."""
        self._new_ticket(record, line)
        layer, geometry = record["layer"], self.header.geometry
        highest = max(map(max, record["experts"]))
        if layer not in self.machine.sizes or highest >= geometry.experts:
            raise Offence("XC-HIST-004", line, f"the model has no expert {highest} of layer {layer}")
        event = self._event(record, line)
        self.block = Block(record, line, "XC-RES-010", self._selected, event.keys, event)

    def _new_ticket(self, record: Record, line: int) -> None:
        if record["ticket"] <= self.last_ticket:
            raise Offence("XC-HIST-003", line, f"ticket {record['ticket']} after ticket {self.last_ticket}")
        self.last_ticket = record["ticket"]

    def _event(self, record: Record, line: int) -> Event:
        rows = tuple(map(tuple, record["experts"]))
        try:
            event = Event(record["layer"], rows, record["stream"], record["pass"], record["phase"],
                          accepted=record.get("accepted"))  # fmt: skip
        except InvalidTrace as error:
            raise Offence("XC-TRACE-003", line, error.what) from error
        if self.failed.pop(event.stream, None) == event:
            return event  # a retry, after one of its reads has failed
        try:
            return self.trace.feed(event)
        except InvalidTrace as error:
            wide = max(map(len, rows)) > self.header.geometry.top_k
            raise Offence("XC-TRACE-003" if wide else "XC-TRACE-002", line, error.what) from error

    def resume(self, record: Record, line: int) -> None:
        """The next wave of an event is selected."""
        self._new_ticket(record, line)
        found = self.deferring.pop(record["after"], None)
        if found is None or record["after"] in self.tickets:
            raise Offence("XC-RES-013", line, f"ticket {record['after']} has no wave to resume")
        selection, _ = found
        self.block = Block(record, line, "XC-RES-010", self._selected, selection.deferred, earlier=selection)

    def _selected(self, block: Block) -> None:
        unjudged = [key for key in block.keys if key not in block.judged]
        if unjudged:
            raise Offence("XC-RES-002", block.line, f"{unjudged[0]} of the event is not judged")
        selection = self._selection(block)
        if self.script is not None and self.script.victims:
            victim = self.script.victims[0]
            raise Offence("XC-RES-008", block.victims[victim], f"{victim} is evicted, and there was room", block.line)
        self._compare_judgements(block, selection)
        self._compare_victims(block, selection.victims)
        self._open(block, selection)

    def _selection(self, block: Block) -> Selection:
        try:
            if block.earlier is not None:
                return self.machine.resume(block.earlier)
            assert block.event is not None
            return self.machine.select(block.event)
        except TooFewVictims:
            raise Offence("XC-RES-010", block.line, "the event loads more than there is room for") from None
        except EventTooLarge as error:
            raise Offence("XC-RES-012", block.line, error.what) from error
        except NoVictim as error:
            raise Offence("XC-RES-024", block.line, error.what) from error
        except ExpertCacheError as error:
            raise Offence("XC-RES-013" if block.earlier else "XC-RES-012", block.line, error.what) from error

    def _compare_judgements(self, block: Block, selection: Selection) -> None:
        groups = {"read": selection.reads, "join": selection.joined, "refuse": selection.refused,
                  "defer": selection.deferred, "bypass": selection.bypassed, "hit": selection.hits}  # fmt: skip
        expected = {key: how for how, keys in groups.items() for key in keys}
        for key, (how, line) in block.judged.items():
            if how != expected[key]:
                rule = self._rule_of(how, expected[key])
                raise Offence(rule, line, f"{key}: the log says {how}, the settings {expected[key]}", block.line)

    def _rule_of(self, said: str, expected: str) -> str:
        if "defer" in (said, expected):
            return "XC-RES-013"
        if expected == "bypass":
            return "XC-RES-014" if self.machine.budget.is_zero else "XC-RES-012"
        return "XC-RES-028" if expected == "read" else "XC-HIST-005"

    def _compare_victims(self, block: Block, expected: Sequence[Key]) -> None:
        """Which records leave is compared, not in which order a cause's lines name them."""
        strangers = [key for key in block.victims if key not in expected]
        lacking = [key for key in expected if key not in block.victims]
        if strangers:
            key, line = strangers[0], block.victims[strangers[0]]
            if not lacking:
                raise Offence("XC-RES-008", line, f"{key} is evicted, and there was room", block.line)
            wanted = lacking[0]
            raise Offence(
                self.rule_of_victims, line, f"{key} is evicted, the policy's victim is {wanted}",
                self.touched.get(key, 0), self.touched.get(wanted, 0), block.line,
            )  # fmt: skip
        if lacking:
            raise Offence(block.missing, block.line, f"{lacking[0]} has to leave and does not")

    def _open(self, block: Block, selection: Selection) -> None:
        ticket, line = block.record["ticket"], block.line
        kept = {key for key in block.keys if key not in selection.deferred}
        alone = (*selection.refused, *selection.bypassed)
        order = [key for key in selection.event.keys if key in kept]
        scratch = {key: Coverage(line) for key in alone}
        self.tickets[ticket] = self.waves[selection.ticket] = Open(selection, line, order, scratch, set(order))
        for key in selection.reads:
            self.flights[key] = Coverage(line)
        for key in order:
            self.touched[key] = block.judged[key][1]
        if selection.deferred:
            self.deferring[ticket] = (selection, line)
