"""Selecting: what a selection, or a wave, had to decide, beside what the log says that it decided."""

from __future__ import annotations

import attrs

from expertcache_spec.errors import EventTooLarge, ExpertCacheError, InvalidTrace, NoVictim
from expertcache_spec.history.books import Coverage, Open
from expertcache_spec.history.following import Block, Following, Record, event_of
from expertcache_spec.history.script import TooFewVictims
from expertcache_spec.history.verdict import Offence
from expertcache_spec.residency import Selection
from expertcache_spec.trace import Event


@attrs.define(slots=False)
class Selecting(Following):
    """The checker's part that follows events."""

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
        try:
            event = event_of(record)
        except InvalidTrace as error:
            shaped = "weights" in error.what or "scores" in error.what
            raise Offence("XC-TRACE-004" if shaped else "XC-TRACE-003", line, error.what) from error
        if self.failed.pop(event.stream, None) == event:
            return event  # a retry, after one of its reads has failed
        try:
            return self.trace.feed(event)
        except InvalidTrace as error:
            wide = max(map(len, event.rows)) > self.header.geometry.top_k
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
            wanted = expected.get(key, "something else")
            if how != wanted:
                rule = self._rule_of(how, wanted)
                raise Offence(rule, line, f"{key}: the log says {how}, the settings {wanted}", block.line)

    def _rule_of(self, said: str, expected: str) -> str:
        if "defer" in (said, expected):
            return "XC-RES-013"
        if expected == "bypass":
            return "XC-RES-014" if self.machine.budget.is_zero else "XC-RES-012"
        return "XC-RES-028" if expected == "read" else "XC-HIST-005"

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
