"""Following: a cause, and the judgements, evictions and refusals that stand after it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from expertcache_spec.history.books import Books
from expertcache_spec.history.verdict import Offence
from expertcache_spec.model import Key
from expertcache_spec.residency import Selection
from expertcache_spec.trace import Event

FOLLOWERS = frozenset({"hit", "miss", "bypass", "evict", "refuse"})
"""The operations that belong to the cause before them."""

Record = dict[str, Any]


def event_of(record: Record) -> Event:
    """The event of a `select` line; raises `InvalidTrace` where it is none."""
    matrices: dict[str, Any] = {
        name: tuple(tuple(map(float, row)) for row in record[name]) for name in ("weights", "scores") if name in record
    }
    rows = tuple(map(tuple, record["experts"]))
    return Event(
        record["layer"], rows, record["stream"], record["pass"], record["phase"], accepted=record.get("accepted"),
        **matrices,
    )  # fmt: skip


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
class Following(Books):
    """The checker's part that follows causes."""

    block: Block | None = attrs.field(default=None, init=False)

    def close(self) -> None:
        """Apply the cause that is complete, and compare."""
        block, self.block = self.block, None
        if block is not None:
            if self.script is not None:
                # By size: then the last is one that has to leave in whatever order the lines name them.
                leaving = sorted((*block.victims, *block.refused), key=lambda key: self.machine.size(key.layer))
                self.script.victims = deque(leaving)
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
            return cause in ("release", "abandon") and ticket == block.ticket
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
