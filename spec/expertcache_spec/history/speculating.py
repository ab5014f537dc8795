"""Speculating: what becomes of each prefetch, from its first state to its last."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from expertcache_spec.history.books import Coverage
from expertcache_spec.history.following import Block, Record
from expertcache_spec.history.script import TooFewVictims
from expertcache_spec.history.verdict import Offence
from expertcache_spec.history.working import Working
from expertcache_spec.model import Key

_NEXT = {
    "": ("queued", "reading"),
    "queued": ("reading", "discarded"),
    "reading": ("ready", "late", "failed"),
    "ready": ("adopted", "discarded"),
    "late": ("adopted", "failed"),
}
"""State of a prefetch to the states that may follow (XC-HIST-010); the rest are final."""


@attrs.define(slots=False)
class Speculating(Working):
    """The checker's part that follows speculative reads. `states` holds those that have not ended, one a key."""

    def prefetch(self, record: Record, line: int) -> None:
        """A speculative read enters a state (XC-HIST-010)."""
        key, state = self.key(record, line), record["state"]
        if state == "present" and "ticket" not in record:
            self._finds(key, line)
            return
        before, since = self.states.get(key, ("", 0))
        if state not in _NEXT[before]:
            raise Offence("XC-HIST-010", line, f"a prefetch of {key} is {state} after {before or 'nothing'}", since)
        if state == "queued" and self.is_resident(key):
            known = self.published.get(key, 0)
            raise Offence("XC-HIST-010", line, f"a prefetch of {key} is queued, which is resident", known)
        if "ticket" in record:
            self._displaces(record, line)
        elif self.header.prefetch == "staging":
            self._staged(key, state, line)
        else:
            self._in_slot(key, before, state, line)
        if state in _NEXT:
            self.states[key] = (state, line)
        else:
            self.states.pop(key, None)

    def _finds(self, key: Key, line: int) -> None:
        """Nothing is read, but the policy hears of it (XC-EVICT-202)."""
        if self.header.prefetch == "staging":
            raise Offence("XC-PREFETCH-007", line, "a prefetch outside the cache finds a record in it")
        if not self.machine.part_of(key.layer).has(key):
            raise Offence("XC-HIST-010", line, f"a prefetch finds {key} present, which has no slot")
        self.machine.prefetch(key)

    def _in_slot(self, key: Key, before: str, state: str, line: int) -> None:
        if state == "reading":
            self._begins(key, line)
        there, flying = self.is_resident(key), key in self.machine.flights
        unused = before == "queued" or not there  # what has not been read is given up at any time
        fits = {"ready": there, "adopted": there, "late": flying, "discarded": unused, "failed": not flying}
        if not fits.get(state, True):
            raise Offence("XC-HIST-010", line, f"a prefetch is {state}, and {key} is{' not' * (not there)} resident")
        since = self.states.get(key, ("", 0))[1]
        unasked = (state == "late" and not self.machine.flights[key].tickets) or (
            (before, state) == ("ready", "adopted") and self.touched.get(key, 0) < since
        )
        if unasked:
            raise Offence("XC-HIST-010", line, f"a prefetch is {state}, and no event has asked for {key}", since)

    def _begins(self, key: Key, line: int) -> None:
        outcome = self.machine.prefetch(key)
        if outcome != "started":
            raise Offence("XC-RES-021", line, f"a prefetch of {key} reads; it had to be {outcome}")
        self.flights[key] = Coverage(line)

    def _displaces(self, record: Record, line: int) -> None:
        """A read into a slot begins where records have given way to it; the lines that follow say which."""
        if self.header.prefetch == "staging":
            raise Offence("XC-PREFETCH-007", line, "a prefetch outside the cache names an event beside which it evicts")
        if record["state"] != "reading":
            raise Offence("XC-HIST-010", line, f"a prefetch is {record['state']}, and evicts when it begins to read")
        keys = self.open(record, line).selection.event.keys
        self.block = Block(record, line, "XC-PREFETCH-008", self._displaced, keys)

    def _displaced(self, block: Block) -> None:
        """All that the record needs has left, and nothing besides (XC-PREFETCH-008)."""
        key, event = Key(*block.record["key"]), self.tickets[block.record["ticket"]].selection.event
        try:
            victims = self.machine.vacate(key, event, lambda victim: True)
        except TooFewVictims:
            raise Offence(block.missing, block.line, f"less has left than a prefetch of {key} needs") from None
        self._begins(key, block.line)
        self._compare_victims(block, victims)

    def _staged(self, key: Key, state: str, line: int) -> None:
        """Outside the cache: no residency changes; a demand that finds the bytes takes them over."""
        if state == "reading":
            self.staged[key] = Coverage(line)
        elif state == "ready":
            self._check_whole(key, self.staged[key], line, "XC-HIST-010")
        elif state in ("adopted", "late"):
            mine = self.flights.get(key)
            if state == "adopted" and key not in self.staged:
                return  # taken over when it was late
            if mine is None or mine.ranges or mine.pending:
                raise Offence("XC-HIST-010", line, f"a prefetch is {state}, and no miss waits for {key}")
            self.flights[key] = self.staged.pop(key)
        elif key in self.staged:
            for number in self.staged.pop(key).pending:
                del self.runs[number]

    def _published(self, block: Block) -> None:
        """What a demand waits for while it is read on speculation is late before it is there."""
        key = Key(*block.record["key"])
        state, since = self.states.get(key, ("", 0))
        if self.header.prefetch == "slot" and state == "reading" and self.machine.flights[key].tickets:
            raise Offence("XC-HIST-010", block.line, f"an event waits for the prefetch of {key}, which is not late",
                          since)  # fmt: skip
        super()._published(block)

    def unfinished(self) -> Iterator[tuple[int, str]]:
        """Line and words of each prefetch that has not ended; what lies ready and was not asked for since may stay."""
        for key, (state, since) in self.states.items():
            if state != "ready":
                yield since, f"the prefetch of {key} is {state}"
            elif self.header.prefetch == "slot" and not self.is_resident(key):
                yield since, f"the prefetch of {key} has left unused and is not discarded"
            elif self.touched.get(key, 0) > since:
                yield since, f"the prefetch of {key} was ready for an event and is not adopted"
